//! What operators say about clients of limits, one thing after the other, and what holds then.

mod anything;
mod records;
mod unfit;

use anteroom_config::overrides::{Actor, DamagedOverrides, Record};
use anteroom_config::{Client, Config, LimitConfig, LimitName, LiveValues};
use anteroom_room::time::Timestamp;
use serde_json::{Value, json};

use super::order::LIVE_MAX;
use super::*;

const NOW: Timestamp = Timestamp(1_900_000_000_000);

/// Of stores that can count everything.
const ALL_FIT: Fits<'static> = &|_, _| Ok(());

const API: &str = "name = \"api\"\nlimit = \"100/min\"\nkey = \"header:X-Api-Key\"\n\
                   overrides = [{ key = \"gold\", limit = \"900/min\" }]\n";
const LOGIN: &str = "name = \"login\"\nlimit = \"5/m\"\nalgorithm = \"gcra\"\nburst = 2\n";

/// The limits of a file.
fn file(limits: &[&str]) -> Vec<LimitConfig> {
    let limits: String = limits
        .iter()
        .map(|limit| format!("[[limit]]\n{limit}"))
        .collect();
    let text = format!(
        "[[room]]\nname = \"shop\"\norigin = \"http://127.0.0.1:9\"\ntotal_active_users = 1\n\
         new_users_per_minute = 1\nbypass = []\n{limits}"
    );
    let parsed = Config::parse("test.toml", &text);
    parsed
        .unwrap_or_else(|problems| panic!("{problems}"))
        .config
        .limits
}

fn name(name: &str) -> LimitName {
    LimitName::new(name).unwrap()
}

fn set(limit: &str, typed: Value) -> LimitCommand {
    let Value::Object(typed) = typed else {
        panic!("{typed}");
    };
    LimitCommand::Set {
        limit: name(limit),
        typed: typed.into_iter().collect(),
    }
}

fn unset(limit: &str, client: &str) -> LimitCommand {
    LimitCommand::Unset {
        limit: name(limit),
        client: Client(vec![client.to_owned()]),
    }
}

fn say(
    before: &LimitOverrides,
    order: &LimitCommand,
    file: &[LimitConfig],
) -> Result<LimitOverrides, String> {
    let after = before.after(order, file, ALL_FIT, &Actor::default(), NOW);
    after.map_err(|refused| match refused {
        RejectedCommand::NotAllowed(problems) => problems.to_string(),
        other => format!("{other:?}"),
    })
}

/// What holds after all of these.
fn after(orders: &[LimitCommand], file: &[LimitConfig]) -> LimitOverrides {
    orders
        .iter()
        .fold(LimitOverrides::default(), |before, order| {
            say(&before, order, file).unwrap()
        })
}

/// The calls that a client of its own may make; `None` if it has nothing of its own.
fn calls(orders: &LimitOverrides, file: &[LimitConfig], limit: &str, client: &str) -> Option<u32> {
    let applied = orders.applied_to(file, ALL_FIT).limits;
    let limit = applied.iter().find(|known| known.name.as_str() == limit)?;
    let own = limit.overrides.get(&Client(vec![client.to_owned()]));
    own.map(|policy| policy.rate().calls())
}

#[test]
fn what_is_said_wins_over_the_file_until_it_is_taken_back() {
    let file = file(&[API, LOGIN]);
    let check = |orders: &LimitOverrides, gold: Option<u32>, new: Option<u32>| {
        assert_eq!(calls(orders, &file, "api", "gold"), gold);
        assert_eq!(calls(orders, &file, "api", "new"), new);
        assert_eq!(calls(orders, &file, "login", "gold"), None);
    };
    check(&LimitOverrides::default(), Some(900), None);
    let gold = set("api", json!({ "key": "gold", "limit": "1/s" }));
    let new = set("api", json!({ "key": ["new"], "limit": "500/min" }));
    let both = after(&[gold, new], &file);
    check(&both, Some(1), Some(500));
    let again = set("api", json!({ "key": "new", "limit": "7/min" }));
    let changed = say(&both, &again, &file).unwrap();
    check(&changed, Some(1), Some(7));
    assert_eq!(changed.overrides.len(), 2, "it took the place of the first");
    let back = say(&changed, &unset("api", "gold"), &file).unwrap();
    check(&back, Some(900), Some(7));
    assert_eq!(back.version, 4);
}

#[test]
fn what_is_left_out_is_as_the_limit_says() {
    let file = file(&[LOGIN]);
    let burst = |typed: Value| {
        let orders = after(&[set("login", typed)], &file);
        let shown = ShownLimits::of(&orders, &file, ALL_FIT, None);
        shown.limits[0].overrides[0].values.clone().unwrap()["burst"].clone()
    };
    assert_eq!(burst(json!({ "key": "10.0.0.1", "limit": "50/m" })), 2);
    let own = json!({ "key": "10.0.0.1", "limit": "50/m", "burst": 20 });
    assert_eq!(burst(own), 20);
}

