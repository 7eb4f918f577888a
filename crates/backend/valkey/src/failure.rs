//! Why did a server not do what it was asked, and what can be done about it?
//!
//! One table turns what servers say into our words and a remedy. No message here holds a password:
//! addresses are host and port, and servers do not repeat what they were told.

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
use self::reply::{REPLICA, Refusal};

/// How long an answer may take. A healthy server needs less than a millisecond, one on another
/// continent 0.3 s; what takes longer has outlived the patience of whoever asked.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_secs(1);

/// Why there is no answer that could be used. Cheap to clone: whoever finds the circuit open gets
/// the last one.
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
        "{server} does not answer to TLS within {} ms: see whether that port speaks TLS (a \
         redis:// \
         address is for one that does not)",
        CONNECT_TIMEOUT.as_millis()
    )]
    TlsTimeout { server: HostPort },
    #[error(
        "{server} ends the connection without a word: see its log, and whether that port wants TLS \
         (a rediss:// address)"
    )]
    HungUp { server: HostPort },
    #[error("{server} answers in TLS")]
    WantsTls { server: HostPort },
    #[error("no answer from {server} within {} ms", CALL_TIMEOUT.as_millis())]
    Timeout { server: HostPort },
    #[error("lost the connection to {server}")]
    Broken {
        server: HostPort,
        source: Arc<RedisError>,
    },
    #[error("{server} answers: {reply}{}", reply.hint())]
    Answer { server: HostPort, reply: Reply },
    #[error("what {server} answers has another form than expected: {what}")]
    Strange {
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
    #[error("{server} was restarted, or has taken over")]
    MeantForAnother { server: HostPort },
    #[error("the master changed from {server}")]
    MasterChanged { server: HostPort },
    #[error("no server of the cluster has slot {slot}")]
    NoServer { slot: u16 },
    #[error("{redirects} servers of the cluster sent each other the call")]
    TooManyRedirects { redirects: u32 },
    #[error("the task that was connecting ended with its runtime")]
    NobodyConnects,
    #[error("closed")]
    Closed,
}

const STRANGE: Refusal = (
    "does not answer as Valkey and Redis do",
    "check host and port in [store], and whether that port wants TLS (rediss://)",
);

/// Whether an error of a connection is one of TLS.
pub(crate) fn is_tls(error: &io::Error) -> bool {
    tls::cause(error).is_some()
}

/// Where a server of a cluster sends a call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Redirect<'a> {
    /// For good.
    Moved(&'a str),
    /// This once.
    Ask(&'a str),
}

impl Failure {
    pub(crate) fn of_call(server: &HostPort, error: RedisError) -> Self {
        let server = server.clone();
        match ServerError::try_from(error) {
            Ok(error) => Self::Answer {
                server,
                reply: Reply::new(&error),
            },
            Err(error) => Self::Broken {
                server,
                source: Arc::new(error),
            },
        }
    }

    /// Whether the request was for a server that is not there any more; it was not sent.
    pub(crate) fn is_meant_for_another(&self) -> bool {
        matches!(self, Self::MeantForAnother { .. })
    }

    /// Whether the connection is of no use after this. Answers leave it alone, whatever they say.
    pub(crate) fn breaks_connection(&self) -> bool {
        matches!(
            self,
            Self::Timeout { .. }
                | Self::Broken { .. }
                | Self::HungUp { .. }
                | Self::Tls { .. }
                | Self::WantsTls { .. }
                | Self::Strange { .. }
        )
    }

    /// Whether the server may no longer be the master that it was.
    pub(crate) fn doubts_master(&self) -> bool {
        let is_answer = |codes: &[&str]| match self {
            Self::Answer { reply, .. } => codes.iter().any(|code| reply.says(code)),
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
            || is_answer(&["MASTERDOWN", "CLUSTERDOWN", "LOADING"])
    }

    /// The same, where another server takes over from one that may no longer write: then nobody has
    /// to do anything about it.
    pub(crate) fn if_replaced(self) -> Self {
        match self {
            Self::Answer { server, reply } if reply.says("READONLY") => {
                Self::SteppedDown { server }
            }
            failure => failure,
        }
    }

    /// Whether the server said that it has no such script; nothing was done then.
    pub(crate) fn is_unknown_script(&self) -> bool {
        matches!(self, Self::Answer { reply, .. } if reply.says("NOSCRIPT"))
    }

    /// Whether the server wants a password first.
    pub(crate) fn wants_password(&self) -> bool {
        matches!(self, Self::Answer { reply, .. } if reply.says("NOAUTH"))
    }

    /// Where else to ask; nothing was done then.
    pub(crate) fn redirect(&self) -> Option<Redirect<'_>> {
        let Self::Answer { reply, .. } = self else {
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

    /// As callers of the store see it.
    pub(crate) fn into_store_error(self, doing: &'static str, place: &str) -> StoreError {
        let place = place.to_owned();
        if matches!(self, Self::Closed) {
            return StoreError::Closed;
        }
        if let Some((refusal, remedy)) = self.refusal() {
            return StoreError::Refused {
                place,
                refusal,
                remedy,
                source: Box::new(self),
            };
        }
        let is_away = matches!(
            self,
            Self::Connect { .. }
                | Self::ConnectTimeout { .. }
                | Self::Tls { .. }
                | Self::TlsTimeout { .. }
        );
        StoreError::Unavailable {
            doing: if is_away { "reach" } else { doing },
            place,
            source: Box::new(self),
        }
    }

    /// As callers of the counts see it.
    pub(crate) fn into_counts_error(self, place: &str) -> CountsError {
        let place = place.to_owned();
        if let Some((refusal, remedy)) = self.refusal() {
            return CountsError::Refused {
                place,
                refusal,
                remedy,
                source: Box::new(self),
            };
        }
        let may_be_done = matches!(
            self,
            Self::Timeout { .. } | Self::Broken { .. } | Self::HungUp { .. }
        );
        let source = Box::new(self);
        if may_be_done {
            CountsError::Late { place, source }
        } else {
            CountsError::Unreachable { place, source }
        }
    }

    /// `None`: it may go away by itself.
    fn refusal(&self) -> Option<Refusal> {
        match self {
            Self::Answer { reply, .. } => reply.refusal(),
            Self::Tls { source, .. } => tls::cause(&**source).map(tls::refusal),
            Self::Broken { source, .. } => (source.kind() == ErrorKind::Parse).then_some(STRANGE),
            Self::WantsTls { .. } => Some((
                "wants TLS at that port",
                "write the address as rediss:// in [store]",
            )),
            Self::Strange { .. } => Some(STRANGE),
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
                "watches no service of that name",
                "check the name of the service in [store]",
            )),
            _ => None,
        }
    }
}
