//! Error of a lease request, which all its waiting callers get.

use std::sync::Arc;

use anteroom_limit::time::DurationUs;

use crate::shared::CountsError;

/// Error of a lease request.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum LeaseError {
    /// The store reported an error, or was unreachable.
    #[error("the store grants no leases")]
    Store(#[source] Arc<CountsError>),
    #[error("no reply within {ms} ms")]
    Timeout { ms: u128 },
    /// The caller's timeout has passed.
    #[error("not decided within {ms} ms")]
    DeadlinePassed { ms: u128 },
    #[error("other nodes wrote first, {times} times")]
    Contended { times: u32 },
    #[error("too many lease requests in flight")]
    TooManyInFlight,
    #[error("no room for another client")]
    NoRoom,
    #[error("no recent reply from the store")]
    Unavailable,
    #[error("this node has just joined, and the store could still forget it")]
    Joining,
    #[error(
        "the store came back as another server, and nodes report what they were granted; if one of \
         them does not, the store counts as having lost everything"
    )]
    Reporting,
    #[error(
        "the store may have lost what was granted, so it is unknown for another {} what clients \
         have used; if hardly anything was used, `anteroom limits assume-empty` ends that",
        whole_seconds(*.0)
    )]
    Uncertain(DurationUs),
    #[error("record written by a later version of this program")]
    NewerRecord,
    #[error("limit cannot be leased")]
    NotLeasable(#[source] anteroom_limit::leases::widened::NotLeasableError),
}

impl LeaseError {
    /// Whether this means that the store is unavailable. A store that is overloaded has replied.
    pub(crate) fn is_outage(&self) -> bool {
        match self {
            Self::Store(error) => !matches!(**error, CountsError::Busy { .. }),
            _ => matches!(self, Self::Timeout { .. }),
        }
    }

    /// Converts to the public error. Nothing was acquired in any of these cases.
    pub(crate) fn into_counts_error(self, store_name: &str) -> CountsError {
        let store_name = store_name.to_owned();
        let refused = match &self {
            Self::Store(error) => match **error {
                CountsError::Rejected {
                    refusal, remedy, ..
                } => Some((refusal, remedy)),
                _ => None,
            },
            Self::NewerRecord => Some((
                "was used by a later version of this program",
                "run the same version on all nodes",
            )),
            Self::NotLeasable(_) => Some((
                "cannot lease this limit",
                "choose another algorithm or a larger burst, or another store",
            )),
            _ => None,
        };
        let is_busy = match &self {
            Self::Store(error) => matches!(**error, CountsError::Busy { .. }),
            _ => matches!(
                self,
                Self::Contended { .. } | Self::TooManyInFlight | Self::NoRoom
            ),
        };
        let is_closed = matches!(self, Self::Joining | Self::Reporting | Self::Uncertain(_));
        // The caller has waited already, and must not retry and wait again.
        let is_late = matches!(self, Self::DeadlinePassed { .. });
        let source = Box::new(self);
        match refused {
            Some((refusal, remedy)) => CountsError::Rejected {
                store_name,
                refusal,
                remedy,
                source,
            },
            None if is_busy => CountsError::Busy { store_name, source },
            None if is_late => CountsError::Late { store_name, source },
            None if is_closed => CountsError::Closed { store_name, source },
            None => CountsError::Unreachable { store_name, source },
        }
    }
}

/// Rounds up: what is left of a day needs no microseconds.
fn whole_seconds(span: DurationUs) -> DurationUs {
    DurationUs::from_secs(span.0.div_ceil(1_000_000))
}
