//! Origins of sites and rooms, and their health checks.

use std::fmt;
use std::path::PathBuf;

use anteroom_room::time::DurationMs;

use super::{RoomName, SiteName};

/// Origins that serve the same requests, and how to connect to them.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct OriginGroup {
    /// One or more, none twice, in the order of the file.
    pub list: Vec<Origin>,
    /// Use of HTTP/2 towards them.
    pub http2: Http2,
    /// File of the certificate authorities to trust; `None` = those of the system.
    pub ca_file: Option<PathBuf>,
    /// Health check; `None` = no check.
    pub health_check: Option<HealthCheck>,
}

/// Origins of a room.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum RoomOrigins {
    /// Origins of its own.
    Own(OriginGroup),
    /// Those of a site.
    Site(SiteName),
}

/// Site or room that has origins.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum OriginOwner {
    /// Room with origins of its own.
    Room(RoomName),
    /// Site.
    Site(SiteName),
}

/// Origins with their owner.
#[derive(Clone, Debug)]
pub struct OwnedOrigins<'a> {
    /// Site or room that has the origins.
    pub owner: OriginOwner,
    /// The origins.
    pub group: &'a OriginGroup,
    /// First host that the owner names, for health checks; `None` if it serves any host.
    pub host: Option<&'a str>,
}

impl OriginOwner {
    /// Returns `room` or `site`: the table of the file, and the label of metrics.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Room(_) => "room",
            Self::Site(_) => "site",
        }
    }

    /// Returns the name of a room; `None` for a site.
    #[must_use]
    pub fn room(&self) -> Option<&str> {
        matches!(self, Self::Room(_)).then(|| self.name())
    }

    /// Returns the name of a site; `None` for a room.
    #[must_use]
    pub fn site(&self) -> Option<&str> {
        matches!(self, Self::Site(_)).then(|| self.name())
    }

    /// Returns the name of the room or the site.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Room(name) => name.as_str(),
            Self::Site(name) => name.as_str(),
        }
    }
}

impl fmt::Display for OriginOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} \"{}\"", self.kind(), self.name())
    }
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

    /// Whether the origin is connected to by TLS.
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
    /// HTTP/2 if an origin with TLS negotiates it; HTTP/1.1 without TLS.
    Auto,
    /// HTTP/2, also without TLS, and then without negotiation.
    Always,
}

/// `health_check`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HealthCheck {
    /// Path of the check, with its query if there is one.
    pub path: String,
    /// Time between checks.
    pub interval: DurationMs,
    /// Longest time until a response, connecting included.
    pub timeout: DurationMs,
    /// Successful checks in a row that make an origin healthy.
    pub healthy_after: u32,
    /// Failed checks in a row that make it unhealthy.
    pub unhealthy_after: u32,
    /// Statuses of a successful check.
    pub expected_status: Statuses,
}

/// Range of statuses, both ends included.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Statuses {
    /// The lowest.
    pub first: u16,
    /// The highest.
    pub last: u16,
}

impl Statuses {
    /// Whether `status` is in the range.
    #[must_use]
    pub const fn contain(self, status: u16) -> bool {
        self.first <= status && status <= self.last
    }
}
