//! Why did a server not do what it was asked, and what can be done about it?

use std::io;
use std::sync::Arc;
use std::time::Duration;

use anteroom_config::HostPort;
use anteroom_limit::swapping::WAITING_MAX;
pub(crate) use anteroom_limit_store::link::CONNECT_TIMEOUT;
use anteroom_limit_store::shared::CountsError;

use crate::protocol::ProtocolError;

/// How long a server may owe an answer before its connection is given up: longer than any call
/// waits, so that a server that is only slow is not left by all at once.
pub(crate) const SILENCE_MAX: Duration = Duration::from_secs(2);

/// Why there is no answer that could be used. Cheap to clone: whoever comes before the next try
/// gets the last one.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("cannot connect to {server}")]
    Connect {
        server: HostPort,
        source: Arc<io::Error>,
    },
    #[error("no connection to {server} within {} ms", CONNECT_TIMEOUT.as_millis())]
    ConnectTimeout { server: HostPort },
    #[error("{server} ends the connection without a word")]
    HungUp { server: HostPort },
    #[error("lost the connection to {server}")]
    Broken { server: HostPort },
    #[error("what {server} answers is nothing that a memcached says")]
    Strange {
        server: HostPort,
        source: ProtocolError,
    },
    #[error("{server} answers another thing than was asked for")]
    Unasked { server: HostPort },
    #[error("{server} answers: {complaint}")]
    Complaint { server: HostPort, complaint: String },
    #[error("too many calls wait for {server}")]
    Full { server: HostPort },
    #[error(
        "{} calls of one client wait for {server}, or these for longer than may be",
        WAITING_MAX
    )]
    Crowded { server: HostPort },
    #[error("{server} does not answer the call of this client that has its turn")]
    Silent { server: HostPort },
    #[error("after {tries} tries somebody else was faster")]
    Contended { tries: u32 },
    #[error("{server} has no number for a value")]
    NoCas { server: HostPort },
    #[error("a value of {server} is none that this program wrote")]
    Foreign { server: HostPort },
    #[error("closed")]
    Closed,
}

/// What a server refuses, in our words, and what to do.
type Refusal = (&'static str, &'static str);

const STRANGE: Refusal = (
    "does not answer as memcached does",
    "check host and port in [memcached]",
);
const TOO_OLD: Refusal = (
    "does not know meta commands",
    "run memcached 1.6.14 or newer, or no proxy before it that changes commands",
);
const WANTS_LOGIN: Refusal = (
    "wants a name and a password",
    "run one without (no -Y and no -S) in a network of its own",
);
const NO_MEMORY: Refusal = (
    "has no memory left for this value",
    "give it more (-m), or let it forget what was not used for long (no -M)",
);
const REFUSED: Refusal = ("refuses a command", "see what it says");
const NO_CAS: Refusal = (
    "cannot compare and swap",
    "run it without -C, or count in windows",
);
const FOREIGN: Refusal = (
    "holds something else under one of our keys",
    "give this deployment a prefix of its own in [memcached], or delete what is there",
);

impl Failure {
    /// As whoever counts calls is told it.
    pub(crate) fn into_counts_error(self, place: &str) -> CountsError {
        let place = place.to_owned();
        let refusal = match &self {
            Self::Connect { .. }
            | Self::ConnectTimeout { .. }
            | Self::HungUp { .. }
            | Self::Silent { .. }
            | Self::Closed => {
                let source = Box::new(self);
                return CountsError::Unreachable { place, source };
            }
            Self::Broken { .. } => {
                let source = Box::new(self);
                return CountsError::Late { place, source };
            }
            Self::Full { .. } | Self::Crowded { .. } | Self::Contended { .. } => {
                let source = Box::new(self);
                return CountsError::Busy { place, source };
            }
            Self::Strange { .. } | Self::Unasked { .. } => STRANGE,
            Self::Complaint { complaint, .. } => refusal(complaint),
            Self::NoCas { .. } => NO_CAS,
            Self::Foreign { .. } => FOREIGN,
        };
        let (refusal, remedy) = refusal;
        let source = Box::new(self);
        CountsError::Refused {
            place,
            refusal,
            remedy,
            source,
        }
    }
}

fn refusal(complaint: &str) -> Refusal {
    // Versions differ in capitals.
    let said = complaint.to_ascii_lowercase();
    let says = |words: &str| said.contains(words);
    if complaint == "ERROR" {
        TOO_OLD
    } else if says("unauthenticated") {
        WANTS_LOGIN
    } else if says("out of memory") || says("too large") {
        NO_MEMORY
    } else if says("non-numeric") {
        FOREIGN
    } else {
        REFUSED
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

    fn told(complaint: &str) -> String {
        let failure = Failure::Complaint {
            server: server(),
            complaint: complaint.to_owned(),
        };
        let error = failure.into_counts_error("memcached");
        assert!(!error.is_transient());
        error.to_string()
    }

    #[test]
    fn what_a_server_complains_of_is_told_with_what_helps() {
        for (complaint, expected) in [
            ("ERROR", "meta commands"),
            ("CLIENT_ERROR unauthenticated", "no -Y"),
            ("SERVER_ERROR out of memory storing object", "-m"),
            ("SERVER_ERROR object too large for cache", "-m"),
            (
                "CLIENT_ERROR cannot increment or decrement non-numeric value",
                "prefix",
            ),
            ("SERVER_ERROR something", "see what it says"),
        ] {
            let told = told(complaint);
            assert!(told.contains(expected), "{complaint}: {told}");
        }
    }

    #[test]
    fn who_may_have_been_charged_is_told_so() {
        let server = server();
        let late = Failure::Broken {
            server: server.clone(),
        };
        let error = late.into_counts_error("memcached");
        assert!(matches!(error, CountsError::Late { .. }), "{error:?}");
        let own = || server.clone();
        for nothing_charged in [
            Failure::Full { server: own() },
            Failure::Crowded { server: own() },
            Failure::Contended { tries: 8 },
        ] {
            let error = nothing_charged.into_counts_error("memcached");
            assert!(matches!(error, CountsError::Busy { .. }), "{error:?}");
        }
        for away in [Failure::Silent { server: own() }, Failure::Closed] {
            let error = away.into_counts_error("memcached");
            let is_away = matches!(error, CountsError::Unreachable { .. });
            assert!(is_away, "{error:?}");
        }
    }
}
