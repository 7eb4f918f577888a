//! Meaning of valid `[[limit]]` tables.

use std::collections::BTreeMap;

use anteroom_config::{
    Checks, Client, ClientKey, Config, Host, KeyPart, LegacyReset, LimitConfig, LimitHeaders,
    LimitRoute, LimitStore, OnLimit, OnLimitStoreFailure, RateText, Route, WithoutKey,
};
use anteroom_limit::fixed_window::FixedWindow;
use anteroom_limit::gcra::Gcra;
use anteroom_limit::leaky_bucket::LeakyBucket;
use anteroom_limit::policy::Policy;
use anteroom_limit::rate::Rate;
use anteroom_limit::sliding_log::SlidingLog;
use anteroom_limit::sliding_window::SlidingWindow;
use anteroom_limit::sub_windows::SubWindows;
use anteroom_limit::token_bucket::TokenBucket;
use anteroom_room::time::DurationMs;
use proptest::prelude::*;

use crate::limits::{ROOM, parse};

/// Reads a limit with these lines besides its name, and the warnings about it.
fn read(lines: &str) -> (LimitConfig, Vec<String>) {
    let parsed = parse(&format!("{ROOM}[[limit]]\nname = \"api\"\n{lines}\n"));
    let mut config = parsed.config;
    let warnings = parsed.warnings.iter().map(ToString::to_string).collect();
    (config.limits.remove(0), warnings)
}

/// Reads a limit of 100 a minute with these lines; panics on a warning.
fn limit(lines: &str) -> LimitConfig {
    let (limit, warnings) = read(&format!("limit = \"100/min\"\n{lines}"));
    assert_eq!(warnings, Vec::<String>::new());
    limit
}

fn rate(text: &str) -> Rate {
    let text: RateText = text.parse().expect("a rate of a test is right");
    text.rate()
}

#[test]
fn a_file_without_limits_has_none() {
    assert_eq!(parse(ROOM).config.limits, []);
}

#[test]
fn keys_that_are_left_out_have_the_documented_defaults() {
    let limit = limit("");
    assert_eq!(limit.name.as_str(), "api");
    let strict = SubWindows::strict(rate("100/m"), 10).unwrap();
    assert_eq!(limit.policy, Policy::SubWindows(strict));
    assert_eq!(limit.routes, []);
    let key = ClientKey {
        parts: vec![KeyPart::ClientAddress],
        ipv6_prefix: 64,
        without: WithoutKey::ClientAddress,
    };
    assert_eq!(limit.key, key);
    assert_eq!(limit.cost.get(), 1);
    assert_eq!(limit.on_limit, OnLimit::Reject);
    assert!(!limit.shadow && !limit.count_polling);
    let headers = LimitHeaders {
        ietf: true,
        legacy: None,
    };
    assert_eq!(limit.headers, headers);
    assert_eq!(limit.keys_max, 100_000);
    assert_eq!(limit.store, LimitStore::Local);
    assert_eq!(limit.on_store_failure, OnLimitStoreFailure::Bounded);
    assert_eq!(limit.overrides, BTreeMap::new());
}

#[test]
fn everything_about_a_limit_can_be_set() {
    let limit = limit(
        r#"
routes = [
  { host = "API.example:443", path = "/v1/", methods = ["POST", "M-SEARCH"] },
  { path = "/shop" },
]
key = ["header:X-API-Key", "cookie:sId", "path_segment:2", "ticket"]
ipv6_prefix = 48
without_key = "skip"
cost = 5
on_limit = "wait"
shadow = true
headers = "both"
legacy_reset = "epoch"
count_polling = true
keys_max = 64
"#,
    );
    let route = |host, path: &str, methods: &[&str]| LimitRoute {
        route: Route {
            host,
            path: path.to_owned(),
        },
        methods: methods.iter().map(ToString::to_string).collect(),
    };
    let api = Host::Name("api.example".to_owned());
    let expected = [
        route(api, "/v1", &["POST", "M-SEARCH"]),
        route(Host::Any, "/shop", &[]),
    ];
    assert_eq!(limit.routes, expected);
    let parts = [
        KeyPart::Header("x-api-key".to_owned()),
        KeyPart::Cookie("sId".to_owned()),
        KeyPart::PathSegment(2),
        KeyPart::Ticket,
    ];
    assert_eq!(limit.key.parts, parts);
    assert_eq!(limit.key.ipv6_prefix, 48);
    assert_eq!(limit.key.without, WithoutKey::Skip);
    assert_eq!(limit.cost.get(), 5);
    assert_eq!(limit.on_limit, OnLimit::Wait);
    assert!(limit.shadow && limit.count_polling);
    let headers = LimitHeaders {
        ietf: true,
        legacy: Some(LegacyReset::Epoch),
    };
    assert_eq!(limit.headers, headers);
    assert_eq!(limit.keys_max, 64);
}

