//! What `[server]` means: the process and not one room, checked.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anteroom_room::time::DurationMs;
use ipnet::IpNet;

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
    pub timeouts: Timeouts,
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
            timeouts,
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
            .field("timeouts", timeouts)
            .field("size_limits", size_limits)
            .field("origins", origins)
            .finish()
    }
}

impl ServerConfig {
    /// The keys whose values differ in `next` and that take effect with a restart only.
    #[must_use]
    pub fn changed_until_restart(&self, next: &Self) -> Vec<&'static str> {
        // Taken apart, so that a new field cannot be forgotten here.
        let Self {
            listen,
            tls,
            redirect_from,
            redirect_to_port,
            admin,
            admin_token_file: _,
            admin_hosts,
            data_dir,
            ticket_keys: _,
            data_center,
            trusted_proxies,
            trusted_proxy_headers,
            guard_double_decoding: _,
            timeouts,
            size_limits,
            origins,
        } = self;
        let changes = [
            ("listen", *listen != next.listen),
            ("tls_certificate", tls.is_empty() != next.tls.is_empty()),
            ("redirect_from", *redirect_from != next.redirect_from),
            (
                "redirect_to_port",
                *redirect_to_port != next.redirect_to_port,
            ),
            ("admin", *admin != next.admin),
            ("admin_hosts", *admin_hosts != next.admin_hosts),
            ("data_dir", *data_dir != next.data_dir),
            ("data_center", *data_center != next.data_center),
            ("trusted_proxies", *trusted_proxies != next.trusted_proxies),
            (
                "trusted_proxy_headers",
                *trusted_proxy_headers != next.trusted_proxy_headers,
            ),
            ("timeouts", *timeouts != next.timeouts),
            ("size_limits", *size_limits != next.size_limits),
            ("size_limits.origin_*", *origins != next.origins),
        ];
        let changed = changes.into_iter().filter(|(_, has_changed)| *has_changed);
        changed.map(|(key, _)| key).collect()
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
pub struct Timeouts {
    /// For a client to send its request head.
    pub request_head: DurationMs,
    /// For a connection to the origin.
    pub origin_connect: DurationMs,
    /// For the head of the origin's answer.
    pub origin_response: DurationMs,
    /// Between two pieces of a body, in either direction.
    pub body_idle: DurationMs,
    /// For the next request on a connection that is kept open.
    pub keep_alive: DurationMs,
    /// For open requests after SIGTERM.
    pub drain: DurationMs,
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
    pub idle: DurationMs,
    /// Bytes of the head of an answer.
    pub head_bytes: usize,
    /// Headers of an answer.
    pub headers: usize,
}
