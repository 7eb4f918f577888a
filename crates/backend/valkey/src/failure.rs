//! Failures of a server, and the next step for each.
//!
//! A table maps server errors to our reasons and remedies. No message contains a password:
//! addresses are host and port, and servers do not repeat their input.

mod reply;
mod tls;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use anteroom_config::HostPort;
pub(crate) use anteroom_limit_store::link::CONNECT_TIMEOUT;
use anteroom_limit_store::shared::CountsError;
use anteroom_store::StoreError;
use redis::{ErrorKind, RedisError, ServerError};

pub(crate) use self::reply::Reply;
use self::reply::{REPLICA, Rejection};

/// Timeout of a reply. A healthy server needs less than a millisecond, one on another continent 0.3
/// s; callers have given up on anything slower.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_secs(1);

/// Failure of a request. Cheap to clone: requests while the circuit is open get the last one.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("cannot connect to {server}")]
    Connect {
        server: HostPort,
        source: Arc<io::Error>,
    },
    #[error("no connection to {server} within {} ms", CONNECT_TIMEOUT.as_millis())]
    ConnectTimeout { server: HostPort },
    #[error("no TLS with {server}")]
    Tls {
        server: HostPort,
        source: Arc<io::Error>,
    },
    #[error(
        "no TLS handshake with {server} within {} ms: check whether that port speaks TLS (a \
         redis:// address is for one that does not)",
        CONNECT_TIMEOUT.as_millis()
    )]
    TlsTimeout { server: HostPort },
    #[error(
        "{server} closes the connection without a reply: check its log, and whether that port \
         requires TLS (a rediss:// address)"
    )]
    HungUp { server: HostPort },
    #[error("{server} replies in TLS")]
    WantsTls { server: HostPort },
    #[error("no reply from {server} within {} ms", CALL_TIMEOUT.as_millis())]
    Timeout { server: HostPort },
    #[error("lost the connection to {server}")]
    Broken {
        server: HostPort,
        source: Arc<RedisError>,
    },
    #[error("{server} replies: {reply}{}", reply.hint())]
    ErrorReply { server: HostPort, reply: Reply },
    #[error("unexpected reply of {server}: {what}")]
    UnexpectedReply {
        server: HostPort,
        what: &'static str,
    },
    #[error("{server} is {make}")]
    TooOld { server: HostPort, make: String },
    #[error("{server} is a sentinel")]
    IsSentinel { server: HostPort },
    #[error("{server} is a replica")]
    IsReplica { server: HostPort },
    #[error(
        "{sentinel} names {server} as the master, which is a replica: a fail-over is under way"
    )]
    StaleSentinel {
        sentinel: HostPort,
        server: HostPort,
    },
    #[error("{server} is no longer the master: a fail-over is under way")]
    SteppedDown { server: HostPort },
    #[error("{sentinel} knows no service {service:?}")]
    UnknownService { sentinel: HostPort, service: String },
    #[error("{server} is another process than the one that was read from")]
    MeantForAnother { server: HostPort },
    #[error("the master changed from {server}")]
    MasterChanged { server: HostPort },
    #[error("no server of the cluster has slot {slot}")]
    NoServer { slot: u16 },
    #[error("more than {redirects} redirects in the cluster")]
    TooManyRedirects { redirects: u32 },
    #[error("the task that connects ended with its runtime")]
    ConnectAborted,
    #[error("the connection was closed")]
    Closed,
}

const UNEXPECTED_REPLY: Rejection = (
    "does not reply as Valkey and Redis do",
    "check host and port in [store], and whether that port requires TLS (rediss://)",
);

/// Returns whether a connection error is one of TLS.
pub(crate) fn is_tls(error: &io::Error) -> bool {
    tls::cause(error).is_some()
}

