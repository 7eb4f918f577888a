//! Sites: hosts, and the origins that serve them.

use std::fmt;

use super::{Host, OriginGroup, OriginOwner, OwnedOrigins, RoomName};
use crate::language::Language;

/// A site's name: 1 to 64 of `A-Z a-z 0-9 - _`.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct SiteName(String);

impl SiteName {
    /// Returns a name, if `text` is one.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        // The same characters as in names of rooms.
        RoomName::new(text).map(|name| Self(name.0))
    }

    /// Returns the name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SiteName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One `[[site]]`.
#[derive(Clone, Debug, PartialEq)]
pub struct SiteConfig {
    /// Unique name.
    pub name: SiteName,
    /// Hosts, none of which another site has; [`Host::Any`] stands alone.
    pub hosts: Vec<Host>,
    /// Origins of all requests that no room with origins of its own covers.
    pub origins: OriginGroup,
    /// Language of error pages for browsers that accept none of ours.
    pub language: Language,
}

impl SiteConfig {
    /// Returns the site's origins.
    #[must_use]
    pub fn origins(&self) -> OwnedOrigins<'_> {
        OwnedOrigins {
            owner: OriginOwner::Site(self.name.clone()),
            group: &self.origins,
            host: self.hosts.iter().find_map(Host::name),
        }
    }
}
