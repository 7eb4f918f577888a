//! The meaning of a config file: checked values only.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anteroom_room::rules::Rules;
use anteroom_room::time::Span;
use ipnet::IpNet;

use crate::language::Language;
use crate::limit_stores::LimitStores;

use super::shared_store::StoreConfig;

mod limit;
mod origin;
mod rate_limit_service;

pub use limit::{
    Client, ClientKey, JwtConfig, JwtKeys, KeyPart, LegacyReset, LimitConfig, LimitHeaders,
    LimitName, LimitRoute, OnLimit, OnLimitStoreFailure, TokenPlace, WithoutKey,
};
pub use origin::{HealthCheck, Http2, Origin, RoomOrigins, Statuses};
pub use rate_limit_service::{
    OnStoreFailure, RateLimitHeaders, RateLimitServiceConfig, RateLimitStore,
};

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

/// What concerns the process and not one room. Its `Debug` shows how many keys there are, and none
/// of them.
#[derive(Clone, PartialEq)]
pub struct ServerConfig {
    /// Where visitors connect.
    pub listen: SocketAddr,
    /// Certificates towards visitors, the first also for those who ask for a name in none; without
    /// any they are served in the clear.
    pub tls: Vec<TlsConfig>,
    /// Where visitors connect who must be sent to https.
    pub redirect_from: Option<SocketAddr>,
    /// The port of https as visitors see it; `None` = that of `listen`.
    pub redirect_to_port: Option<u16>,
    /// Where operators connect; loopback unless told otherwise.
    pub admin: SocketAddr,
    /// The tokens of those who may change rooms; `None` = one is generated into `data_dir`.
    pub admin_token_file: Option<PathBuf>,
    /// Host names by which operators may ask beside those of a loopback address, in lower case.
    pub admin_hosts: Vec<String>,
    /// Where the journal and generated keys live.
    pub data_dir: PathBuf,
    /// AES-256 keys of tickets, newest first; empty = generate one into `data_dir`.
    pub ticket_keys: Vec<[u8; 32]>,
    /// Name of this node's data center, as it appears in the state.
    pub data_center: String,
    /// Proxies whose `X-Forwarded-*` headers are believed.
    pub trusted_proxies: Vec<IpNet>,
    /// Names of further headers that only those may send, in lower case.
    pub trusted_proxy_headers: Vec<String>,
    /// Whether a path is guarded that an origin would only find by decoding twice.
    pub guard_double_decoding: bool,
    /// How long to wait for what.
    pub time_outs: TimeOuts,
    /// How much to take from outside.
    pub size_limits: SizeLimits,
    /// What is kept of origins and taken from them.
    pub origins: OriginLimits,
}

impl fmt::Debug for ServerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Taken apart, so that a new field cannot be forgotten here.
        let Self {
            listen,
            tls,
            redirect_from,
            redirect_to_port,
            admin,
            admin_token_file,
            admin_hosts,
            data_dir,
            ticket_keys,
            data_center,
            trusted_proxies,
            trusted_proxy_headers,
            guard_double_decoding,
            time_outs,
            size_limits,
            origins,
        } = self;
        f.debug_struct("ServerConfig")
            .field("listen", listen)
            .field("tls", tls)
            .field("redirect_from", redirect_from)
            .field("redirect_to_port", redirect_to_port)
            .field("admin", admin)
            .field("admin_token_file", admin_token_file)
            .field("admin_hosts", admin_hosts)
            .field("data_dir", data_dir)
            .field("ticket_keys", &format_args!("[{} keys]", ticket_keys.len()))
            .field("data_center", data_center)
            .field("trusted_proxies", trusted_proxies)
            .field("trusted_proxy_headers", trusted_proxy_headers)
            .field("guard_double_decoding", guard_double_decoding)
            .field("time_outs", time_outs)
            .field("size_limits", size_limits)
            .field("origins", origins)
            .finish()
    }
}

/// Where a certificate and its key are.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TlsConfig {
    /// How the file counts it: 0 = `tls_certificate`, others by their places in
    /// `more_certificates`, from 1. Those before it may have been left out, because mistakes were
    /// in them.
    pub number: usize,
    /// The line of the config file that names the certificate; 0 if it stands in none.
    pub line: usize,
    /// Certificates in PEM, the own one first.
    pub certificate: PathBuf,
    /// Its private key in PEM.
    pub key: PathBuf,
}

impl TlsConfig {
    /// Its files are meant relative to the folder of the config file.
    pub fn resolve_paths(&mut self, folder: &Path) {
        self.certificate = folder.join(&self.certificate);
        self.key = folder.join(&self.key);
    }
}

/// How long to wait for what.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TimeOuts {
    /// For a client to send its request head.
    pub request_head: Span,
    /// For a connection to the origin.
    pub origin_connect: Span,
    /// For the head of the origin's answer.
    pub origin_response: Span,
    /// Between two pieces of a body, in either direction.
    pub body_idle: Span,
    /// For the next request on a connection that is kept open.
    pub keep_alive: Span,
    /// For open requests after SIGTERM.
    pub drain: Span,
}

/// How much to take from outside.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SizeLimits {
    /// Bytes of a request head.
    pub request_head_bytes: usize,
    /// Headers of a request.
    pub request_headers: usize,
    /// Bytes of a request's path and query.
    pub request_uri_bytes: usize,
    /// Bytes of a request body; 0 = no limit.
    pub request_body_bytes: u64,
    /// Bytes of a body that must come or be taken in a second, on average; 0 = no limit.
    pub body_bytes_per_second_min: u64,
    /// Client connections at once.
    pub connections: usize,
    /// Client connections at once from one address (IPv6: one /64 network); 0 = no limit.
    pub connections_per_address: usize,
    /// Requests by one connection, after which it is closed; 0 = no limit.
    pub requests_per_connection: u64,
    /// Requests at once on one HTTP/2 connection.
    pub http2_streams: u32,
}

/// What is kept of connections to origins, and how much of an answer's head is taken.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct OriginLimits {
    /// How long a connection is kept that nobody uses.
    pub idle: Span,
    /// Bytes of the head of an answer.
    pub head_bytes: usize,
    /// Headers of an answer.
    pub headers: usize,
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