#[test]
fn one_client_is_one_client_however_it_is_written() {
    let file = file(&[LOGIN]);
    let say_rate = |key: &str, limit: &str| set("login", json!({ "key": key, "limit": limit }));
    let orders = after(
        &[
            say_rate("2001:DB8::7", "1/s"),
            say_rate("2001:db8:0:0:9::", "2/s"),
        ],
        &file,
    );
    assert_eq!(orders.overrides.len(), 1, "one network is one client");
    assert_eq!(calls(&orders, &file, "login", "2001:db8::"), Some(2));
    let back = say(&orders, &unset("login", "2001:db8::1"), &file).unwrap();
    assert_eq!(back.overrides, []);
}

/// What is refused, and by which words.
fn check_refused(order: &LimitCommand, expected: &str) {
    let file = file(&[
        API,
        LOGIN,
        "name = \"log\"\nlimit = \"9/s\"\nalgorithm = \"sliding-log\"\n",
        "name = \"all\"\nlimit = \"9/s\"\nkey = \"everybody\"\n",
    ]);
    let refused = say(&LimitOverrides::default(), order, &file).unwrap_err();
    assert!(refused.contains(expected), "{refused}");
}

#[test]
fn a_rate_that_the_limit_cannot_hold_is_rejected_with_the_range() {
    let check =
        |limit: &str, typed: Value, expected: &str| check_refused(&set(limit, typed), expected);
    check(
        "ap",
        json!({ "key": "a", "limit": "1/s" }),
        "NoLimit { limits: [\"api\", \"login\", \"log\", \"all\"] }",
    );
    check(
        "api",
        json!({ "key": "a", "limit": "1/month" }),
        "limit \"api\": limit: found \"1/month\", allowed: calls, a slash and a time from 1s to \
         31d, such as \
         \"100/s\", \"1000/h\" or \"5/15m\"; months differ in length; write 30d",
    );
    check(
        "api",
        json!({ "key": "a" }),
        "limit \"api\": limit: missing, allowed: calls, a slash",
    );
    check(
        "api",
        json!({ "key": "a", "limit": "1/s", "burst": 7 }),
        "burst: has no effect with algorithm \"sub-windows-strict\", allowed: only with algorithm",
    );
    check(
        "log",
        json!({ "key": "10.0.0.1", "limit": "200000/s" }),
        "at most 100000 calls with algorithm \"sliding-log\"",
    );
}

#[test]
fn a_client_that_cannot_be_named_is_rejected_with_the_allowed_forms() {
    let check =
        |limit: &str, typed: Value, expected: &str| check_refused(&set(limit, typed), expected);
    check(
        "login",
        json!({ "key": "me", "limit": "1/s" }),
        "found \"me\", allowed: an IP address",
    );
    check(
        "api",
        json!({ "key": ["a", "b"], "limit": "1/s" }),
        "found 2 texts, allowed: 1,",
    );
    check(
        "api",
        json!({ "key": [7], "limit": "1/s" }),
        "key[1]: found a value",
    );
    check(
        "api",
        json!({ "key": {}, "limit": [] }),
        "limit: found a list",
    );
    check(
        "api",
        json!({ "key": "a", "limit": "1/s", "name": "b" }),
        "name: unknown key",
    );
    check(
        "api",
        json!({ "key": " a", "limit": "1/s" }),
        "without spaces around it",
    );
    check(
        "api",
        json!({ "key": "", "limit": "1/s" }),
        "a text of 1 to 1024 bytes",
    );
    let long = "k".repeat(1_025);
    check(
        "api",
        json!({ "key": long, "limit": "1/s" }),
        "a text of 1 to 1024 bytes",
    );
    check(
        "all",
        json!({ "key": "a", "limit": "1/s" }),
        "there is one count for all",
    );
    check_refused(
        &unset("api", "gold"),
        "only the file has settings of this client",
    );
    check_refused(
        &unset("api", "tin"),
        "this client has no settings of its own",
    );
    check_refused(&unset("gone", "tin"), "NoLimit");
}

#[test]
fn a_secret_is_in_no_log() {
    let file = file(&[API, LOGIN]);
    let secret = set("api", json!({ "key": "s3cret", "limit": "500/min" }));
    let orders = after(&[secret], &file);
    let entry = orders.newest.clone().unwrap();
    assert_eq!(
        serde_json::to_value(&entry).unwrap(),
        json!({
            "version": 1,
            "at": NOW.0,
            "who": { "token": "", "user": null, "address": "" },
            "what": "limits set api (6 characters that are not shown) limit=500/min",
            "changes": [{
                "key": "api (6 characters that are not shown)",
                "before": "limit=100/m",
                "after": "limit=500/m",
            }],
        })
    );
    assert!(!format!("{orders:?}").contains("s3cret"));
    // Of a limit that is gone, nobody knows what its clients are called by.
    let gone = say(&orders, &unset("api", "s3cret"), &file[1..]).unwrap();
    assert!(!format!("{:?}", gone.newest).contains("s3cret"));
    let address = set("login", json!({ "key": "10.0.0.1", "limit": "9/s" }));
    let what = after(&[address], &file).newest.unwrap().what;
    assert_eq!(what, "limits set login \"10.0.0.1\" limit=9/s");
    let bad = set("api", json!({ "key": ["s3cret", "x"], "limit": "9" }));
    let refused = say(&orders, &bad, &file).unwrap_err();
    assert!(!refused.contains("s3cret"), "{refused}");
}

