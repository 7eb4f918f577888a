//! Record of the overrides of single clients of rate limits, and the commands that change it.
//!
//! One small JSON record for all limits: settings that win over the file's, and the newest change,
//! so that every change is audited. An entry names its client as the file would, so the store holds
//! API keys in clear text. Where the record is stored and when it is read is not known here.

mod command;
mod record;
mod shown;

pub(crate) use command::leased;
pub use command::{LimitCommand, RejectedCommand};
pub use record::{Fits, LimitOverrides, LiveOverride};
pub use shown::{ShownLimit, ShownLimits, ShownOverride, in_words};

#[cfg(test)]
mod tests;
