//! Page of an operator as a visitor would see it, for a preview.

use anteroom_config::language::Language;
use anteroom_room::queue_position::WaitRange;
use anteroom_room::time::DurationMs;

use super::custom::{CustomPage, Mistake};
use super::html::Links;
use super::states;
use crate::waiting::PATHS;

/// Addresses of the page.
const LINKS: Links<'static> = Links {
    paths: &PATHS,
    query: "room=full&lang=en&back=%2F",
    back: "/",
    entry: "",
};
/// Wait without another number, in minutes.
const WAIT_MINUTES: u64 = 10;
/// Longest wait of a preview, in minutes: a week.
const WAIT_MINUTES_MAX: u64 = 7 * 24 * 60;

/// Situation of the visitor who sees the page.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct PreviewState {
    /// Whether all visitors wait.
    pub queue_all: bool,
    /// `fifo`, `random`, `passthrough` or `reject`; another word is `fifo`.
    pub queueing_method: String,
    /// Whether the visitor waits for the start of an event.
    pub is_prequeue: bool,
    /// Whether there is a draw at the start.
    pub is_shuffled: bool,
    /// Wait, in minutes.
    pub wait_minutes: Option<u64>,
}

impl PreviewState {
    const fn name(&self, is_random: bool, is_rejecting: bool) -> &'static str {
        if self.queue_all {
            "queue-all"
        } else if self.is_prequeue && self.is_shuffled {
            "draw"
        } else if self.is_prequeue {
            "early"
        } else if is_rejecting {
            "rejecting"
        } else if is_random {
            "lot"
        } else {
            "full"
        }
    }
}

/// Returns the page that a template makes; `None` if the visitor would not wait.
///
/// # Errors
///
/// All mistakes of the template.
pub fn preview(html: &str, state: &PreviewState) -> Result<Option<String>, Vec<Mistake>> {
    let page = CustomPage::new(html)?;
    let method = state.queueing_method.as_str();
    if method == "passthrough" && !state.queue_all && !state.is_prequeue {
        return Ok(None);
    }
    let minutes = state.wait_minutes.unwrap_or(WAIT_MINUTES);
    let wait = DurationMs::from_secs(minutes.min(WAIT_MINUTES_MAX) * 60);
    let wait = WaitRange {
        low: wait,
        middle: wait,
        high: wait,
    };
    let name = state.name(method == "random", method == "reject");
    let view = states::view_with_wait(name, Language::English, Some(wait));
    Ok(Some(page.page(&view, LINKS, false).into_text()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preview_shows_the_state_that_was_asked_for() {
        let html = "{{#waitTimeKnown}}<p>{{waitTime}}</p>{{/waitTimeKnown}}\
                    {{#queueAll}}<p>all</p>{{/queueAll}}";
        let check = |state: PreviewState, expected: Option<&str>| {
            let page = preview(html, &state).unwrap();
            let shows = match (&page, expected) {
                (Some(page), Some(expected)) => page.contains(expected),
                (page, expected) => page.is_none() && expected.is_none(),
            };
            assert!(shows, "{state:?}: {page:?}");
        };
        let wait = PreviewState {
            wait_minutes: Some(42),
            ..PreviewState::default()
        };
        check(PreviewState::default(), Some("<p>10</p>"));
        check(wait, Some("<p>42</p>"));
        let all = PreviewState {
            queue_all: true,
            ..PreviewState::default()
        };
        check(all, Some("<p>all</p>"));
        let passing = PreviewState {
            queueing_method: "passthrough".to_owned(),
            ..PreviewState::default()
        };
        check(passing, None);
        assert!(preview("{{#open}}", &PreviewState::default()).is_err());
    }
}
