//! Why the file could not do what it was asked to do, told to all who waited for it.

use std::error::Error;
use std::sync::Arc;

use anteroom_limit_store::shared::CountsError;

/// What the disk or the file says.
pub(crate) type Cause = Arc<dyn Error + Send + Sync>;

/// Why not.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// Another process has the file: a predecessor, until it lets go of it.
    #[error("another process has it")]
    Held,
    /// It was closed on purpose.
    #[error("it is closed")]
    Closed,
    #[error("cannot {doing} it")]
    Disk {
        doing: &'static str,
        #[source]
        source: Cause,
    },
    /// Whether it was written is not known.
    #[error("cannot write it")]
    Unknown(#[source] Cause),
    /// Nobody may be forgotten to make room.
    #[error("it is full: {bytes_max} bytes are kept of clients who have been lent calls lately")]
    Full { bytes_max: u64 },
    #[error("too many wait for it already")]
    Busy,
    #[error("its form is {found}, this program knows {known}")]
    Later { found: u64, known: u64 },
}

impl Failure {
    pub(crate) fn of_disk(doing: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Disk {
            doing,
            source: Arc::new(source),
        }
    }

    /// As whoever lends sees it.
    pub(crate) fn into_counts_error(self, place: &str) -> CountsError {
        let place = place.to_owned();
        let later = matches!(self, Self::Later { .. });
        let (is_unknown, is_busy) = (
            matches!(self, Self::Unknown(_)),
            matches!(self, Self::Full { .. } | Self::Busy),
        );
        let source = Box::new(self);
        if later {
            CountsError::Refused {
                place,
                refusal: "was written by a later version of this program",
                remedy: "run that version, or move the file away to begin anew",
                source,
            }
        } else if is_unknown {
            CountsError::Late { place, source }
        } else if is_busy {
            CountsError::Busy { place, source }
        } else {
            CountsError::Unreachable { place, source }
        }
    }
}

/// What redb says, as one type, and what is wrong then.
pub(crate) fn cause(error: impl Into<redb::Error>) -> Cause {
    Arc::new(error.into())
}
