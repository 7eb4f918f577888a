//! Integration tests in one binary, because linking one for each file takes longer.

mod clusters;
mod deploy;
mod fast_path;
mod haproxy;
mod limit_clusters;
mod processes;
mod proxy;
mod raw_http;
mod replay;
mod truth;
