//! Helpers that the tests share.

use anteroom_gossip::{GossipCounts, Secret};
use anteroom_limit::cost::Cost;
use anteroom_limit::fixed_window::FixedWindow;
use anteroom_limit::policy::Policy;
use anteroom_limit::rate::Rate;
use anteroom_limit::time::{DurationUs, TimestampUs};
use anteroom_limit::verdict::Verdict;
use anteroom_limit_store::ClientKey;
use anteroom_limit_store::shared::{SharedAcquire, SharedCounts as _};

/// Start of a minute and of a day.
pub(crate) const START: TimestampUs = TimestampUs(1_767_225_600_000_000);

pub(crate) fn secret() -> Secret {
    Secret::new(b"a secret that nodes share").expect("it is long enough")
}

/// Returns a limit of requests per minute.
pub(crate) fn a_minute(requests: u32) -> Policy {
    let rate = Rate::new(requests, DurationUs::from_secs(60)).expect("it is in range");
    Policy::FixedWindow(FixedWindow::new(rate))
}

/// Acquires for the client that most tests use.
pub(crate) fn call(counts: &GossipCounts, policy: &Policy, cost: Cost) -> Verdict {
    call_of(counts, 1, policy, cost)
}

/// Acquires for a client.
pub(crate) fn call_of(counts: &GossipCounts, client: u128, policy: &Policy, cost: Cost) -> Verdict {
    let charge = SharedAcquire {
        limit: "api",
        policy,
        key: ClientKey(client),
        cost,
    };
    let mut verdicts = Vec::new();
    let decided = counts.try_acquire_now(&[charge], &mut verdicts);
    decided
        .expect("it never waits")
        .expect("it can keep windows");
    verdicts[0]
}

/// Returns the count of an event.
pub(crate) fn event(counts: &GossipCounts, word: &str) -> u64 {
    let events = counts.events();
    let found = events.iter().find(|(event, _)| *event == word);
    found.unwrap_or_else(|| panic!("{word} is none")).1
}
