//! Failures of a server, and the next step for each.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use anteroom_config::HostPort;
use anteroom_limit::swapping::WAITING_MAX;
pub(crate) use anteroom_limit_store::link::CONNECT_TIMEOUT;
use anteroom_limit_store::shared::CountsError;

use crate::protocol::ProtocolError;

/// Time without a reply after which a connection is closed. Longer than any request waits, so that
/// a slow server does not lose all connections at once.
pub(crate) const REPLY_TIMEOUT: Duration = Duration::from_secs(2);

/// Failure of a request. Cheap to clone: requests before the next attempt to connect get the last
/// one.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("cannot connect to {server}")]
    Connect {
        server: HostPort,
        source: Arc<io::Error>,
    },
    #[error("no connection to {server} within {} ms", CONNECT_TIMEOUT.as_millis())]
    ConnectTimeout { server: HostPort },
    #[error("{server} closes the connection without a reply")]
    HungUp { server: HostPort },
    #[error("lost the connection to {server}")]
    Broken { server: HostPort },
    #[error("the reply of {server} is not one of memcached")]
    Malformed {
        server: HostPort,
        source: ProtocolError,
    },
    #[error("the reply of {server} does not match the command")]
    UnexpectedReply { server: HostPort },
    #[error("{server} replies: {message}")]
    ServerError { server: HostPort, message: String },
    #[error("too many requests wait for {server}")]
    Full { server: HostPort },
    #[error(
        "{} requests of one client wait for {server}, or they waited for too long",
        WAITING_MAX
    )]
    ClientBusy { server: HostPort },
    #[error("{server} does not reply to an earlier request of this client")]
    NoReply { server: HostPort },
    #[error("lost the compare-and-swap {tries} times")]
    Contended { tries: u32 },
    #[error("{server} returns no unique number for a value")]
    NoCas { server: HostPort },
    #[error("{server} has a value that Anteroom did not write")]
    Foreign { server: HostPort },
    #[error("the connection was closed")]
    Closed,
}

/// Reason for a rejection by a server, and the next step.
type Rejection = (&'static str, &'static str);

const NOT_MEMCACHED: Rejection = (
    "does not reply as memcached does",
    "check host and port in [memcached]",
);
const TOO_OLD: Rejection = (
    "does not know meta commands",
    "run memcached 1.6.14 or newer, or no proxy before it that changes commands",
);
const REQUIRES_LOGIN: Rejection = (
    "requires a name and a password",
    "run one without (no -Y and no -S) in a network of its own",
);
const NO_MEMORY: Rejection = (
    "has no memory left for this value",
    "give it more (-m), or let it evict values that were not used for long (no -M)",
);
const REJECTED: Rejection = ("rejects a command", "see its error");
const NO_CAS: Rejection = (
    "cannot compare and swap",
    "run it without -C, or count in windows",
);
const FOREIGN: Rejection = (
    "has a value of another program under one of our keys",
    "give this deployment its own prefix in [memcached], or delete the value",
);

impl Failure {
    /// Converts a failure into the error of the store.
    pub(crate) fn into_counts_error(self, store_name: &str) -> CountsError {
        let store_name = store_name.to_owned();
        let refusal = match &self {
            Self::Connect { .. }
            | Self::ConnectTimeout { .. }
            | Self::HungUp { .. }
            | Self::NoReply { .. }
            | Self::Closed => {
                let source = Box::new(self);
                return CountsError::Unreachable { store_name, source };
            }
            Self::Broken { .. } => {
                let source = Box::new(self);
                return CountsError::Late { store_name, source };
            }
            Self::Full { .. } | Self::ClientBusy { .. } | Self::Contended { .. } => {
                let source = Box::new(self);
                return CountsError::Busy { store_name, source };
            }
            Self::Malformed { .. } | Self::UnexpectedReply { .. } => NOT_MEMCACHED,
            Self::ServerError { message, .. } => rejection(message),
            Self::NoCas { .. } => NO_CAS,
            Self::Foreign { .. } => FOREIGN,
        };
        let (refusal, remedy) = refusal;
        let source = Box::new(self);
        CountsError::Rejected {
            store_name,
            refusal,
            remedy,
            source,
        }
    }
}

fn rejection(message: &str) -> Rejection {
    // Versions differ in upper and lower case.
    let text = message.to_ascii_lowercase();
    let contains = |words: &str| text.contains(words);
    if message == "ERROR" {
        TOO_OLD
    } else if contains("unauthenticated") {
        REQUIRES_LOGIN
    } else if contains("out of memory") || contains("too large") {
        NO_MEMORY
    } else if contains("non-numeric") {
        FOREIGN
    } else {
        REJECTED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server() -> HostPort {
        HostPort {
            host: "10.0.0.5".to_owned(),
            port: 11_211,
        }
    }

    fn error_text(message: &str) -> String {
        let failure = Failure::ServerError {
            server: server(),
            message: message.to_owned(),
        };
        let error = failure.into_counts_error("memcached");
        assert!(!error.is_transient());
        error.to_string()
    }

    #[test]
    fn a_server_error_is_reported_with_a_remedy() {
        for (message, expected) in [
            ("ERROR", "meta commands"),
            ("CLIENT_ERROR unauthenticated", "no -Y"),
            ("SERVER_ERROR out of memory storing object", "-m"),
            ("SERVER_ERROR object too large for cache", "-m"),
            (
                "CLIENT_ERROR cannot increment or decrement non-numeric value",
                "prefix",
            ),
            ("SERVER_ERROR something", "see its error"),
        ] {
            let text = error_text(message);
            assert!(text.contains(expected), "{message}: {text}");
        }
    }

    #[test]
    fn a_possibly_counted_request_is_late_and_others_are_not() {
        let server = server();
        let late = Failure::Broken {
            server: server.clone(),
        };
        let error = late.into_counts_error("memcached");
        assert!(matches!(error, CountsError::Late { .. }), "{error:?}");
        let own = || server.clone();
        for nothing_acquired in [
            Failure::Full { server: own() },
            Failure::ClientBusy { server: own() },
            Failure::Contended { tries: 8 },
        ] {
            let error = nothing_acquired.into_counts_error("memcached");
            assert!(matches!(error, CountsError::Busy { .. }), "{error:?}");
        }
        for unavailable in [Failure::NoReply { server: own() }, Failure::Closed] {
            let error = unavailable.into_counts_error("memcached");
            let is_away = matches!(error, CountsError::Unreachable { .. });
            assert!(is_away, "{error:?}");
        }
    }
}
