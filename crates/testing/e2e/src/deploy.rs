//! Readers for the tests of `deploy/`: its files, the docs about them and the program must agree.
//!
//! Nothing here runs a program. `cargo xtask test` lets systemd, Prometheus and Kubernetes check
//! the files, where they are installed. `tests/it/haproxy` is the exception: it runs a real HAProxy
//! with the files of a page.

pub mod config;
pub mod files;
pub mod metrics;
pub mod unit;
pub mod yaml;
