//! Do the files in `deploy/`, the docs about them and the program agree with each other?
//!
//! Nothing here runs anything: these are readers for `tests/it/deploy`. What systemd, Prometheus
//! and Kubernetes themselves say about the files is asked by `cargo xtask test`, where they are
//! installed. `tests/it/haproxy` is the exception: it runs a real HAProxy with the files that a
//! page gives to paste.

pub mod config;
pub mod files;
pub mod metrics;
pub mod unit;
pub mod yaml;
