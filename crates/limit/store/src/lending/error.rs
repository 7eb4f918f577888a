//! Why a request came to nothing, told to all who waited for it.

use std::sync::Arc;

use crate::shared::CountsError;

/// Why the store could not be asked.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum AskError {
    /// It said so, or nothing.
    #[error("the store does not lend")]
    Store(#[source] Arc<CountsError>),
    #[error("no answer within {ms} ms")]
    Timeout { ms: u128 },
    /// Whoever asked did not wait for longer.
    #[error("not decided within {ms} ms")]
    Late { ms: u128 },
    #[error("other nodes were quicker, {times} times")]
    Contended { times: u32 },
    #[error("too many requests are on their way already")]
    TooMany,
    #[error("there is no place for another client")]
    Crowded,
    #[error("it did not answer lately")]
    Away,
    #[error("what is there was written by a later version of this program")]
    Later,
    #[error("the limit cannot be lent")]
    CannotBeLent(#[source] anteroom_limit::lending::widened::NotLeasableError),
}

impl AskError {
    /// Whether this says that the store is away. One that has no time or no room has answered.
    pub(crate) fn is_of_the_store(&self) -> bool {
        match self {
            Self::Store(error) => !matches!(**error, CountsError::Busy { .. }),
            _ => matches!(self, Self::Timeout { .. }),
        }
    }

    /// As callers see it. Nothing was charged in any of these.
    pub(crate) fn into_counts_error(self, place: &str) -> CountsError {
        let place = place.to_owned();
        let refused = match &self {
            Self::Store(error) => match **error {
                CountsError::Refused {
                    refusal, remedy, ..
                } => Some((refusal, remedy)),
                _ => None,
            },
            Self::Later => Some((
                "was used by a later version of this program",
                "run the same version on all nodes",
            )),
            Self::CannotBeLent(_) => Some((
                "cannot lend calls of this limit",
                "choose another algorithm or a larger burst, or another store",
            )),
            _ => None,
        };
        let is_busy = match &self {
            Self::Store(error) => matches!(**error, CountsError::Busy { .. }),
            _ => matches!(self, Self::Contended { .. } | Self::TooMany | Self::Crowded),
        };
        // It has waited already: nobody must ask again and wait as long.
        let is_late = matches!(self, Self::Late { .. });
        let source = Box::new(self);
        match refused {
            Some((refusal, remedy)) => CountsError::Refused {
                place,
                refusal,
                remedy,
                source,
            },
            None if is_busy => CountsError::Busy { place, source },
            None if is_late => CountsError::Late { place, source },
            None => CountsError::Unreachable { place, source },
        }
    }
}
