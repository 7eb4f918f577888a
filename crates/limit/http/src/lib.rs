//! Rate limits on HTTP requests: which limits cover a request, which client sent it, and what
//! response it gets.
//!
//! A [`tower`] layer, in front of waiting rooms or of any other service. `anteroom-limit` decides
//! whether a request is over its limit; `anteroom-limit-store` keeps what each client has used.
//!
//! - `plan` builds the active limits from the config file; `limit` is one of them. `covers` selects
//!   its requests; `client_key`, `distinct`, `tokens` and [`jwt`] identify the client.
//! - `layer` handles requests, `limited_request` one of them. `acquisition` acquires several limits
//!   as one, each for a `counted` client, here or at `stores`. `shadow` counts for limits in shadow
//!   mode.
//! - `too_many_requests` writes the 429, `rate_limit_headers` the headers of all other responses.
//! - `limiter` holds all limits of a process, `counters` their counters. `client_status` shows one
//!   client.

mod acquisition;
mod at_once;
mod client_key;
mod client_status;
mod counted;
mod counters;
mod covers;
mod distinct;
pub mod jwt;
mod layer;
mod limit;
mod limited_request;
mod limiter;
mod plan;
mod rate_limit_headers;
mod shadow;
mod stores;
mod tokens;
mod too_many_requests;

pub use at_once::{AllowedRequest, LimitDecision};
pub use client_status::ClientStatus;
pub use counters::Event;
pub use layer::{Limited, RateLimitLayer, RateLimited};
pub use limiter::{Limiter, LimiterContext, LimiterStats};
pub use plan::{Plan, PlanError, problems};
pub use stores::CountStores;
pub use tokens::{Tokens, TokensError};
