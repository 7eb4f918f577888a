//! Where requests of a room go, and how it is seen who is well there.

use std::fmt;
use std::path::PathBuf;

use anteroom_room::time::DurationMs;

/// Where admitted requests of a room go, and how.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RoomOrigins {
    /// One or more, none twice, in the order of the file.
    pub list: Vec<Origin>,
    /// Whether HTTP/2 is spoken to them.
    pub http2: Http2,
    /// Whoever signs the certificates of those with TLS; `None` = whom the system trusts.
    pub ca_file: Option<PathBuf>,
    /// How they are asked whether they are well; `None` = they are not asked.
    pub health_check: Option<HealthCheck>,
}

/// One origin: plain HTTP or TLS to one authority.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Origin {
    pub(crate) has_tls: bool,
    /// `host:port`; the port is always there.
    pub(crate) authority: String,
}

impl Origin {
    /// `host:port`.
    #[must_use]
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// Whether it is spoken to by TLS.
    #[must_use]
    pub const fn has_tls(&self) -> bool {
        self.has_tls
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.has_tls { "https" } else { "http" };
        write!(f, "{scheme}://{}", self.authority)
    }
}

/// `origin_http2`.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Http2 {
    /// HTTP/1.1.
    #[default]
    Never,
    /// Whatever an origin with TLS chooses; HTTP/1.1 without TLS, where nobody is asked.
    Auto,
    /// HTTP/2, without TLS too, where it is then spoken without asking.
    Always,
}

/// `health_check`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HealthCheck {
    /// What is asked for, with the query if there is one.
    pub path: String,
    /// How often.
    pub interval: DurationMs,
    /// How long an answer may take, connecting included.
    pub timeout: DurationMs,
    /// Good answers in a row that make an origin healthy.
    pub healthy_after: u32,
    /// Bad ones in a row that make it unhealthy.
    pub unhealthy_after: u32,
    /// Which answers are good.
    pub expected_status: Statuses,
}

/// Statuses of answers, both ends included.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Statuses {
    /// The lowest.
    pub first: u16,
    /// The highest.
    pub last: u16,
}

impl Statuses {
    /// Whether this is one of them.
    #[must_use]
    pub const fn contain(self, status: u16) -> bool {
        self.first <= status && status <= self.last
    }
}
