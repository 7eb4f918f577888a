//! Meaning of `[server]`: checked settings of the process.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anteroom_room::time::DurationMs;
use ipnet::IpNet;

/// Settings of the process. Its `Debug` shows the number of ticket keys, and none of them.
#[derive(Clone, PartialEq)]
pub struct ServerConfig {
    /// Address for visitors.
    pub listen: SocketAddr,
    /// Certificates for visitors. The first one is also for clients that name no known host;
    /// without any, visitors are served without TLS.
    pub tls: Vec<TlsConfig>,
    /// Address at which visitors are redirected to https.
    pub redirect_from: Option<SocketAddr>,
    /// Port of https as visitors see it; `None` = the port of `listen`.
    pub redirect_to_port: Option<u16>,
    /// Address for operators; loopback by default.
    pub admin: SocketAddr,
    /// File of operators' tokens; `None` = one is generated into `data_dir`.
    pub admin_token_file: Option<PathBuf>,
    /// Host names that operators may use besides those of a loopback address, in lower case.
    pub admin_hosts: Vec<String>,
    /// Whether operators connect by https, with the certificates of `tls`.
    pub admin_tls: bool,
    /// Folder of the journal and generated keys.
    pub data_dir: PathBuf,
    /// AES-256 keys of tickets, newest first; empty = generate one into `data_dir`.
    pub ticket_keys: Vec<[u8; 32]>,
    /// Name of this node's data center, as it appears in the state.
    pub data_center: String,
    /// Most bytes of the history of rooms in a store.
    pub history_bytes: u64,
    /// Proxies whose `X-Forwarded-*` headers are trusted.
    pub trusted_proxies: Vec<IpNet>,
    /// Names of further headers that only trusted proxies may send, in lower case.
    pub trusted_proxy_headers: Vec<String>,
    /// Whether a room covers paths that an origin would only find by decoding twice.
    pub guard_double_decoding: bool,
    /// Whether plain requests take the fast path.
    pub fast_path: bool,
    /// Timeouts.
    pub timeouts: Timeouts,
    /// Limits on what clients send.
    pub size_limits: SizeLimits,
    /// Limits on connections to origins and their responses.
    pub origins: OriginLimits,
}

impl fmt::Debug for ServerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Destructured, so that a new field cannot be forgotten here.
        let Self {
            listen,
            tls,
            redirect_from,
            redirect_to_port,
            admin,
            admin_token_file,
            admin_hosts,
            admin_tls,
            data_dir,
            ticket_keys,
            data_center,
            history_bytes,
            trusted_proxies,
            trusted_proxy_headers,
            guard_double_decoding,
            fast_path,
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
            .field("admin_tls", admin_tls)
            .field("data_dir", data_dir)
            .field("ticket_keys", &format_args!("[{} keys]", ticket_keys.len()))
            .field("data_center", data_center)
            .field("history_bytes", history_bytes)
            .field("trusted_proxies", trusted_proxies)
            .field("trusted_proxy_headers", trusted_proxy_headers)
            .field("guard_double_decoding", guard_double_decoding)
            .field("fast_path", fast_path)
            .field("timeouts", timeouts)
            .field("size_limits", size_limits)
            .field("origins", origins)
            .finish()
    }
}

impl ServerConfig {
    /// Returns the keys whose values differ in `next` and take effect only with a restart.
    #[must_use]
    pub fn changed_until_restart(&self, next: &Self) -> Vec<&'static str> {
        // Destructured, so that a new field cannot be forgotten here.
        let Self {
            listen,
            tls,
            redirect_from,
            redirect_to_port,
            admin,
            admin_token_file: _,
            admin_hosts,
            admin_tls,
            data_dir,
            ticket_keys: _,
            data_center,
            history_bytes,
            trusted_proxies,
            trusted_proxy_headers,
            guard_double_decoding: _,
            fast_path,
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
            ("admin_tls", *admin_tls != next.admin_tls),
            ("data_dir", *data_dir != next.data_dir),
            ("data_center", *data_center != next.data_center),
            ("history_bytes", *history_bytes != next.history_bytes),
            ("trusted_proxies", *trusted_proxies != next.trusted_proxies),
            (
                "trusted_proxy_headers",
                *trusted_proxy_headers != next.trusted_proxy_headers,
            ),
            ("fast_path", *fast_path != next.fast_path),
            ("timeouts", *timeouts != next.timeouts),
            ("size_limits", *size_limits != next.size_limits),
            ("size_limits.origin_*", *origins != next.origins),
        ];
        let changed = changes.into_iter().filter(|(_, has_changed)| *has_changed);
        changed.map(|(key, _)| key).collect()
    }
}

/// Files of a certificate and its key.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TlsConfig {
    /// Number in the file: 0 = `tls_certificate`, others by their index in `more_certificates`,
    /// from
    /// 1. Numbers may be missing, because entries with mistakes are left out.
    pub number: usize,
    /// Line of the config file that names the certificate; 0 if none does.
    pub line: usize,
    /// File of the certificates in PEM, the server's own first.
    pub certificate: PathBuf,
    /// File of its private key in PEM.
    pub key: PathBuf,
}

impl TlsConfig {
    /// Makes relative paths relative to `folder`, that of the config file.
    pub fn resolve_paths(&mut self, folder: &Path) {
        self.certificate = folder.join(&self.certificate);
        self.key = folder.join(&self.key);
    }
}

/// Timeouts of the gateway.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Timeouts {
    /// Time until a client has sent its request head.
    pub request_head: DurationMs,
    /// Time until a connection to the origin is established.
    pub origin_connect: DurationMs,
    /// Time until the head of the origin's response arrives.
    pub origin_response: DurationMs,
    /// Time between two pieces of a body, in either direction.
    pub body_idle: DurationMs,
    /// Time until the next request on a connection that is kept open.
    pub keep_alive: DurationMs,
    /// Time until open requests end after SIGTERM.
    pub drain: DurationMs,
}

/// Limits on what clients send.
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
    /// Bytes of a body that must arrive or be read in a second, on average; 0 = no limit.
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

/// Limits on connections to origins and on their response heads.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct OriginLimits {
    /// Time for which an unused connection is kept.
    pub idle: DurationMs,
    /// Bytes of a response head.
    pub head_bytes: usize,
    /// Headers of a response.
    pub headers: usize,
}
