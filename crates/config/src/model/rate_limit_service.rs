//! Meaning of `[rate_limit_service]`: the addresses that Envoy uses, and the rules of its limits.

use std::net::SocketAddr;
use std::path::PathBuf;

/// Envoy's rate limit service.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RateLimitServiceConfig {
    /// Address for gRPC. This or `http` is set.
    pub grpc: Option<SocketAddr>,
    /// Address for JSON over HTTP.
    pub http: Option<SocketAddr>,
    /// Folder of the files of limits.
    pub config_dir: PathBuf,
    /// Whether files of one domain are merged.
    pub merge_domains: bool,
    /// Store in which requests are counted.
    pub store: RateLimitStore,
    /// Behaviour while the store is unavailable.
    pub on_store_failure: OnStoreFailure,
    /// Most counters that are remembered at once, if this process counts.
    pub keys_max: usize,
    /// Whether requests are counted and decided, but none rejected.
    pub shadow_mode: bool,
    /// Whether rejected requests count as well.
    pub charge_rejected: bool,
    /// Headers of responses to clients.
    pub headers: RateLimitHeaders,
    /// Whether responses carry the metadata of the limits that matched.
    pub dynamic_metadata: bool,
}

/// Store in which requests are counted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RateLimitStore {
    /// Counts in this process.
    Local,
    /// Counts at the server of `[store]`, for all nodes together.
    Valkey,
}

/// Behaviour while the store is unavailable.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum OnStoreFailure {
    /// Allow every request.
    Open,
    /// Return an error; Envoy's own configuration decides what follows.
    Closed,
}

/// Response headers about the limit that is nearest to its end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RateLimitHeaders {
    /// None.
    None,
    /// `RateLimit-Limit`, `-Remaining` and `-Reset`.
    RateLimit,
    /// The `RateLimit-*` headers with `X-` before them.
    XRateLimit,
}
