//! Sequences of commands on limits, and the limits after them.

mod anything;
mod records;
mod unfit;

use anteroom_config::overrides::{Actor, Record, UnreadableOverrides};
use anteroom_config::{Client, Config, LimitConfig, LimitName, LiveValues};
use anteroom_room::time::Timestamp;
use serde_json::{Value, json};

use super::command::LIVE_MAX;
use super::*;

const NOW: Timestamp = Timestamp(1_900_000_000_000);

/// Check of stores that can count everything.
const ALL_FIT: Fits<'static> = &|_, _| Ok(());

const API: &str = "name = \"api\"\nlimit = \"100/min\"\nkey = \"header:X-Api-Key\"\n\
                   overrides = [{ key = \"gold\", limit = \"900/min\" }]\n";
const LOGIN: &str = "name = \"login\"\nlimit = \"5/m\"\nalgorithm = \"gcra\"\nburst = 2\n";

/// Parses the limits of a file.
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

fn apply(
    before: &LimitOverrides,
    command: &LimitCommand,
    file: &[LimitConfig],
) -> Result<LimitOverrides, String> {
    let after = before.after(command, file, ALL_FIT, &Actor::default(), NOW);
    after.map_err(|reason| match reason {
        RejectedCommand::NotAllowed(problems) => problems.to_string(),
        other => format!("{other:?}"),
    })
}

/// Returns the record after all commands.
fn after(commands: &[LimitCommand], file: &[LimitConfig]) -> LimitOverrides {
    commands
        .iter()
        .fold(LimitOverrides::default(), |before, command| {
            apply(&before, command, file).unwrap()
        })
}

/// Returns the requests that an override allows to a client; `None` without an override.
fn allowed(
    record: &LimitOverrides,
    file: &[LimitConfig],
    limit: &str,
    client: &str,
) -> Option<u32> {
    let applied = record.applied_to(file, ALL_FIT).limits;
    let limit = applied.iter().find(|known| known.name.as_str() == limit)?;
    let own = limit.overrides.get(&Client(vec![client.to_owned()]));
    own.map(|policy| policy.rate().requests())
}

#[test]
fn an_override_wins_over_the_file_until_it_is_unset() {
    let file = file(&[API, LOGIN]);
    let check = |record: &LimitOverrides, gold: Option<u32>, new: Option<u32>| {
        assert_eq!(allowed(record, &file, "api", "gold"), gold);
        assert_eq!(allowed(record, &file, "api", "new"), new);
        assert_eq!(allowed(record, &file, "login", "gold"), None);
    };
    check(&LimitOverrides::default(), Some(900), None);
    let gold = set("api", json!({ "key": "gold", "limit": "1/s" }));
    let new = set("api", json!({ "key": ["new"], "limit": "500/min" }));
    let both = after(&[gold, new], &file);
    check(&both, Some(1), Some(500));
    let again = set("api", json!({ "key": "new", "limit": "7/min" }));
    let changed = apply(&both, &again, &file).unwrap();
    check(&changed, Some(1), Some(7));
    assert_eq!(changed.overrides.len(), 2, "it replaces the first one");
    let back = apply(&changed, &unset("api", "gold"), &file).unwrap();
    check(&back, Some(900), Some(7));
    assert_eq!(back.version, 4);
}

#[test]
fn omitted_keys_have_the_values_of_the_limit() {
    let file = file(&[LOGIN]);
    let burst = |typed: Value| {
        let record = after(&[set("login", typed)], &file);
        let shown = ShownLimits::of(&record, &file, ALL_FIT, None);
        shown.limits[0].overrides[0].values.clone().unwrap()["burst"].clone()
    };
    assert_eq!(burst(json!({ "key": "10.0.0.1", "limit": "50/m" })), 2);
    let own = json!({ "key": "10.0.0.1", "limit": "50/m", "burst": 20 });
    assert_eq!(burst(own), 20);
}

