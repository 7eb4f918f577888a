//! Limits calls: which limits does a request fall under, who calls, and what is it told?
//!
//! A [`tower`] layer, in front of waiting rooms or of any other service. Whether a call is over its
//! limit is decided by `anteroom-limit`; how much each client has called is kept by
//! `anteroom-limit-store`.
//!
//! - `plan` makes the limits that hold of the config file; `limit` is one of them, `covers` says
//!   which requests it counts, `caller`, `tokens` and [`jwt`] to which client;
//! - `layer` meets requests, `call` is one of them; `charging` and `counted` charge several limits
//!   as one, here or at `stores`; `looking` charges those in shadow mode;
//! - `too_many_requests` writes the 429, `rate_limit_headers` what all other responses say;
//! - `meter` is all limits of a process, `counters` their counters, `standing` shows one client.

mod call;
mod caller;
mod charging;
mod counted;
mod counters;
mod covers;
mod distinct;
pub mod jwt;
mod layer;
mod limit;
mod looking;
mod meter;
mod plan;
mod rate_limit_headers;
mod standing;
mod stores;
mod tokens;
mod too_many_requests;

pub use counters::Event;
pub use layer::{Limited, RateLimitLayer, RateLimited};
pub use meter::{Limiter, LimiterStats, Surroundings};
pub use plan::{Plan, PlanError, problems};
pub use standing::Standing;
pub use stores::CountStores;
pub use tokens::{Tokens, TokensError};
