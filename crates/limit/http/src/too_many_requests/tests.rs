//! Responses to rejected requests, for programs and for people.

use anteroom_limit::time::DurationUs;

use super::*;
use crate::rate_limit_headers::tests::{admitted, outcome, rejected};

fn response_to(
    outcomes: &[LimitOutcome<'_>],
    accept: &str,
    chance: u64,
) -> (Response<Bytes>, String) {
    let response = over_limit(outcomes, Some(accept), chance);
    let body = String::from_utf8(response.body().to_vec()).unwrap();
    (response, body)
}
#[test]
fn a_program_learns_which_limits_it_exceeds() {
    let all = [
        outcome("a", rejected(Some(DurationUs::from_secs(30)))),
        outcome("b", admitted(4, DurationUs::ZERO)),
        outcome("c", rejected(Some(DurationUs::from_secs(2)))),
    ];
    let (response, body) = response_to(&all, "*/*", 0);
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
    let all = [outcome("a", rejected(Some(DurationUs::from_secs(90))))];
    let (response, page) = response_to(&all, "text/html,application/json;q=0.9", 0);
    assert_eq!(response.headers()[CONTENT_TYPE], "text/html; charset=utf-8");
    assert!(page.contains("Please try again in 90 seconds."), "{page}");
    let external = page.contains("http:") || page.contains("src=");
    assert!(page.contains("<html lang=\"en\">") && !external);
    let (response, _) = response_to(&all, "application/json,text/html", 0);
    assert_eq!(response.headers()[CONTENT_TYPE], "application/problem+json");
}

#[test]
fn waits_are_rounded_up_and_jittered() {
    let after = |micros, chance| {
        let all = [outcome("a", rejected(Some(DurationUs(micros))))];
        let (response, _) = response_to(&all, "*/*", chance);
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
fn a_request_that_is_never_allowed_may_retry_after_a_day() {
    let (response, body) = response_to(&[outcome("a", rejected(None))], "*/*", 0);
    assert_eq!(response.headers()[RETRY_AFTER], "86400");
    assert!(body.contains("24 hours"), "{body}");
}

#[test]
fn times_are_formatted_in_readable_units() {
    for (seconds, expected) in [
        (1, "1 second"),
        (119, "119 seconds"),
        (121, "3 minutes"),
        (7_200, "2 hours"),
        (172_800, "2 days"),
        (172_801, "3 days"),
    ] {
        assert_eq!(in_words(seconds), expected);
    }
}
