//! Setup of a run: the limit, the nodes, the traffic, the network.

use anteroom_limit::fixed_window::FixedWindow;
use anteroom_limit::gcra::Gcra;
use anteroom_limit::leases::widened::LeasedLimit;
use anteroom_limit::policy::Policy;
use anteroom_limit::rate::Rate;
use anteroom_limit::sliding_log::SlidingLog;
use anteroom_limit::sliding_window::SlidingWindow;
use anteroom_limit::sub_windows::SubWindows;
use anteroom_limit::time::DurationUs;
use anteroom_limit::token_bucket::TokenBucket;

use crate::leases::draw::Draw;

/// Behavior of the network.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Network {
    pub(crate) delay_max: u64,
    /// Messages lost in a thousand; `doubled` likewise.
    pub(crate) lost: u64,
    pub(crate) doubled: u64,
}

/// Arrival of requests at a node.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Traffic {
    /// One request at a time, this many microseconds apart on average.
    Steady(u64),
    /// Many at once, this many microseconds apart on average.
    Bursts(u64, u64),
}

/// Kind of limit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    Log,
    Fixed,
    Sliding,
    Sub(u32),
    Strict(u32),
    Bucket,
    Gcra,
}

pub(crate) const KINDS: [Kind; 8] = [
    Kind::Log,
    Kind::Fixed,
    Kind::Sliding,
    Kind::Sub(4),
    Kind::Strict(4),
    Kind::Strict(20),
    Kind::Bucket,
    Kind::Gcra,
];

/// Returns a limit of this kind.
pub(crate) fn policy(kind: Kind, requests: u32, window: DurationUs, burst: u32) -> Policy {
    let rate = Rate::new(requests, window).expect("the rate is in range");
    match kind {
        Kind::Log => Policy::SlidingLog(SlidingLog::new(rate).expect("in range")),
        Kind::Fixed => Policy::FixedWindow(FixedWindow::new(rate)),
        Kind::Sliding => Policy::SlidingWindow(SlidingWindow::new(rate)),
        Kind::Sub(parts) => Policy::SubWindows(SubWindows::new(rate, parts).expect("in range")),
        Kind::Strict(parts) => {
            Policy::SubWindows(SubWindows::strict(rate, parts).expect("in range"))
        }
        Kind::Bucket => {
            Policy::TokenBucket(TokenBucket::new(rate, burst, burst).expect("in range"))
        }
        Kind::Gcra => Policy::Gcra(Gcra::new(rate, burst).expect("in range")),
    }
}

/// Draws a limit with leases, some of them longer than the default.
pub(crate) fn leased_limit(draw: &mut Draw, kind: Kind, window: DurationUs) -> LeasedLimit {
    let requests = u32::try_from(draw.within(2, 40)).expect("it is small");
    let burst = u32::try_from(draw.within(2, 40)).expect("it is small");
    let policy = policy(kind, requests, window, burst);
    let ttl = draw.pick(&[window.0 / 20, window.0 / 10, window.0 / 4, window.0]);
    LeasedLimit::with_ttl(policy, DurationUs(ttl.clamp(200_000, 5_000_000)))
        .or_else(|_| LeasedLimit::new(policy))
        .unwrap_or_else(|_| {
            let policy = self::policy(kind, requests, window, burst + requests);
            LeasedLimit::new(policy).expect("a burst above the rate is enough")
        })
}

pub(crate) fn traffic(draw: &mut Draw, window: DurationUs) -> Traffic {
    match draw.below(3) {
        0 => Traffic::Steady(draw.within(window.0 / 200, window.0 / 5)),
        1 => Traffic::Bursts(draw.within(2, 60), draw.within(window.0 / 20, window.0 * 2)),
        _ => Traffic::Steady(draw.within(window.0 / 20, window.0)),
    }
}
