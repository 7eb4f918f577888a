//! Hooks for checks that need what this crate does not have: a compiler of bypass rules, one of
//! page templates, and the features of the program.

use crate::model::BypassRule;

/// Checks that the caller supplies, because this crate cannot make them. Their mistakes are
/// reported together with all others.
#[derive(Clone, Copy, Debug)]
pub struct Checks {
    /// Returns the mistakes of a bypass rule.
    pub bypass: fn(&BypassRule) -> Vec<String>,
    /// Returns a warning about a bypass rule without mistakes that probably does not do what is
    /// meant.
    pub bypass_warning: fn(&BypassRule) -> Option<String>,
    /// Returns why a path can never match a request; `None` if it can.
    pub path: fn(&str) -> Option<String>,
    /// Returns the mistakes of a page template: line in it, from 1, and text.
    pub template: fn(&str) -> Vec<(usize, String)>,
    /// Whether the program was built without Kafka.
    pub lacks_kafka: bool,
}

impl Default for Checks {
    /// Accepts every text.
    fn default() -> Self {
        Self {
            bypass: |_| Vec::new(),
            bypass_warning: |_| None,
            path: |_| None,
            template: |_| Vec::new(),
            lacks_kafka: false,
        }
    }
}
