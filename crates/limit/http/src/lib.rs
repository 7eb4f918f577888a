//! Limits calls: which limits does a request fall under, who calls, and what is it told?
//!
//! A [`tower`] layer, in front of waiting rooms or of any other service. Whether a call is over its
//! limit is decided by `anteroom-limit`; how much each client has called is kept by
//! `anteroom-limit-store`.

mod answer;
mod call;
mod caller;
mod charging;
mod counted;
mod covers;
pub mod jwt;
mod layer;
mod limit;
mod looking;
mod meter;
mod plan;
mod standing;
mod stores;
mod tally;
mod tokens;

pub use layer::{Limited, RateLimitLayer, RateLimited};
pub use meter::{Figures, Meter, Plan, Surroundings};
pub use plan::{PlanError, problems};
pub use standing::Standing;
pub use stores::CountStores;
pub use tally::Event;
pub use tokens::{Tokens, TokensError};