#[test]
fn all_spellings_of_an_address_are_one_client() {
    let file = file(&[LOGIN]);
    let set_rate = |key: &str, limit: &str| set("login", json!({ "key": key, "limit": limit }));
    let record = after(
        &[
            set_rate("2001:DB8::7", "1/s"),
            set_rate("2001:db8:0:0:9::", "2/s"),
        ],
        &file,
    );
    assert_eq!(record.overrides.len(), 1, "one network is one client");
    assert_eq!(allowed(&record, &file, "login", "2001:db8::"), Some(2));
    let back = apply(&record, &unset("login", "2001:db8::1"), &file).unwrap();
    assert_eq!(back.overrides, []);
}

/// Fails unless the command is rejected with this text.
fn check_rejected(order: &LimitCommand, expected: &str) {
    let file = file(&[
        API,
        LOGIN,
        "name = \"log\"\nlimit = \"9/s\"\nalgorithm = \"sliding-log\"\n",
        "name = \"all\"\nlimit = \"9/s\"\nkey = \"everybody\"\n",
    ]);
    let rejected = apply(&LimitOverrides::default(), order, &file).unwrap_err();
    assert!(rejected.contains(expected), "{rejected}");
}

#[test]
fn an_invalid_rate_is_rejected_with_the_allowed_range() {
    let check =
        |limit: &str, typed: Value, expected: &str| check_rejected(&set(limit, typed), expected);
    check(
        "ap",
        json!({ "key": "a", "limit": "1/s" }),
        "NoLimit { limits: [\"api\", \"login\", \"log\", \"all\"] }",
    );
    check(
        "api",
        json!({ "key": "a", "limit": "1/month" }),
        "limit \"api\": limit: found \"1/month\", allowed: requests, a slash and a time from 1s to \
         31d, such as \
         \"100/s\", \"1000/h\" or \"5/15m\"; months differ in length; write 30d",
    );
    check(
        "api",
        json!({ "key": "a" }),
        "limit \"api\": limit: missing, allowed: requests, a slash",
    );
    check(
        "api",
        json!({ "key": "a", "limit": "1/s", "burst": 7 }),
        "burst: has no effect with algorithm \"sub-windows-strict\", allowed: only with algorithm",
    );
    check(
        "log",
        json!({ "key": "10.0.0.1", "limit": "200000/s" }),
        "at most 100000 requests with algorithm \"sliding-log\"",
    );
}

#[test]
fn an_invalid_client_is_rejected_with_the_allowed_forms() {
    let check =
        |limit: &str, typed: Value, expected: &str| check_rejected(&set(limit, typed), expected);
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
        "all clients share one count",
    );
    check_rejected(
        &unset("api", "gold"),
        "only the file has settings of this client",
    );
    check_rejected(
        &unset("api", "tin"),
        "this client has no settings of its own",
    );
    check_rejected(&unset("gone", "tin"), "NoLimit");
}

#[test]
fn no_log_has_a_secret() {
    let file = file(&[API, LOGIN]);
    let secret = set("api", json!({ "key": "s3cret", "limit": "500/min" }));
    let record = after(&[secret], &file);
    let entry = record.newest.clone().unwrap();
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
    assert!(!format!("{record:?}").contains("s3cret"));
    // The key of a limit that is gone is unknown.
    let gone = apply(&record, &unset("api", "s3cret"), &file[1..]).unwrap();
    assert!(!format!("{:?}", gone.newest).contains("s3cret"));
    let address = set("login", json!({ "key": "10.0.0.1", "limit": "9/s" }));
    let what = after(&[address], &file).newest.unwrap().what;
    assert_eq!(what, "limits set login \"10.0.0.1\" limit=9/s");
    let bad = set("api", json!({ "key": ["s3cret", "x"], "limit": "9" }));
    let rejected = apply(&record, &bad, &file).unwrap_err();
    assert!(!rejected.contains("s3cret"), "{rejected}");
}

