//! What do answers say of limits, to programs and to people?

use std::collections::BTreeMap;

use super::*;

fn said(name: &str, verdict: Verdict) -> Said<'_> {
    Said {
        name,
        rate: Rate::new(100, MicroSpan::from_secs(60)).unwrap(),
        usual: None,
        spoken: LimitHeaders {
            ietf: true,
            legacy: None,
        },
        verdict,
    }
}

fn admitted(remaining: u32, full_after: MicroSpan) -> Verdict {
    Verdict {
        outcome: Outcome::Admit {
            delay: MicroSpan::ZERO,
        },
        remaining,
        full_after,
    }
}

fn rejected(retry_after: Option<MicroSpan>) -> Verdict {
    Verdict {
        outcome: Outcome::Reject { retry_after },
        remaining: 0,
        full_after: MicroSpan::from_secs(60),
    }
}

fn told(said: &[Said<'_>]) -> BTreeMap<String, String> {
    let mut headers = HeaderMap::new();
    tell(&mut headers, said, || 1_700_000_000);
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
    let told = told(&[
        said("burst", admitted(99, MicroSpan(29_000_001))),
        said("daily", rejected(Some(MicroSpan(500_000)))),
    ]);
    let expected = lines(&[
        (
            "ratelimit-policy",
            "\"burst\";q=100;w=60, \"daily\";q=100;w=60",
        ),
        ("ratelimit", "\"burst\";r=99;t=30, \"daily\";r=0;t=1"),
    ]);
    assert_eq!(told, expected);
}

#[test]
fn the_old_headers_speak_of_the_limit_that_is_nearest() {
    let with = |name, verdict, reset| {
        let mut one = said(name, verdict);
        one.spoken = LimitHeaders {
            ietf: false,
            legacy: Some(reset),
        };
        one
    };
    let near = admitted(3, MicroSpan::from_secs(7));
    let far = admitted(80, MicroSpan::from_secs(9));
    let check = |all: &[Said<'_>], remaining, reset| {
        let expected = lines(&[
            ("x-ratelimit-limit", "100"),
            ("x-ratelimit-remaining", remaining),
            ("x-ratelimit-reset", reset),
        ]);
        assert_eq!(told(all), expected);
    };
    let seconds = LegacyReset::Seconds;
    check(
        &[with("a", far, seconds), with("b", near, seconds)],
        "3",
        "7",
    );
    check(&[with("b", near, LegacyReset::Epoch)], "3", "1700000007");
    let over = rejected(Some(MicroSpan::from_secs(5)));
    check(
        &[with("b", near, seconds), with("c", over, seconds)],
        "0",
        "5",
    );
}

#[test]
fn a_limit_that_says_nothing_is_not_told_of() {
    let mut silent = said("a", admitted(1, MicroSpan::ZERO));
    silent.spoken = LimitHeaders {
        ietf: false,
        legacy: None,
    };
    assert_eq!(told(&[silent]), BTreeMap::new());
}

#[test]
fn what_an_origin_says_of_its_own_limits_stays() {
    let mut headers = HeaderMap::new();
    headers.insert(RATE_LIMIT, HeaderValue::from_static("\"theirs\";r=1"));
    tell(
        &mut headers,
        &[said("ours", admitted(2, MicroSpan::ZERO))],
        || 0,
    );
    assert_eq!(headers.get_all(RATE_LIMIT).iter().count(), 2);
}

fn refused(said: &[Said<'_>], accept: &'static str, chance: u64) -> (Response<Bytes>, String) {
    let accept = HeaderValue::from_static(accept);
    let response = refuse(said, Some(&accept), chance);
    let body = String::from_utf8(response.body().to_vec()).unwrap();
    (response, body)
}

#[test]
fn a_program_is_told_which_limits_it_is_over() {
    let all = [
        said("a", rejected(Some(MicroSpan::from_secs(30)))),
        said("b", admitted(4, MicroSpan::ZERO)),
        said("c", rejected(Some(MicroSpan::from_secs(2)))),
    ];
    let (response, body) = refused(&all, "*/*", 0);
    assert_eq!(response.status(), 429);
    let headers = response.headers();
    assert_eq!(headers[RETRY_AFTER], "30");
    assert_eq!(headers[CONTENT_TYPE], "application/problem+json");
    assert_eq!(headers[CACHE_CONTROL], "no-store");
    let problem: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(problem["violated-policies"], serde_json::json!(["a", "c"]));
    assert_eq!(problem["status"], 429);
    let quota_exceeded = "https://iana.org/assignments/http-problem-types#quota-exceeded";
    assert_eq!(problem["type"], quota_exceeded);
}

#[test]
fn people_get_a_page() {
    let all = [said("a", rejected(Some(MicroSpan::from_secs(90))))];
    let (response, page) = refused(&all, "text/html,application/json;q=0.9", 0);
    assert_eq!(response.headers()[CONTENT_TYPE], "text/html; charset=utf-8");
    assert!(page.contains("Please try again in 90 seconds."), "{page}");
    let outside = page.contains("http:") || page.contains("src=");
    assert!(page.contains("<html lang=\"en\">") && !outside);
    let (response, _) = refused(&all, "application/json,text/html", 0);
    assert_eq!(response.headers()[CONTENT_TYPE], "application/problem+json");
}

#[test]
fn waits_are_rounded_up_and_not_all_alike() {
    let after = |micros, chance| {
        let all = [said("a", rejected(Some(MicroSpan(micros))))];
        let (response, _) = refused(&all, "*/*", chance);
        let value = response.headers()[RETRY_AFTER].to_str().unwrap();
        value.parse::<u64>().unwrap()
    };
    assert_eq!(after(1, 0), 1);
    assert_eq!(after(1_000_001, 0), 2);
    for chance in 0..1_000 {
        assert!((100..=110).contains(&after(100_000_000, chance)));
        assert!((1..=2).contains(&after(1, chance)));
    }
    assert_eq!((after(100_000_000, 10), after(1, 1)), (110, 2));
}

#[test]
fn whoever_can_never_go_is_told_to_come_another_day() {
    let (response, body) = refused(&[said("a", rejected(None))], "*/*", 0);
    assert_eq!(response.headers()[RETRY_AFTER], "86400");
    assert!(body.contains("24 hours"), "{body}");
}

#[test]
fn times_are_said_in_units_that_people_use() {
    for (seconds, expected) in [
        (1, "1 second"),
        (119, "119 seconds"),
        (121, "3 minutes"),
        (7_200, "2 hours"),
        (172_800, "2 days"),
        (172_801, "3 days"),
    ] {
        assert_eq!(words(seconds), expected);
    }
}

#[test]
fn the_longest_wait_counts_and_never_is_longest() {
    let delayed = Verdict {
        outcome: Outcome::Admit {
            delay: MicroSpan(9),
        },
        ..rejected(None)
    };
    let short = rejected(Some(MicroSpan(5)));
    assert_eq!(wait_of([short, delayed]), Some(MicroSpan(9)));
    assert_eq!(wait_of([short, rejected(None)]), None);
    assert_eq!(wait_of([admitted(1, MicroSpan(7))]), Some(MicroSpan::ZERO));
}
