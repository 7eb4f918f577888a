//! Tests of the reader. Bad files are in `testdata/scenario`.

use anteroom_room::ledger::LeaseTerms;

use super::*;
use crate::scenario::model::{
    EventChange, EventRef, FaultKind, LinkRef, NodeRef, RatePoint, StoreRef,
};
use crate::scenario::shipped::SHIPPED;

const SMALL: &str = r#"
[room.shop]
total_active_users = 200
new_users_per_minute = 100
[[room.shop.arrivals]]
kind = "constant"
per_second = 2
"#;

fn read(text: &str) -> Result<Scenario, Problems> {
    read_with(text, &[])
}

fn read_with(text: &str, settings: &[(&str, &str)]) -> Result<Scenario, Problems> {
    let settings: Vec<Setting> = settings
        .iter()
        .map(|(key, value)| Setting {
            source: "--set",
            key: (*key).to_owned(),
            value: (*value).to_owned(),
        })
        .collect();
    let text = ScenarioText {
        source: "test.toml",
        name: "test",
        text,
        folder: None,
    };
    text.read(&settings)
}

fn points(scenario: &Scenario) -> Vec<(u64, f64)> {
    let points = scenario.rooms[0].arrivals.iter().flat_map(|a| &a.points);
    points
        .map(|point| (point.at.0 / 1_000, point.per_second))
        .collect()
}

#[test]
fn a_small_file_has_a_default_for_everything_else() {
    let scenario = read(SMALL).unwrap();
    assert_eq!(scenario.name, "test");
    assert_eq!(scenario.length, DurationMs::from_secs(3_600));
    assert_eq!(scenario.sample_every, DurationMs::from_secs(10));
    assert_eq!(scenario.global_lease, LeaseTerms::ROOT.ttl);
    assert_eq!(scenario.compare.len(), 4);
    assert_eq!(scenario.data_centers.len(), 1);
    assert_eq!(scenario.data_centers[0].to_store.to, DurationMs::ZERO);
    assert_eq!(scenario.rooms[0].rules.limits.new_users_per_minute, 100);
    assert_eq!(points(&scenario), [(0, 2.0), (3_600, 2.0)]);
}

const SALE: &str = r#"
[[room.shop.event]]
name = "sale"
prequeue_start_time = "2030-01-01T00:10:00Z"
event_start_time = "2030-01-01T00:20:00Z"
event_end_time = "2030-01-01T00:40:00Z"
shuffle_at_event_start = true
total_active_users = 50
new_users_per_minute = 60
steps = [{ after = "5m", new_users_per_minute = 90 }]
"#;

#[test]
fn events_are_read_as_in_the_configuration_file() {
    let scenario = read(&format!("{SMALL}{SALE}")).unwrap_or_else(|problems| panic!("{problems}"));
    let after = |minutes: u64| scenario.starts_at + DurationMs::from_secs(minutes * 60);
    let [event] = &scenario.rooms[0].events[..] else {
        panic!("one event");
    };
    assert_eq!(event.name.as_str(), "sale");
    assert_eq!(event.times.prequeue_at, after(10));
    assert_eq!(event.times.starts_at, after(20));
    assert_eq!(event.times.ends_at, Some(after(40)));
    assert!(event.is_shuffled);
    assert_eq!(event.values.limits.unwrap().total_active_users, 50);
    assert_eq!(event.steps.len(), 1);
    assert_eq!(event.steps[0].new_users_per_minute, Some(90));
    assert_eq!(read(SMALL).unwrap().rooms[0].events, []);
}

#[test]
fn an_event_changes_by_its_room_and_name() {
    let fault = "[[fault]]\nat = \"25m\"\nkind = \"event\"\nevent = \"shop/sale\"\n\
                 event_end_time = \"2030-01-01T00:50:00Z\"\nwithin = \"3s\"\n";
    let scenario = read(&format!("{SMALL}{SALE}{fault}")).unwrap();
    let minutes = |minutes: u64| scenario.starts_at + DurationMs::from_secs(minutes * 60);
    let expected = FaultKind::Event {
        event: EventRef { room: 0, event: 0 },
        change: EventChange {
            ends_at: Some(minutes(50)),
            ..EventChange::default()
        },
        within: DurationMs::from_secs(3),
    };
    assert_eq!(scenario.faults[0].kind, expected);
}