/// Redirect by a server of a cluster.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Redirect<'a> {
    /// Permanent redirect.
    Moved(&'a str),
    /// Redirect of this request only.
    Ask(&'a str),
}

impl Failure {
    pub(crate) fn of_request(server: &HostPort, error: RedisError) -> Self {
        let server = server.clone();
        match ServerError::try_from(error) {
            Ok(error) => Self::ErrorReply {
                server,
                reply: Reply::new(&error),
            },
            Err(error) => Self::Broken {
                server,
                source: Arc::new(error),
            },
        }
    }

    /// Returns whether the request was for a server process that has ended; it was not sent.
    pub(crate) fn is_meant_for_another(&self) -> bool {
        matches!(self, Self::MeantForAnother { .. })
    }

    /// Returns whether the connection is unusable after this. Of error replies, only that of a
    /// replica affects it.
    pub(crate) fn breaks_connection(&self) -> bool {
        // A replica has the data of another server, also when it is a master again. It shows that
        // to a new connection.
        let is_demoted = matches!(self, Self::ErrorReply { reply, .. } if reply.is("READONLY"));
        is_demoted
            || matches!(
                self,
                Self::Timeout { .. }
                    | Self::Broken { .. }
                    | Self::HungUp { .. }
                    | Self::Tls { .. }
                    | Self::WantsTls { .. }
                    | Self::UnexpectedReply { .. }
            )
    }

    /// Returns whether the server may no longer be the master.
    pub(crate) fn doubts_master(&self) -> bool {
        let is_reply = |codes: &[&str]| match self {
            Self::ErrorReply { reply, .. } => codes.iter().any(|code| reply.is(code)),
            _ => false,
        };
        self.breaks_connection()
            || matches!(
                self,
                Self::Connect { .. }
                    | Self::ConnectTimeout { .. }
                    | Self::MasterChanged { .. }
                    | Self::SteppedDown { .. }
            )
            || is_reply(&["MASTERDOWN", "CLUSTERDOWN", "LOADING"])
    }

    /// Converts the failure where another server takes over from a read-only one; then no operator
    /// has to act.
    pub(crate) fn if_replaced(self) -> Self {
        match self {
            Self::ErrorReply { server, reply } if reply.is("READONLY") => {
                Self::SteppedDown { server }
            }
            failure => failure,
        }
    }

    /// Returns whether the server does not know the script; nothing was done then.
    pub(crate) fn is_unknown_script(&self) -> bool {
        matches!(self, Self::ErrorReply { reply, .. } if reply.is("NOSCRIPT"))
    }

    /// Returns whether only some of the keys are at the server, because their slot is on its way to
    /// another one. Nothing was done.
    pub(crate) fn is_slot_divided(&self) -> bool {
        matches!(self, Self::ErrorReply { reply, .. } if reply.is("TRYAGAIN"))
    }

    /// Returns whether the server requires a password.
    pub(crate) fn requires_password(&self) -> bool {
        matches!(self, Self::ErrorReply { reply, .. } if reply.is("NOAUTH"))
    }

    /// Returns the redirect of the reply, if it is one; nothing was done then.
    pub(crate) fn redirect(&self) -> Option<Redirect<'_>> {
        let Self::ErrorReply { reply, .. } = self else {
            return None;
        };
        // "MOVED 3999 10.0.0.7:6379"
        let address = reply.detail.split_ascii_whitespace().nth(1)?;
        match reply.code.as_str() {
            "MOVED" => Some(Redirect::Moved(address)),
            "ASK" => Some(Redirect::Ask(address)),
            _ => None,
        }
    }

    /// Converts the failure into an error of the store.
    pub(crate) fn into_store_error(self, doing: &'static str, store_name: &str) -> StoreError {
        let store_name = store_name.to_owned();
        if matches!(self, Self::Closed) {
            return StoreError::Closed;
        }
        if let Some((reason, remedy)) = self.rejection() {
            return StoreError::Rejected {
                store_name,
                reason,
                remedy,
                source: Box::new(self),
            };
        }
        let is_unreachable = matches!(
            self,
            Self::Connect { .. }
                | Self::ConnectTimeout { .. }
                | Self::Tls { .. }
                | Self::TlsTimeout { .. }
        );
        StoreError::Unavailable {
            doing: if is_unreachable { "reach" } else { doing },
            store_name,
            source: Box::new(self),
        }
    }

    /// Converts the failure into an error of the counts.
    pub(crate) fn into_counts_error(self, store_name: &str) -> CountsError {
        let store_name = store_name.to_owned();
        if let Some((refusal, remedy)) = self.rejection() {
            return CountsError::Rejected {
                store_name,
                refusal,
                remedy,
                source: Box::new(self),
            };
        }
        let may_be_carried_out = matches!(
            self,
            Self::Timeout { .. } | Self::Broken { .. } | Self::HungUp { .. }
        );
        let source = Box::new(self);
        if may_be_carried_out {
            CountsError::Late { store_name, source }
        } else {
            CountsError::Unreachable { store_name, source }
        }
    }

    /// Returns reason and remedy; `None` if the failure may pass without an operator.
    fn rejection(&self) -> Option<Rejection> {
        match self {
            Self::ErrorReply { reply, .. } => reply.rejection(),
            Self::Tls { source, .. } => tls::cause(&**source).map(tls::rejection),
            Self::Broken { source, .. } => {
                (source.kind() == ErrorKind::Parse).then_some(UNEXPECTED_REPLY)
            }
            Self::WantsTls { .. } => Some((
                "requires TLS at that port",
                "write the address as rediss:// in [store]",
            )),
            Self::UnexpectedReply { .. } => Some(UNEXPECTED_REPLY),
            Self::TooOld { .. } => Some((
                "is too old",
                "run Redis 6.2 or later, or any version of Valkey",
            )),
            Self::IsSentinel { .. } => Some((
                "is a sentinel, which stores nothing",
                "write the address as redis+sentinel:// in [store]",
            )),
            Self::IsReplica { .. } => Some(REPLICA),
            Self::UnknownService { .. } => Some((
                "knows no service of that name",
                "check the name of the service in [store]",
            )),
            _ => None,
        }
    }
}
