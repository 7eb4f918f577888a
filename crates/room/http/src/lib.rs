//! Waiting rooms over HTTP.
//!
//! [`layer`] is the `tower` layer that lets a node's rooms decide about each request. [`bypass`]
//! has the rules by which requests pass without a decision. [`page`] is the waiting page in every
//! language. [`waiting`] sends it, or the same facts as JSON or as a stream of events.
//!
//! Deliberately absent: decisions about admission (the node's rooms make them) and how a request
//! reaches its origin (`anteroom-proxy`).

pub mod bypass;
pub mod layer;
pub mod page;
pub mod waiting;

use anteroom_config::Checks;
use anteroom_proxy::path::Readings;

/// Checks of bypass rules and of page templates, which the config crate does not compile.
pub const CHECKS: Checks = Checks {
    bypass: bypass::BypassRules::check,
    bypass_warning: bypass::BypassRules::remark,
    path: |path| {
        let readings = Readings::of(path);
        readings.err().map(|error| error.to_string())
    },
    template: |template| {
        let mistakes = page::CustomPage::mistakes(template).into_iter();
        mistakes
            .map(|mistake| (mistake.line, mistake.message))
            .collect()
    },
    lacks_kafka: false,
};