#[test]
fn each_algorithm_has_its_settings_and_their_defaults() {
    let rate = rate("100/m");
    let check = |lines: &str, policy: Policy| assert_eq!(limit(lines).policy, policy, "{lines}");
    let log = SlidingLog::new(rate).unwrap();
    check("algorithm = \"sliding-log\"", Policy::SlidingLog(log));
    let fixed = Policy::FixedWindow(FixedWindow::new(rate));
    check("algorithm = \"fixed-window\"", fixed);
    let sliding = Policy::SlidingWindow(SlidingWindow::new(rate));
    check("algorithm = \"Sliding-Window\"", sliding);
    let parts = |parts| Policy::SubWindows(SubWindows::new(rate, parts).unwrap());
    check("algorithm = \"sub-windows\"", parts(10));
    check("algorithm = \"sub-windows\"\nsub_windows = 120", parts(120));
    let strict = SubWindows::strict(rate, 1).unwrap();
    check("sub_windows = 1", Policy::SubWindows(strict));
    let bucket = |burst, first| Policy::TokenBucket(TokenBucket::new(rate, burst, first).unwrap());
    let token = |lines: &str| format!("algorithm = \"token-bucket\"\n{lines}");
    check(&token(""), bucket(100, 100));
    check(&token("burst = 20"), bucket(20, 20));
    check(&token("burst = 20\ninitial_burst = 30"), bucket(20, 30));
    let gcra = |burst| Policy::Gcra(Gcra::new(rate, burst).unwrap());
    check("algorithm = \"gcra\"", gcra(100));
    check("algorithm = \"gcra\"\nburst = 1", gcra(1));
    let leaky = |queue| Policy::LeakyBucket(LeakyBucket::new(rate, queue));
    let delayed =
        |lines: &str| format!("algorithm = \"leaky-bucket\"\non_limit = \"delay\"\n{lines}");
    check(&delayed(""), leaky(100));
    check(&delayed("queue = 0"), leaky(0));
    check(&delayed("delay_max = \"60s\"\nqueue = 100"), leaky(100));
}

#[test]
fn a_request_may_be_delayed() {
    let delayed = |secs| OnLimit::Delay {
        max: DurationMs::from_secs(secs),
    };
    assert_eq!(limit("on_limit = \"delay\"").on_limit, delayed(5));
    let on_limit = limit("on_limit = \"delay\"\ndelay_max = \"1m\"").on_limit;
    assert_eq!(on_limit, delayed(60));
}

#[test]
fn a_limit_chooses_its_response_headers() {
    let headers = |word: &str| {
        let LimitHeaders { ietf, legacy } = limit(&format!("headers = {word:?}")).headers;
        (ietf, legacy)
    };
    assert_eq!(headers("ietf"), (true, None));
    assert_eq!(headers("legacy"), (false, Some(LegacyReset::Seconds)));
    assert_eq!(headers("both"), (true, Some(LegacyReset::Seconds)));
    assert_eq!(headers("none"), (false, None));
}

#[test]
fn a_single_key_needs_no_list_and_everybody_has_no_parts() {
    let parts = |key: &str| limit(&format!("key = {key}")).key.parts;
    assert_eq!(parts("\"everybody\""), []);
    assert_eq!(parts("[\"everybody\"]"), []);
    let header = [KeyPart::Header("host".to_owned())];
    assert_eq!(parts("\"header:Host\""), header);
    assert_eq!(parts("[\"header:Host\"]"), header);
}

#[test]
fn an_override_takes_missing_settings_from_the_limit() {
    let client = |texts: &[&str]| Client(texts.iter().map(ToString::to_string).collect());
    let bucket = |text: &str, burst, first| {
        Policy::TokenBucket(TokenBucket::new(rate(text), burst, first).unwrap())
    };
    let limit = limit(
        r#"
algorithm = "token-bucket"
burst = 20
overrides = [
  { key = "::ffff:203.0.113.7", limit = "500/min" },
  { key = "2001:DB8:1:2:3::", limit = "0/d", burst = 30, initial_burst = 40 },
]
"#,
    );
    let expected = [
        (client(&["203.0.113.7"]), bucket("500/m", 20, 20)),
        (client(&["2001:db8:1:2::"]), bucket("0/d", 30, 40)),
    ];
    assert_eq!(limit.overrides, BTreeMap::from(expected));
}

