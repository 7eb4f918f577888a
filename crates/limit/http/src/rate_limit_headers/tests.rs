//! Rate limit headers of responses.

use std::collections::BTreeMap;

use anteroom_limit::time::DurationUs;

use super::*;

pub(crate) fn outcome(name: &str, verdict: Verdict) -> LimitOutcome<'_> {
    LimitOutcome {
        name,
        rate: Rate::new(100, DurationUs::from_secs(60)).unwrap(),
        policy_header: None,
        headers: LimitHeaders {
            ietf: true,
            legacy: None,
        },
        verdict,
    }
}

pub(crate) fn admitted(remaining: u32, full_after: DurationUs) -> Verdict {
    Verdict {
        outcome: Outcome::Allow {
            delay: DurationUs::ZERO,
        },
        remaining,
        full_after,
    }
}

pub(crate) fn rejected(retry_after: Option<DurationUs>) -> Verdict {
    Verdict {
        outcome: Outcome::Reject { retry_after },
        remaining: 0,
        full_after: DurationUs::from_secs(60),
    }
}

fn headers_of(outcomes: &[LimitOutcome<'_>]) -> BTreeMap<String, String> {
    let mut headers = HeaderMap::new();
    add(&mut headers, outcomes, || 1_700_000_000);
    let shown = |(name, value): (&HeaderName, &HeaderValue)| {
        (name.to_string(), value.to_str().unwrap().to_owned())
    };
    headers.iter().map(shown).collect()
}

fn lines(lines: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    lines.iter().map(owned).collect()
}

#[test]
fn several_limits_are_one_list() {
    let headers = headers_of(&[
        outcome("burst", admitted(99, DurationUs(29_000_001))),
        outcome("daily", rejected(Some(DurationUs(500_000)))),
    ]);
    let expected = lines(&[
        (
            "ratelimit-policy",
            "\"burst\";q=100;w=60, \"daily\";q=100;w=60",
        ),
        ("ratelimit", "\"burst\";r=99;t=30, \"daily\";r=0;t=1"),
    ]);
    assert_eq!(headers, expected);
}

#[test]
fn legacy_headers_state_the_nearest_limit() {
    let with = |name, verdict, reset| {
        let mut one = outcome(name, verdict);
        one.headers = LimitHeaders {
            ietf: false,
            legacy: Some(reset),
        };
        one
    };
    let near = admitted(3, DurationUs::from_secs(7));
    let far = admitted(80, DurationUs::from_secs(9));
    let check = |all: &[LimitOutcome<'_>], remaining, reset| {
        let expected = lines(&[
            ("x-ratelimit-limit", "100"),
            ("x-ratelimit-remaining", remaining),
            ("x-ratelimit-reset", reset),
        ]);
        assert_eq!(headers_of(all), expected);
    };
    let seconds = LegacyReset::Seconds;
    check(
        &[with("a", far, seconds), with("b", near, seconds)],
        "3",
        "7",
    );
    check(&[with("b", near, LegacyReset::Epoch)], "3", "1700000007");
    let over = rejected(Some(DurationUs::from_secs(5)));
    check(
        &[with("b", near, seconds), with("c", over, seconds)],
        "0",
        "5",
    );
}

#[test]
fn a_limit_without_headers_is_not_listed() {
    let mut hidden = outcome("a", admitted(1, DurationUs::ZERO));
    hidden.headers = LimitHeaders {
        ietf: false,
        legacy: None,
    };
    assert_eq!(headers_of(&[hidden]), BTreeMap::new());
}

#[test]
fn limits_of_the_origin_stay() {
    let mut headers = HeaderMap::new();
    headers.insert(RATE_LIMIT, HeaderValue::from_static("\"theirs\";r=1"));
    add(
        &mut headers,
        &[outcome("ours", admitted(2, DurationUs::ZERO))],
        || 0,
    );
    assert_eq!(headers.get_all(RATE_LIMIT).iter().count(), 2);
}
