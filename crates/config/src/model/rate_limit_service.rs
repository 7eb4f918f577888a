//! What `[rate_limit_service]` means: where Envoy asks, and by which rules it is answered.

use std::net::SocketAddr;
use std::path::PathBuf;

/// Envoy's rate limit service.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RateLimitServiceConfig {
    /// Where gRPC is spoken. This or `http` is there.
    pub grpc: Option<SocketAddr>,
    /// Where JSON is spoken.
    pub http: Option<SocketAddr>,
    /// The folder of the files of limits.
    pub config_dir: PathBuf,
    /// Whether files of one domain go together.
    pub merge_domains: bool,
    /// Where calls are counted.
    pub store: RateLimitStore,
    /// What is answered while they cannot be counted.
    pub on_store_failure: OnStoreFailure,
    /// How many counters are remembered at once, if they are counted here.
    pub keys_max: usize,
    /// Decide and count, and reject nobody.
    pub shadow_mode: bool,
    /// Whether requests that are rejected are charged, too.
    pub charge_rejected: bool,
    /// What responses are to tell clients.
    pub headers: RateLimitHeaders,
    /// Whether answers tell what files say of the limits that were passed.
    pub dynamic_metadata: bool,
}

/// Where calls are counted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RateLimitStore {
    /// In this process.
    Local,
    /// At the server of `[store]`, for all nodes together.
    Valkey,
}

/// What is answered while the store is away.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum OnStoreFailure {
    /// Everything goes through.
    Open,
    /// An error, of which Envoy makes what it was told to.
    Closed,
}

/// Headers about the limit that is nearest.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RateLimitHeaders {
    /// None.
    None,
    /// `RateLimit-Limit`, `-Remaining` and `-Reset`.
    RateLimit,
    /// The same with `X-` before them.
    XRateLimit,
}
