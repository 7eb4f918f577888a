//! The keys of `[[limit]]`, each declared once: its name, what it may hold, its default.
//!
//! What they mean together is judged where they are read.

use anteroom_limit::sub_windows::PARTS_MOST;
use anteroom_room::time::Span;

use super::policy::AlgorithmKind;
use crate::keys::time_key;
use crate::kind::{Choice, Duration, Refusal, Switch, Text, Whole};
use crate::limit_stores::LimitStore;
use crate::model::{LegacyReset, LimitName, OnLimitStoreFailure, WithoutKey};
use crate::rate_text::{RateText, RateTextError};
use crate::reader::Key;

pub(super) const NAME: Key<Text<LimitName>> = Key {
    name: "name",
    kind: Text {
        allowed: "1 to 64 of A-Z a-z 0-9 - _",
        read: |text| LimitName::new(text).ok_or(Refusal::PLAIN),
    },
    default: None,
};
pub(super) const LIMIT: Key<Text<RateText>> = Key {
    name: "limit",
    kind: Text {
        allowed: "calls, a slash and a time from 1s to 31d, such as \"100/s\", \"1000/h\" or \
                  \"5/15m\"",
        read: rate,
    },
    default: None,
};
pub(super) const ALGORITHM: Key<Choice<AlgorithmKind>> = Key {
    name: "algorithm",
    kind: Choice(&[
        ("sub-windows-strict", AlgorithmKind::SubWindowsStrict),
        ("sliding-log", AlgorithmKind::SlidingLog),
        ("fixed-window", AlgorithmKind::FixedWindow),
        ("sliding-window", AlgorithmKind::SlidingWindow),
        ("sub-windows", AlgorithmKind::SubWindows),
        ("token-bucket", AlgorithmKind::TokenBucket),
        ("gcra", AlgorithmKind::Gcra),
        ("leaky-bucket", AlgorithmKind::LeakyBucket),
    ]),
    default: Some("\"sub-windows-strict\""),
};
pub(super) const SUB_WINDOWS: Key<Whole<u32>> = whole("sub_windows", 1, PARTS_MOST, Some("10"));
// What is left out here follows from the limit.
pub(super) const BURST: Key<Whole<u32>> = whole("burst", 1, u32::MAX, None);
pub(super) const INITIAL_BURST: Key<Whole<u32>> = whole("initial_burst", 1, u32::MAX, None);
pub(super) const QUEUE: Key<Whole<u32>> = whole("queue", 0, u32::MAX, None);

const fn whole(
    name: &'static str,
    min: u32,
    max: u32,
    default: Option<&'static str>,
) -> Key<Whole<u32>> {
    let note = "";
    let kind = Whole { min, max, note };
    Key {
        name,
        kind,
        default,
    }
}

// Longer prefixes than 64 let one connection at home be billions of clients; shorter ones than 32
// are whole providers.
pub(super) const IPV6_PREFIX: Key<Whole<u8>> = Key {
    name: "ipv6_prefix",
    kind: Whole {
        min: 32,
        max: 128,
        note: "",
    },
    default: Some("64"),
};
pub(super) const WITHOUT_KEY: Key<Choice<WithoutKey>> = Key {
    name: "without_key",
    kind: Choice(&[
        ("client_address", WithoutKey::ClientAddress),
        ("skip", WithoutKey::Skip),
        ("reject", WithoutKey::Reject),
    ]),
    default: Some("\"client_address\""),
};
pub(super) const METHODS: Key<Text<String>> = Key {
    name: "methods",
    kind: Text {
        allowed: "the name of a method in capitals, such as \"POST\"",
        read: method,
    },
    default: None,
};
pub(super) const COST: Key<Whole<u32>> = whole("cost", 1, 1_000_000, Some("1"));

/// What becomes of a call that is over its limit, in one word.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum OnLimitKind {
    Reject,
    Delay,
    Wait,
}

