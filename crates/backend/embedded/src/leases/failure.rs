//! Error of an operation on the file, for all requests that waited for it.

use std::error::Error;
use std::sync::Arc;

use anteroom_limit_store::shared::CountsError;

/// Error of the disk or of the file.
pub(crate) type Cause = Arc<dyn Error + Send + Sync>;

/// Error of an operation on the file.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// Another process has the file, usually a predecessor that has not released it yet.
    #[error("another process has it")]
    Held,
    /// The store was closed before.
    #[error("it is closed")]
    Closed,
    #[error("cannot {doing} it")]
    Disk {
        doing: &'static str,
        #[source]
        source: Cause,
    },
    /// The write failed, and whether it took effect is unknown.
    #[error("cannot write it")]
    Unknown(#[source] Cause),
    /// The file is full, and no client's record has ended.
    #[error("it is full: clients with recent leases take {bytes_max} bytes")]
    Full { bytes_max: u64 },
    #[error("too many requests wait for it")]
    Busy,
    #[error("its format is {found}, this program knows {known}")]
    Later { found: u64, known: u64 },
}

impl Failure {
    pub(crate) fn of_disk(doing: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Disk {
            doing,
            source: Arc::new(source),
        }
    }

    /// Converts the error for the caller of the store.
    pub(crate) fn into_counts_error(self, store_name: &str) -> CountsError {
        let store_name = store_name.to_owned();
        let is_later = matches!(self, Self::Later { .. });
        let (is_unknown, is_busy) = (
            matches!(self, Self::Unknown(_)),
            matches!(self, Self::Full { .. } | Self::Busy),
        );
        let source = Box::new(self);
        if is_later {
            CountsError::Rejected {
                store_name,
                refusal: "was written by a later version of this program",
                remedy: "run that version, or move the file away to start over",
                source,
            }
        } else if is_unknown {
            CountsError::Late { store_name, source }
        } else if is_busy {
            CountsError::Busy { store_name, source }
        } else {
            CountsError::Unreachable { store_name, source }
        }
    }
}

/// Converts an error of redb to one type.
pub(crate) fn cause(error: impl Into<redb::Error>) -> Cause {
    Arc::new(error.into())
}
