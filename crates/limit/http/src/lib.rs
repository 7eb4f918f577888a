//! Limits calls: which limits does a request fall under, who calls, and what is it told?
//!
//! A [`tower`] layer, in front of waiting rooms or of any other service. Whether a call is over its
//! limit is decided by `anteroom-limit`; how much each client has called is kept by
//! `anteroom-limit-store`.

mod call;
mod caller;
mod charging;
mod counted;
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
mod tally;
mod tokens;
mod too_many_requests;

pub use layer::{Limited, RateLimitLayer, RateLimited};
pub use meter::{Figures, Meter, Surroundings};
pub use plan::{Plan, PlanError, problems};
pub use standing::Standing;
pub use stores::CountStores;
pub use tally::Event;
pub use tokens::{Tokens, TokensError};