impl OnLimitKind {
    /// As it is typed.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Reject => "reject",
            Self::Delay => "delay",
            Self::Wait => "wait",
        }
    }
}

pub(super) const ON_LIMIT: Key<Choice<OnLimitKind>> = Key {
    name: "on_limit",
    kind: Choice(&[
        (OnLimitKind::Reject.word(), OnLimitKind::Reject),
        (OnLimitKind::Delay.word(), OnLimitKind::Delay),
        (OnLimitKind::Wait.word(), OnLimitKind::Wait),
    ]),
    default: Some("\"reject\""),
};
// Browsers and proxies give up after a minute, and a call that is held keeps its connection.
pub(super) const DELAY_MAX: Key<Duration> =
    time_key("delay_max", 10, Span::from_secs(60), "\"5s\"");
pub(super) const SHADOW: Key<Switch> = switch("shadow");
pub(super) const COUNT_POLLING: Key<Switch> = switch("count_polling");

const fn switch(name: &'static str) -> Key<Switch> {
    Key {
        name,
        kind: Switch,
        default: Some("false"),
    }
}

/// Which headers an answer has: those of the IETF, those of old.
pub(super) const HEADERS: Key<Choice<(bool, bool)>> = Key {
    name: "headers",
    kind: Choice(&[
        ("ietf", (true, false)),
        ("legacy", (false, true)),
        ("both", (true, true)),
        ("none", (false, false)),
    ]),
    default: Some("\"ietf\""),
};
pub(super) const LEGACY_RESET: Key<Choice<LegacyReset>> = Key {
    name: "legacy_reset",
    kind: Choice(&[
        ("seconds", LegacyReset::Seconds),
        ("epoch", LegacyReset::Epoch),
    ]),
    default: Some("\"seconds\""),
};
// Fewer than 64 are forgotten before they could be limited; a hundred million take some ten GB.
pub(super) const KEYS_MAX: Key<Whole<usize>> = Key {
    name: "keys_max",
    kind: Whole {
        min: 64,
        max: 100_000_000,
        note: "",
    },
    default: Some("100000"),
};

pub(super) const STORE: Key<Choice<LimitStore>> = Key {
    name: "store",
    kind: Choice(LimitStore::CHOICES),
    default: Some("\"local\""),
};
pub(super) const ON_STORE_FAILURE: Key<Choice<OnLimitStoreFailure>> = Key {
    name: "on_store_failure",
    kind: Choice(&[
        ("bounded", OnLimitStoreFailure::Bounded),
        ("open", OnLimitStoreFailure::Open),
        ("closed", OnLimitStoreFailure::Closed),
        ("local", OnLimitStoreFailure::Local),
    ]),
    default: Some("\"bounded\""),
};

fn rate(text: &str) -> Result<RateText, Refusal> {
    text.parse().map_err(|error| match error {
        RateTextError::NoWindow => Refusal::hint("say in how long, as in \"100/min\""),
        RateTextError::NoUnit => Refusal::hint("add the unit: s, m, h, d or w"),
        RateTextError::Month => Refusal::hint("months differ in length; write 30d"),
        RateTextError::Calls => {
            Refusal::hint("calls are whole numbers up to 4294967295; half a call a second is 1/2s")
        }
        RateTextError::Unit | RateTextError::WindowOutOfRange => Refusal::PLAIN,
    })
}

fn method(text: &str) -> Result<String, Refusal> {
    let is_method = |text: &str| {
        let is_plain = |byte: u8| byte.is_ascii_uppercase() || matches!(byte, b'-' | b'_');
        (1..=32).contains(&text.len()) && text.bytes().all(is_plain)
    };
    if is_method(text) {
        return Ok(text.to_owned());
    }
    let capitals = text.to_ascii_uppercase();
    if is_method(&capitals) {
        return Err(Refusal::hint(format!("did you mean {capitals:?}?")));
    }
    Err(Refusal::PLAIN)
}
