//! What was asked for, so that whoever sees a result can have it again.

use anteroom_config::RateText;
use anteroom_limit::rate::Rate;
use serde_json::{Value, json};

use super::LimitsOptions;
use crate::lab::algorithm::Settings;

/// Names and values, in the order in which they are shown.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) rate: Rate,
    named: Vec<(&'static str, Value)>,
}

impl Asked {
    pub(super) fn new(options: &LimitsOptions, settings: &Settings) -> Self {
        let added = options.add_nodes.iter().map(ToString::to_string);
        let named = vec![
            ("limit", json!(RateText::of(settings.rate).to_string())),
            ("sub_windows", json!(settings.sub_windows)),
            ("burst", json!(settings.burst_or_limit())),
            ("queue", json!(settings.queue)),
            ("nodes", json!(options.nodes)),
            ("add_nodes", added.collect()),
            ("sticky", json!(options.sticky)),
            ("delay_ms", json!(options.delay.0 / 1_000)),
            ("interval_ms", json!(options.interval.0 / 1_000)),
            ("events_per_second", json!(options.events_per_second)),
            ("seed", json!(options.seed)),
        ];
        Self {
            rate: settings.rate,
            named,
        }
    }

    /// For programs.
    pub(crate) fn values(&self) -> impl Iterator<Item = (String, Value)> {
        let named = self.named.iter();
        named.map(|(name, value)| ((*name).to_owned(), value.clone()))
    }

    /// For people: `limit 100/m, sub-windows 4, ...`; without what was not asked for.
    pub(crate) fn words(&self) -> String {
        let told = self.named.iter().filter_map(|(name, value)| {
            let name = name.replace('_', "-");
            match value {
                Value::Bool(false) => None,
                Value::Bool(true) => Some(name),
                Value::Array(list) if list.is_empty() => None,
                Value::Array(list) => {
                    let list: Vec<&str> = list.iter().filter_map(Value::as_str).collect();
                    Some(format!("{name} {}", list.join(",")))
                }
                Value::String(text) => Some(format!("{name} {text}")),
                other => Some(format!("{name} {other}")),
            }
        });
        told.collect::<Vec<_>>().join(", ")
    }
}