#[test]
fn overrides_outlive_their_limit_and_are_shown_without_it() {
    let with = file(&[API, LOGIN]);
    let record = after(
        &[set("api", json!({ "key": "new", "limit": "500/min" }))],
        &with,
    );
    let without = file(&[LOGIN]);
    assert_eq!(record.applied_to(&without, ALL_FIT).limits, without);
    let shown = ShownLimits::of(&record, &without, ALL_FIT, None);
    let gone = &shown.limits[1];
    assert_eq!((gone.limit.as_str(), &gone.values), ("api", &None));
    assert_eq!(
        gone.overrides[0].problems,
        ["the file has no limit of this name"]
    );
    assert_eq!(
        allowed(&record, &with, "api", "new"),
        Some(500),
        "the override returns with its limit"
    );
    let unset = apply(&record, &unset("api", "new"), &without).unwrap();
    assert_eq!(unset.overrides, []);
}

#[test]
fn an_override_that_no_longer_fits_the_file_is_ignored_and_shown() {
    let record = after(
        &[set(
            "login",
            json!({ "key": "10.0.0.1", "limit": "9/s", "burst": 3 }),
        )],
        &file(&[LOGIN]),
    );
    let other = file(&["name = \"login\"\nlimit = \"5/m\"\n"]);
    assert_eq!(allowed(&record, &other, "login", "10.0.0.1"), None);
    let shown = ShownLimits::of(&record, &other, ALL_FIT, Some("login"));
    let row = &shown.limits[0].overrides[0];
    assert!(row.problems[0].contains("burst: has no effect"), "{row:?}");
    assert_eq!(row.values.as_ref().unwrap()["limit"], "5/m");
    let back = apply(&record, &unset("login", "10.0.0.1"), &other).unwrap();
    assert_eq!(back.overrides, []);
}

#[test]
fn shown_values_have_a_source_and_a_maximum_size() {
    let limits = file(&[API, LOGIN]);
    let record = after(
        &[set("api", json!({ "key": "gold", "limit": "1/s" }))],
        &limits,
    );
    let shown = serde_json::to_value(ShownLimits::of(&record, &limits, ALL_FIT, None)).unwrap();
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
    let only = ShownLimits::of(&record, &limits, ALL_FIT, Some("login"));
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
    let shown = ShownLimits::of(&record, &file(&[&many]), ALL_FIT, None);
    assert!(shown.left_off > 2_000, "{}", shown.left_off);
    assert!(serde_json::to_vec(&shown).unwrap().len() < 3 << 20);
}

#[test]
fn the_number_and_size_of_overrides_are_bounded() {
    let file = file(&[API]);
    let entry = |limit: &str, at: usize, long: usize| LiveOverride {
        limit: limit.to_owned(),
        client: Client(vec![format!("{}{at}", "k".repeat(long))]),
        values: LiveValues::from([("limit".to_owned(), Value::from("1/s"))]),
    };
    let full = |count: usize, long: usize| LimitOverrides {
        overrides: (0..count).map(|at| entry("gone", at, long)).collect(),
        ..LimitOverrides::default()
    };
    let more = set("api", json!({ "key": "one more", "limit": "1/s" }));
    assert!(apply(&full(LIVE_MAX - 1, 1), &more, &file).is_ok());
    let rejected = apply(&full(LIVE_MAX, 1), &more, &file).unwrap_err();
    assert!(
        rejected.contains("1000 clients have overrides already"),
        "{rejected}"
    );
    let rejected = apply(&full(400, 1_000), &more, &file).unwrap_err();
    assert!(rejected.contains("where 262144 are allowed"), "{rejected}");
    let again = full(LIVE_MAX, 1).overrides[7].client.0[0].clone();
    assert!(apply(&full(LIVE_MAX, 1), &unset("gone", &again), &file).is_ok());
}
