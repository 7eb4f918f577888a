//! What is wrong with texts that mean something elsewhere? Asked of whoever knows.

use crate::model::BypassRule;

/// Says everything that is wrong with texts whose meaning is not known here; whoever compiles them
/// brings this, so that their mistakes are told together with all others.
#[derive(Clone, Copy, Debug)]
pub struct Checks {
    /// Of a bypass rule.
    pub bypass: fn(&BypassRule) -> Vec<String>,
    /// What a bypass rule does that is probably not meant; of rules without mistakes.
    pub bypass_remark: fn(&BypassRule) -> Option<String>,
    /// Of a page's template: line in it, from 1, and what is wrong there.
    pub template: fn(&str) -> Vec<(usize, String)>,
    /// Whether the program was built without Kafka.
    pub lacks_kafka: bool,
}

impl Default for Checks {
    /// Takes every text for right.
    fn default() -> Self {
        Self {
            bypass: |_| Vec::new(),
            bypass_remark: |_| None,
            template: |_| Vec::new(),
            lacks_kafka: false,
        }
    }
}
