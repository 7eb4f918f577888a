//! The meaning of a config file: checked values only.

use std::fmt;
use std::path::PathBuf;

use anteroom_room::rules::Rules;

use crate::language::Language;
use crate::limit_stores::LimitStores;

use super::shared_store::StoreConfig;

mod limit;
mod origin;
mod rate_limit_service;
mod server;

pub use limit::{
    Client, ClientKey, JwtConfig, JwtKeys, KeyPart, LegacyReset, LimitConfig, LimitHeaders,
    LimitName, LimitRoute, OnLimit, OnLimitStoreFailure, TokenPlace, WithoutKey,
};
pub use origin::{HealthCheck, Http2, Origin, RoomOrigins, Statuses};
pub use rate_limit_service::{
    OnStoreFailure, RateLimitHeaders, RateLimitServiceConfig, RateLimitStore,
};
pub use server::{OriginLimits, ServerConfig, SizeLimits, Timeouts, TlsConfig};

/// A whole configuration, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The process.
    pub server: ServerConfig,
    /// Where what nodes share is kept.
    pub store: StoreConfig,
    /// The rooms, in the order of the file.
    pub rooms: Vec<RoomConfig>,
    /// The limits of calls, in the order of the file.
    pub limits: Vec<LimitConfig>,
    /// The signed tokens by which limits may tell clients apart.
    pub jwt: Option<JwtConfig>,
    /// Where limits may be counted, beside the store of rooms.
    pub limit_stores: LimitStores,
    /// Envoy's rate limit service, if it runs here.
    pub rate_limit_service: Option<RateLimitServiceConfig>,
}

/// A room's name: 1 to 64 of `A-Z a-z 0-9 - _`.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct RoomName(pub(super) String);

impl RoomName {
    /// A name, if `text` is one.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        ((1..=64).contains(&text.len()) && Self::is_name(text)).then(|| Self(text.to_owned()))
    }

    /// Whether `text` holds only what names are made of.
    pub(super) fn is_name(text: &str) -> bool {
        text.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RoomName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One `[[room]]`.
#[derive(Clone, Debug, PartialEq)]
pub struct RoomConfig {
    /// Unique name.
    pub name: RoomName,
    /// Host and path of the room, then `additional_routes`.
    pub routes: Vec<Route>,
    /// Where admitted requests go.
    pub origins: RoomOrigins,
    /// Who goes in and who waits.
    pub rules: Rules,
    /// Switched off: everything passes, untouched.
    pub suspended: bool,
    /// Answer a request whose `Accept` is exactly `application/json` with JSON.
    pub json_response_enabled: bool,
    /// What those see who wait.
    pub page: PageConfig,
    /// Status of a waiting page: 200, 202, 429 or 503.
    pub queueing_status_code: u16,
    /// Status of a waiting response to a request that is no navigation: 429 or 503.
    pub non_navigation_status_code: u16,
    /// From how many networks a ticket may be used at a node within ten minutes, 2 to 16; `None` =
    /// from any number.
    pub max_addresses_per_ticket: Option<u32>,
    /// The ticket's cookie.
    pub cookie: CookieSettings,
    /// Which commands in the origin's answers are obeyed.
    pub origin_commands: OriginCommands,
    /// Requests that pass untouched.
    pub bypass: Vec<BypassRule>,
}

impl RoomConfig {
    /// A room of which nothing has been read yet: its reader sets every field, or drops it.
    pub(super) fn unread() -> Self {
        Self {
            name: RoomName(String::new()),
            routes: Vec::new(),
            origins: RoomOrigins {
                list: Vec::new(),
                http2: Http2::Never,
                ca_file: None,
                health_check: None,
            },
            rules: Rules::default(),
            suspended: false,
            json_response_enabled: false,
            page: PageConfig::default(),
            queueing_status_code: 200,
            non_navigation_status_code: 429,
            max_addresses_per_ticket: None,
            cookie: CookieSettings {
                suffix: None,
                same_site: SameSite::Auto,
                secure: Secure::Auto,
            },
            origin_commands: OriginCommands { revoke: true },
            bypass: Vec::new(),
        }
    }
}

/// What those see who wait.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct PageConfig {
    /// The language for browsers that like none of ours.
    pub language: Language,
    /// The operator's own page; `None` = the built-in one.
    pub template: Option<PageTemplate>,
}

/// A page that the operator wrote, as a Mustache template.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum PageTemplate {
    /// The template itself.
    Html(String),
    /// The file that holds it, as it was typed.
    File {
        /// Which file.
        path: PathBuf,
        /// Line in the config file, for messages; 0 = not from a file.
        line: usize,
    },
}

/// What a room covers.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Route {
    /// Which host.
    pub host: Host,
    /// Path prefix, normalised, starts with `/`; covers whole segments.
    pub path: String,
}

impl Route {
    /// Whether there are requests that both cover.
    #[must_use]
    pub fn meets(&self, other: &Self) -> bool {
        let is_on_one_host =
            self.host == other.host || [&self.host, &other.host].contains(&&Host::Any);
        is_on_one_host
            && (is_at_or_below(&self.path, &other.path) || is_at_or_below(&other.path, &self.path))
    }
}

/// By whole segments; both are normalised.
fn is_at_or_below(path: &str, top: &str) -> bool {
    let rest = path.strip_prefix(top.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Which host a route covers.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Host {
    /// Any host (`host` was left out).
    Any,
    /// This one: lower case, no port, no trailing dot.
    Name(String),
}

/// The ticket's cookie.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CookieSettings {
    /// What follows `__anteroom_`; `None` = 8 hex digits of the room's name.
    pub suffix: Option<String>,
    /// `SameSite`.
    pub same_site: SameSite,
    /// `Secure`.
    pub secure: Secure,
}

/// `cookie_attributes.samesite`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum SameSite {
    /// `Lax`.
    #[default]
    Auto,
    /// `Lax`.
    Lax,
    /// `None`; needs `Secure`.
    None,
    /// `Strict`.
    Strict,
}

/// `cookie_attributes.secure`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Secure {
    /// When the visitor came by HTTPS (told by a trusted proxy).
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Which commands in the origin's answers are obeyed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct OriginCommands {
    /// `Anteroom-Command: revoke` ends the visitor's session.
    pub revoke: bool,
}

/// One expression that lets requests pass untouched.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct BypassRule {
    /// CEL, over the variables that the gateway documents.
    pub expression: String,
    /// Line in the file, for messages; 0 = not from a file.
    pub line: usize,
}
