//! What did operators say about single clients of limits while they act? One small record for all
//! limits: settings that win over the file's, and with them the newest change, so that nothing
//! changes without a trace.
//!
//! JSON, as what is said about rooms. An entry names its client as the file would: whoever may read
//! the store reads API keys there. Where the record is kept and who reads it when is not known
//! here.

mod order;
mod record;
mod shown;

pub(crate) use order::lent;
pub use order::{LimitCommand, RejectedCommand};
pub use record::{Fits, LimitOverrides, LiveOverride};
pub use shown::{ShownLimit, ShownLimits, ShownOverride, in_words};

#[cfg(test)]
mod tests;
