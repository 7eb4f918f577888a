//! What a run is about: the limit, the nodes, the crowd, the network.

use anteroom_limit::fixed_window::FixedWindow;
use anteroom_limit::gcra::Gcra;
use anteroom_limit::lending::widened::LeasedLimit;
use anteroom_limit::policy::Policy;
use anteroom_limit::rate::Rate;
use anteroom_limit::sliding_log::SlidingLog;
use anteroom_limit::sliding_window::SlidingWindow;
use anteroom_limit::sub_windows::SubWindows;
use anteroom_limit::time::DurationUs;
use anteroom_limit::token_bucket::TokenBucket;

use crate::lending::draw::Draw;

/// How messages travel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Network {
    pub(crate) delay_max: u64,
    /// In a thousand.
    pub(crate) lost: u64,
    pub(crate) doubled: u64,
}

/// How calls come to a node.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Crowd {
    /// This many microseconds apart, on average.
    Steady(u64),
    /// Many at once, this many microseconds apart on average.
    Bursts(u64, u64),
}

/// The kinds of limits, in one window.
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

/// A limit of a kind.
pub(crate) fn policy(kind: Kind, calls: u32, window: DurationUs, burst: u32) -> Policy {
    let rate = Rate::new(calls, window).expect("it can be had");
    match kind {
        Kind::Log => Policy::SlidingLog(SlidingLog::new(rate).expect("it can be had")),
        Kind::Fixed => Policy::FixedWindow(FixedWindow::new(rate)),
        Kind::Sliding => Policy::SlidingWindow(SlidingWindow::new(rate)),
        Kind::Sub(parts) => {
            Policy::SubWindows(SubWindows::new(rate, parts).expect("it can be had"))
        }
        Kind::Strict(parts) => {
            Policy::SubWindows(SubWindows::strict(rate, parts).expect("it can be had"))
        }
        Kind::Bucket => {
            Policy::TokenBucket(TokenBucket::new(rate, burst, burst).expect("it can be had"))
        }
        Kind::Gcra => Policy::Gcra(Gcra::new(rate, burst).expect("it can be had")),
    }
}

/// A limit that can be lent, with leases that are sometimes longer than usual.
pub(crate) fn lending(draw: &mut Draw, kind: Kind, window: DurationUs) -> LeasedLimit {
    let calls = u32::try_from(draw.within(2, 40)).expect("it is small");
    let burst = u32::try_from(draw.within(2, 40)).expect("it is small");
    let policy = policy(kind, calls, window, burst);
    let ttl = draw.pick(&[window.0 / 20, window.0 / 10, window.0 / 4, window.0]);
    LeasedLimit::with_ttl(policy, DurationUs(ttl.clamp(200_000, 5_000_000)))
        .or_else(|_| LeasedLimit::new(policy))
        .unwrap_or_else(|_| {
            let policy = self::policy(kind, calls, window, burst + calls);
            LeasedLimit::new(policy).expect("a burst above the rate is enough")
        })
}

pub(crate) fn crowd(draw: &mut Draw, window: DurationUs) -> Crowd {
    match draw.below(3) {
        0 => Crowd::Steady(draw.within(window.0 / 200, window.0 / 5)),
        1 => Crowd::Bursts(draw.within(2, 60), draw.within(window.0 / 20, window.0 * 2)),
        _ => Crowd::Steady(draw.within(window.0 / 20, window.0)),
    }
}