#[test]
fn orders_outlive_their_limit_and_are_said_to_have_none() {
    let with = file(&[API, LOGIN]);
    let orders = after(
        &[set("api", json!({ "key": "new", "limit": "500/min" }))],
        &with,
    );
    let without = file(&[LOGIN]);
    assert_eq!(orders.applied_to(&without, ALL_FIT).limits, without);
    let shown = ShownLimits::of(&orders, &without, ALL_FIT, None);
    let gone = &shown.limits[1];
    assert_eq!((gone.limit.as_str(), &gone.values), ("api", &None));
    assert_eq!(
        gone.overrides[0].problems,
        ["the file has no limit of this name"]
    );
    assert_eq!(
        calls(&orders, &with, "api", "new"),
        Some(500),
        "it is back with its limit"
    );
    let unset = say(&orders, &unset("api", "new"), &without).unwrap();
    assert_eq!(unset.overrides, []);
}

#[test]
fn what_no_longer_fits_the_file_does_not_hold_and_says_so() {
    let orders = after(
        &[set(
            "login",
            json!({ "key": "10.0.0.1", "limit": "9/s", "burst": 3 }),
        )],
        &file(&[LOGIN]),
    );
    let other = file(&["name = \"login\"\nlimit = \"5/m\"\n"]);
    assert_eq!(calls(&orders, &other, "login", "10.0.0.1"), None);
    let shown = ShownLimits::of(&orders, &other, ALL_FIT, Some("login"));
    let row = &shown.limits[0].overrides[0];
    assert!(row.problems[0].contains("burst: has no effect"), "{row:?}");
    assert_eq!(row.values.as_ref().unwrap()["limit"], "5/m");
    let back = say(&orders, &unset("login", "10.0.0.1"), &other).unwrap();
    assert_eq!(back.overrides, []);
}

#[test]
fn what_is_shown_says_where_it_comes_from_and_ends_somewhere() {
    let limits = file(&[API, LOGIN]);
    let orders = after(
        &[set("api", json!({ "key": "gold", "limit": "1/s" }))],
        &limits,
    );
    let shown = serde_json::to_value(ShownLimits::of(&orders, &limits, ALL_FIT, None)).unwrap();
    assert_eq!(
        shown,
        json!({
            "version": 1,
            "leftOff": 0,
            "limits": [
                { "limit": "api", "values": { "limit": "100/m" }, "overrides": [{
                    "client": ["gold"], "values": { "limit": "1/s" }, "from": "operator",
                    "file": { "limit": "900/m" }, "problems": [],
                }] },
                { "limit": "login", "values": { "limit": "5/m", "burst": 2 }, "overrides": [] },
            ],
        })
    );
    let only = ShownLimits::of(&orders, &limits, ALL_FIT, Some("login"));
    assert_eq!(only.limits.len(), 1);
    let text = "k".repeat(1_000);
    let many: Vec<String> = (0..4_000)
        .map(|at| format!("{{ key = \"{text}{at}\", limit = \"1/s\" }}"))
        .collect();
    let many = format!(
        "{}overrides = [{}]\n",
        &API[..API.find("overrides").unwrap()],
        many.join(", ")
    );
    let shown = ShownLimits::of(&orders, &file(&[&many]), ALL_FIT, None);
    assert!(shown.left_off > 2_000, "{}", shown.left_off);
    assert!(serde_json::to_vec(&shown).unwrap().len() < 3 << 20);
}

#[test]
fn there_are_at_most_so_many_and_so_long() {
    let file = file(&[API]);
    let said = |limit: &str, at: usize, long: usize| LiveOverride {
        limit: limit.to_owned(),
        client: Client(vec![format!("{}{at}", "k".repeat(long))]),
        values: LiveValues::from([("limit".to_owned(), Value::from("1/s"))]),
    };
    let full = |count: usize, long: usize| LimitOverrides {
        overrides: (0..count).map(|at| said("gone", at, long)).collect(),
        ..LimitOverrides::default()
    };
    let more = set("api", json!({ "key": "one more", "limit": "1/s" }));
    assert!(say(&full(LIVE_MAX - 1, 1), &more, &file).is_ok());
    let refused = say(&full(LIVE_MAX, 1), &more, &file).unwrap_err();
    assert!(
        refused.contains("1000 clients have live settings already"),
        "{refused}"
    );
    let refused = say(&full(400, 1_000), &more, &file).unwrap_err();
    assert!(refused.contains("where 262144 may be"), "{refused}");
    let again = full(LIVE_MAX, 1).overrides[7].client.0[0].clone();
    assert!(say(&full(LIVE_MAX, 1), &unset("gone", &again), &file).is_ok());
}