#[test]
fn a_setting_changes_an_event() {
    let text = format!("{SMALL}{SALE}");
    let scenario = read_with(&text, &[("room.shop.event[1].total_active_users", "70")]).unwrap();
    let limits = scenario.rooms[0].events[0].values.limits.unwrap();
    assert_eq!(limits.total_active_users, 70);
}

#[test]
fn every_shipped_scenario_can_be_read_and_describes_itself() {
    for shipped in SHIPPED {
        let scenario = shipped
            .scenario()
            .unwrap_or_else(|problems| panic!("{problems}"));
        assert_eq!(scenario.name, shipped.name);
        assert!(!scenario.about.is_empty(), "{}", shipped.name);
        assert!(shipped.text.contains("Assumed"), "{}", shipped.name);
    }
}

#[test]
fn every_kind_of_arrivals_becomes_points() {
    let of = |table: &str| {
        let head = SMALL.split("kind").next().unwrap();
        points(&read(&format!("{head}{table}")).unwrap_or_else(|problems| panic!("{problems}")))
    };
    assert_eq!(
        of("kind = \"constant\"\nper_second = 1.5\nfrom = \"10s\"\nuntil = \"20s\"\ntimes = 2"),
        [(10, 3.0), (20, 3.0)]
    );
    assert_eq!(
        of("kind = \"ramp\"\nfrom_per_second = 1\nto_per_second = 5\nuntil = \"1m\""),
        [(0, 1.0), (60, 5.0)]
    );
    assert_eq!(
        of(
            "kind = \"spike\"\nat = \"1m\"\nper_second = 9\nrise = \"5s\"\nlasts = \"10s\"\n\
             fall = \"20s\""
        ),
        [(60, 0.0), (65, 9.0), (75, 9.0), (95, 0.0)]
    );
    assert_eq!(
        of("kind = \"points\"\npoints = [[\"0s\", 1], [\"1m\", 2.5]]"),
        [(0, 1.0), (60, 2.5)]
    );
}

#[test]
fn the_root_leases_for_the_configured_time() {
    let set = |value| read_with(SMALL, &[("leases.global", value)]).map(|s| s.global_lease);
    assert_eq!(set("2s").unwrap(), DurationMs::from_secs(2));
    assert_eq!(set("1h").unwrap(), DurationMs::from_secs(3_600));
    assert!(set("1999ms").is_err());
}

#[test]
fn faults_name_nodes_stores_and_links_and_come_in_order() {
    let text = format!(
        "{SMALL}
[[data_center]]
name = \"sjc\"
nodes = 2
[[data_center]]
name = \"lhr\"
[[fault]]
at = \"9m\"
kind = \"store_wiped\"
store = \"global\"
[[fault]]
at = \"1m\"
kind = \"restart\"
node = \"*\"
after = \"5s\"
apart = \"30s\"
[[fault]]
at = \"3m\"
kind = \"cut\"
replies_only = true
data_center = \"lhr\"
lasts = \"10s\"
[[fault]]
at = \"4m\"
kind = \"store_clock_steps\"
store = \"sjc\"
by = \"-2s\"
"
    );
    let scenario = read(&text).unwrap_or_else(|problems| panic!("{problems}"));
    let restart = |data_center, node| FaultKind::Restart {
        node: NodeRef { data_center, node },
        after: DurationMs::from_secs(5),
    };
    let expected = [
        (60, restart(0, 0)),
        (90, restart(0, 1)),
        (120, restart(1, 0)),
        (
            180,
            FaultKind::Cut {
                link: LinkRef::ToGlobal(1),
                replies_only: true,
                lasts: DurationMs::from_secs(10),
            },
        ),
        (
            240,
            FaultKind::StoreClockSteps {
                store: StoreRef::Local(0),
                by_ms: -2_000,
            },
        ),
        (
            540,
            FaultKind::StoreWiped {
                store: StoreRef::Global,
            },
        ),
    ];
    let read: Vec<_> = scenario
        .faults
        .iter()
        .map(|f| (f.at.0 / 1_000, f.kind))
        .collect();
    assert_eq!(read, expected);
    assert_eq!(scenario.data_centers[0].to_global.to, DurationMs(40));
}