#[test]
fn a_client_with_several_parts_is_a_list() {
    let limit = limit(
        r#"
key = ["header:x-key", "client_address"]
overrides = [
  { key = ["a b", "203.0.113.7"], limit = "500/min" },
  { key = ["a", "203.0.113.7"], limit = "600/min" },
]
"#,
    );
    let clients: Vec<&[String]> = limit.overrides.keys().map(|client| &client.0[..]).collect();
    assert_eq!(clients, [["a", "203.0.113.7"], ["a b", "203.0.113.7"]]);
}

#[test]
fn keys_that_need_a_room_warn_only_without_one() {
    let warned = |lines: &str| {
        let (_, warnings) = read(&format!("limit = \"1/s\"\non_limit = \"wait\"\n{lines}"));
        !warnings.is_empty()
    };
    assert!(!warned(""));
    assert!(!warned("routes = [{ path = \"/\" }]"));
    assert!(!warned(
        "routes = [{ host = \"shop.example\", path = \"/shop/cart\" }]"
    ));
    assert!(!warned(
        "routes = [{ host = \"other.example\" }, { path = \"/shop\" }]"
    ));
    assert!(warned("routes = [{ path = \"/shopping\" }]"));
    assert!(warned("routes = [{ host = \"other.example\" }]"));
}

#[test]
fn two_hundred_limits_are_accepted_and_one_more_is_rejected() {
    let limits = |count: u32| -> String {
        let limits =
            (0..count).map(|number| format!("[[limit]]\nname = \"l{number}\"\nlimit = \"1/s\"\n"));
        format!("{ROOM}{}", limits.collect::<String>())
    };
    assert_eq!(parse(&limits(200)).config.limits.len(), 200);
    let problems = Config::parse("x", &limits(201)).unwrap_err();
    assert_eq!(
        problems.to_string(),
        "x:10: limit: found 201 limits, allowed: at most 200"
    );
}

#[test]
fn ten_thousand_overrides_are_accepted_and_one_more_is_rejected() {
    let text = |count: u32| -> String {
        let each = |number: u32| {
            let (high, low) = (number / 256, number % 256);
            format!("{{ key = \"10.0.{high}.{low}\", limit = \"{number}/s\" }},\n")
        };
        let overrides: String = (0..count).map(each).collect();
        format!("{ROOM}[[limit]]\nname = \"api\"\nlimit = \"1/s\"\noverrides = [\n{overrides}]\n")
    };
    assert_eq!(
        parse(&text(10_000)).config.limits[0].overrides.len(),
        10_000
    );
    let problems = Config::parse("x", &text(10_001)).unwrap_err();
    assert_eq!(
        problems.to_string(),
        "x:13: limit \"api\": overrides: found 10001 overrides, allowed: at most 10000"
    );
}

#[test]
fn a_file_with_mistakes_still_shows_the_limits_without() {
    let text = format!(
        "{ROOM}[[limit]]\nname = \"a\"\nlimit = \"1\"\n[[limit]]\nname = \"b\"\nlimit = \"1/s\"\n"
    );
    let refused = Config::parse_partly("x", &text, Checks::default()).unwrap_err();
    let limits = refused.readable.unwrap().limits;
    assert_eq!(limits.len(), 1);
    assert_eq!(limits[0].name.as_str(), "b");
}

proptest! {
    #[test]
    fn a_written_rate_is_read_back(calls: u32, secs in 1..=2_678_400_u64) {
        let long = format!("{calls}/{secs} seconds");
        let read: RateText = long.parse().unwrap();
        prop_assert_eq!((read.rate().requests(), read.rate().window().secs_ceil()), (calls, secs));
        let short = read.to_string();
        prop_assert!(short.len() < long.len());
        prop_assert_eq!(short.parse(), Ok(read));
        prop_assert_eq!(short.parse::<RateText>().unwrap().to_string(), short);
    }

    #[test]
    fn no_text_makes_the_rate_parser_panic(text in "[0-9]{0,21} ?/? ?[0-9]{0,21} ?[a-zé]{0,7}") {
        if let Ok(read) = text.parse::<RateText>() {
            prop_assert_eq!(read.to_string().parse(), Ok(read));
        }
    }
}
