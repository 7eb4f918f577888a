//! Count of an algorithm beside the true count. Both count all requests, allowed or not, as the
//! article draws it.

use anteroom_limit::algorithm::Algorithm as _;
use anteroom_limit::cost::Cost;
use anteroom_limit::policy::{Policy, State};
use anteroom_limit::rate::Rate;
use anteroom_limit::time::{DurationUs, TimestampUs};

use crate::lab::algorithm::raised;
use crate::lab::oracle::Sliding;
use crate::lab::outcome::{Decision, Fate};
use crate::lab::traffic::Traffic;

/// Moments of a curve: more than a chart has shown pixels for.
const MOMENTS: u64 = 600;

/// Counts at one moment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Counted {
    pub(crate) at: TimestampUs,
    /// True number of requests in the last window.
    pub(crate) truth: u64,
    /// Count of the algorithm, rounded up.
    pub(crate) estimate: u64,
}

/// Returns the counts of one client. `None` if the algorithm has no counts.
pub(crate) fn counted(policy: &Policy, traffic: &Traffic, client: u32) -> Option<Vec<Counted>> {
    let unlimited = raised(policy)?;
    let rate = policy.rate();
    let (mut state, mut sliding) = (State::default(), Sliding::default());
    let requests = traffic
        .requests
        .iter()
        .filter(|request| request.client == client);
    let mut requests = requests.peekable();
    let moments = moments(traffic.span);
    let counted = moments.map(|at| {
        while let Some(request) = requests.next_if(|request| request.at <= at) {
            unlimited.step(&mut state, request.at, Cost::ONE);
            sliding.add(request.at);
        }
        let seen = unlimited.step(&mut state, at, Cost::Peek);
        Counted {
            at,
            truth: sliding.count(rate, at),
            estimate: u64::from(u32::MAX - seen.remaining),
        }
    });
    Some(counted.collect())
}

/// Returns how many requests of one client were allowed in the last window. Each moment has the
/// most since the moment before, so that no peak is lost.
pub(crate) fn admitted(
    rate: Rate,
    decisions: &[Decision],
    client: u32,
    span: (TimestampUs, TimestampUs),
) -> Vec<(TimestampUs, u64)> {
    let is_ours = |one: &&Decision| one.client == client && one.fate == Fate::Admitted;
    let mut ours = decisions.iter().filter(is_ours).peekable();
    let mut sliding = Sliding::default();
    let counted = moments(span).map(|at| {
        let mut most = 0;
        while let Some(one) = ours.next_if(|one| one.at <= at) {
            sliding.count(rate, one.at);
            sliding.add(one.at);
            most = most.max(sliding.count(rate, one.at));
        }
        (at, most.max(sliding.count(rate, at)))
    });
    counted.collect()
}

fn moments((from, to): (TimestampUs, TimestampUs)) -> impl Iterator<Item = TimestampUs> {
    let length = to.since(from).0;
    (0..=MOMENTS).map(move |at| from + DurationUs(length / MOMENTS * at))
}

#[cfg(test)]
mod tests {
    use anteroom_limit::registry::AlgorithmKind;

    use super::*;
    use crate::lab::algorithm::{Settings, all};
    use crate::lab::traffic::Request;

    fn minute_of_100() -> Settings {
        Settings {
            rate: Rate::new(100, DurationUs::from_secs(60)).unwrap(),
            sub_windows: 4,
            burst: None,
            queue: 0,
        }
    }

    /// A request every second of two minutes.
    fn steady() -> Traffic {
        let requests = (0..=120).map(|secs| Request {
            at: TimestampUs(secs * 1_000_000),
            client: 0,
        });
        Traffic::new(String::new(), requests.collect())
    }

    fn at(algorithm: AlgorithmKind, secs: u64) -> (u64, u64) {
        let policy = minute_of_100().policy(algorithm).unwrap();
        let counted = counted(&policy, &steady(), 0).unwrap();
        let found = counted.iter().find(|one| one.at.0 == secs * 1_000_000);
        let found = found.unwrap();
        (found.truth, found.estimate)
    }

    #[test]
    fn a_fixed_window_forgets_at_its_edge_and_others_do_not() {
        // 43 s into the second minute: 44 requests, and of the 60 before 17/60.
        assert_eq!(at(AlgorithmKind::FixedWindow, 103), (60, 44));
        assert_eq!(at(AlgorithmKind::SlidingWindow, 103), (60, 44 + 17));
        assert_eq!(at(AlgorithmKind::FixedWindow, 60), (60, 1));
        assert_eq!(at(AlgorithmKind::SlidingWindow, 60), (60, 61));
        assert_eq!(at(AlgorithmKind::SubWindowsStrict, 74), (60, 75));
    }

    #[test]
    fn only_algorithms_with_counts_can_be_drawn() {
        for one in all() {
            let policy = minute_of_100().policy(one).unwrap();
            let is_drawn = counted(&policy, &steady(), 0).is_some();
            assert_eq!(is_drawn, policy.counters().is_some(), "{one:?}");
        }
    }

    #[test]
    fn no_peak_is_lost_between_two_moments() {
        let rate = Rate::new(100, DurationUs::from_secs(1)).unwrap();
        let decision = |at| Decision {
            at: TimestampUs(at),
            client: 0,
            fate: Fate::Admitted,
        };
        let decisions = [decision(0), decision(1), decision(2)];
        let span = (TimestampUs(0), TimestampUs(6_000_000_000));
        let admitted = admitted(rate, &decisions, 0, span);
        assert_eq!(admitted[0], (TimestampUs(0), 1));
        assert_eq!(admitted[1], (TimestampUs(10_000_000), 3));
        assert_eq!(admitted[2], (TimestampUs(20_000_000), 0));
    }
}