#[test]
fn many_data_centers_are_numbered_and_shared_by_size() {
    let text = format!("{SMALL}[data_centers]\ncount = 12\nnodes = 3\nshare = \"zipf\"\n");
    let scenario = read(&text).unwrap();
    assert_eq!(scenario.data_centers.len(), 12);
    assert_eq!(scenario.data_centers[1].name, "dc-02");
    assert!((scenario.data_centers[3].share - 0.25).abs() < 1e-9);
}

#[test]
fn a_setting_is_read_like_a_line_of_the_file() {
    let settings = [
        ("room.shop.new_users_per_minute", "900"),
        ("room.shop.session_duration", "10m"),
        ("room.shop.arrivals[1].per_second", "7"),
        ("length", "2m"),
        ("room.shop.visitors.pages", "9"),
    ];
    let scenario = read_with(SMALL, &settings).unwrap();
    let room = &scenario.rooms[0];
    assert_eq!(room.rules.limits.new_users_per_minute, 900);
    assert_eq!(room.rules.session_duration, DurationMs::from_secs(600));
    assert_eq!(points(&scenario), [(0, 7.0), (120, 7.0)]);
    assert!((room.behaviour.pages - 9.0).abs() < 1e-9);
}

#[test]
fn a_wrong_setting_gets_the_message_of_the_file() {
    let check = |key: &str, value: &str, expected: &str| {
        let problems = read_with(SMALL, &[(key, value)]).unwrap_err();
        assert_eq!(problems.to_string(), expected);
    };
    check(
        "room.shop.new_users_per_minute",
        "0",
        "--set: room.shop.new_users_per_minute: found 0, allowed: an integer from 1 to 2147483647",
    );
    check(
        "room.shop.new_user_per_minute",
        "5",
        "--set: room.shop.new_user_per_minute: unknown key; did you mean new_users_per_minute?",
    );
    check(
        "room.shp.new_users_per_minute",
        "5",
        "--set: room.shp: there is no such room in the scenario; did you mean room.shop?",
    );
    check(
        "rom.shop.draw",
        "true",
        "--set: rom: unknown key; did you mean room?",
    );
    check(
        "room.shop.arrivals[2].per_second",
        "5",
        "--set: there is no room.shop.arrivals[2]: the list has 1",
    );
}

#[test]
fn visitors_are_counted_up_to_the_end_only() {
    let point = |at, per_second| RatePoint {
        at: DurationMs::from_secs(at),
        per_second,
    };
    let stream = Arrivals {
        data_center: None,
        points: vec![
            point(0, 0.0),
            point(10, 10.0),
            point(10, 4.0),
            point(20, 4.0),
        ],
    };
    let check = |length, expected: f64| {
        let counted = visitors(&stream, DurationMs::from_secs(length));
        assert!((counted - expected).abs() < 1e-9, "{length}: {counted}");
    };
    check(5, 12.5);
    check(10, 50.0);
    check(15, 70.0);
    check(99, 90.0);
}

#[test]
fn samples_suit_the_length_and_have_a_bound() {
    let with = |head: &str| read(&format!("{head}\n{SMALL}"));
    let every = |head: &str| with(head).unwrap().sample_every;
    assert_eq!(every("length = \"1m\""), DurationMs::from_secs(1));
    assert_eq!(every("length = \"2d\""), DurationMs::from_secs(300));
    assert_eq!(
        every("length = \"2d\"\nsample_every = \"1m\""),
        DurationMs::from_secs(60)
    );
    let problems = with("length = \"31d\"\nsample_every = \"1s\"").unwrap_err();
    assert!(
        problems.to_string().contains("5356800 samples"),
        "{problems}"
    );
}

#[test]
fn a_file_that_is_too_long_is_not_read_at_all() {
    let long = format!("{SMALL}#{}", "x".repeat(FILE_BYTES_MAX));
    let message = read(&long).unwrap_err().to_string();
    assert!(
        message.contains("allowed: at most 1048576 bytes"),
        "{message}"
    );
}

#[test]
fn the_example_shows_every_kind_of_fault_and_of_arrivals() {
    let text = include_str!("../../../../../../scenario.example.toml");
    let scenario = read(text).unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(scenario.name, "friday");
    assert_eq!(scenario.data_centers.len(), 13);
    let kinds: std::collections::HashSet<_> = scenario
        .faults
        .iter()
        .map(|fault| std::mem::discriminant(&fault.kind))
        .collect();
    assert_eq!(kinds.len(), 16);
    assert_eq!(scenario.rooms[0].arrivals.len(), 4);
}
