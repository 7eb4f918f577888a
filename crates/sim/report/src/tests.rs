//! Reports of made-up outcomes, as text, JSON and HTML.

use std::fs;

use anteroom_config::time_text::rfc3339_secs;
use anteroom_room::event::EventPhase;
use anteroom_room::rules::{AllocationKind, Limits, Rules};
use anteroom_room::time::{DurationMs, Timestamp};
use anteroom_sim::outcome::{
    DataCenterOutcome, DataCenterSample, EventMark, Invariant, Outcome, RunStatistics, Sample,
    Violation,
};
use anteroom_sim::scenario::model::{
    Behaviour, DataCenterPlan, Delay, FaultKind, FaultPlan, NodeRef, RoomPlan, Scenario,
};

use crate::variant::Variant;
use crate::{ReportError, json, table, write_html};

const KINDS: [AllocationKind; 4] = [
    AllocationKind::Even,
    AllocationKind::Curve,
    AllocationKind::Counters,
    AllocationKind::Leases,
];
const LIMITS: Limits = Limits {
    total_active_users: 2_000,
    new_users_per_minute: 600,
};
/// 2023-09-11T11:45:54Z.
const START: Timestamp = Timestamp(1_694_432_754_000);
const LENGTH: DurationMs = DurationMs(600_000);

fn scenario(name: &str) -> Scenario {
    let delay = Delay {
        from: DurationMs(1),
        to: DurationMs(3),
    };
    let data_center = |at: u32| DataCenterPlan {
        name: format!("data center {at} {name}"),
        nodes: 8,
        share: 1.0,
        to_store: delay,
        to_global: delay,
    };
    let node = NodeRef {
        data_center: 0,
        node: 3,
    };
    Scenario {
        name: name.to_owned(),
        about: "A thousand visitors come at once. Who waits, and for how long?".to_owned(),
        seed: 7,
        starts_at: START,
        length: LENGTH,
        sample_every: DurationMs(1_000),
        global_lease: anteroom_room::ledger::LeaseTerms::ROOT.ttl,
        durability: anteroom_room::store::Durability::Unknown,
        compare: KINDS.to_vec(),
        rooms: vec![RoomPlan {
            name: name.to_owned(),
            rules: Rules {
                limits: LIMITS,
                ..Rules::default()
            },
            events: Vec::new(),
            arrivals: vec![],
            behaviour: behaviour(),
        }],
        data_centers: (0..20).map(data_center).collect(),
        faults: vec![FaultPlan {
            at: DurationMs(60_000),
            kind: FaultKind::Crash {
                node,
                after: DurationMs(20_000),
            },
        }],
    }
}

fn behaviour() -> Behaviour {
    Behaviour {
        pages: 5.0,
        think_time: DurationMs(20_000),
        parallel_requests: 0,
        second_tab: 0.0,
        patience: Some(DurationMs(300_000)),
        no_shows: 0.01,
        away: 0.0,
        throttled: 0.0,
        changes_node: 0.0,
        changes_data_center: 0.0,
        without_cookies: 0.0,
        log_out: 0.0,
        replays: 0.0,
    }
}

/// Returns a made-up run: arrivals rise, the curve overshoots, leases reach the limit.
fn outcome(room: &str, allocation: AllocationKind) -> Outcome {
    let peak: u32 = match allocation {
        AllocationKind::Even => 1_850,
        AllocationKind::Curve => 2_140,
        AllocationKind::Counters => 1_930,
        AllocationKind::Leases => 2_000,
    };
    let sample = |at: u32| Sample {
        at_ms: u64::from(at) * 1_000,
        inside: (at * 12).min(peak),
        seats_limit: 2_000,
        waiting: at.saturating_sub(120) * 3,
        admitted_this_minute: (at % 60 * 12).min(peak / 3 - 70),
        rate_limit: 600,
        arrived: 20,
        admitted: 10,
        wait_ms: u64::from(at.saturating_sub(120)) * 500,
    };
    let data_center = |number: u32| DataCenterOutcome {
        name: format!("data center {number} {room}"),
        samples: (0..=600)
            .map(|at: u32| DataCenterSample {
                admitted: peak / 200 / (number + 1),
                arrived: 20 / (number + 1),
                waiting: at.saturating_sub(120 + number * 20) / (number + 1),
            })
            .collect(),
    };
    let above = peak.saturating_sub(LIMITS.total_active_users);
    Outcome {
        room: room.to_owned(),
        allocation,
        settings: vec![],
        limits: LIMITS,
        starts_at: START,
        length: LENGTH,
        stats: RunStatistics {
            visitors: 12_000,
            queued: 7_500,
            admitted: 6_000,
            inside_max: peak,
            above_seats: above,
            admitted_in_a_minute_max: 590,
            queued_although_free: 0.123,
            utilization_at_first_queue: Some(0.81),
            wait_ms_p50: Some(39_500),
            wait_ms_p99: Some(250_000),
            abandoned: 37,
            added_latency_ms_p99: 66,
            ..RunStatistics::default()
        },
        samples: (0..=600).map(sample).collect(),
        data_centers: (0..20).map(data_center).collect(),
        events: vec![],
        violations: vec![],
    }
}

fn outcomes(room: &str) -> Vec<Outcome> {
    KINDS.map(|kind| outcome(room, kind)).to_vec()
}

/// Returns three values of a limit, four allocations each.
fn sweep() -> Vec<Outcome> {
    let with = |value: &str| {
        let value = value.to_owned();
        outcomes("shop").into_iter().map(move |outcome| Outcome {
            settings: vec![("room.shop.new_users_per_minute".to_owned(), value.clone())],
            ..outcome
        })
    };
    ["600", "900", "1200"].into_iter().flat_map(with).collect()
}

#[test]
fn a_report_says_and_shows_when_events_reached_their_phases() {
    let mark = |phase, at_ms| EventMark {
        event: "sale".to_owned(),
        phase,
        at_ms,
    };
    let outcome = Outcome {
        events: vec![
            mark(EventPhase::Prequeue, 60_000),
            mark(EventPhase::Running, 120_000),
        ],
        ..outcome("shop", AllocationKind::Leases)
    };
    let time = |at_ms| {
        let text = rfc3339_secs(START + DurationMs(at_ms));
        text[11..19].to_owned()
    };
    let (prequeue, start) = (time(60_000), time(120_000));
    let expected = format!("Event sale: prequeue at {prequeue}, running at {start} (UTC).");
    let outcomes = [outcome];
    let text = table(&outcomes);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(&expected), "{expected}\n{text}");
    let variants = Variant::all(&outcomes);
    for chart in crate::charts::charts(&variants[0], "shop").iter().take(4) {
        for name in ["sale: prequeue", "sale: running"] {
            assert!(chart.svg.contains(name), "{name}");
        }
    }
}

#[test]
fn a_table_fits_100_columns_with_one_for_each_allocation() {
    for outcomes in [outcomes("shop"), sweep(), outcomes(&"x".repeat(300))] {
        let text = table(&outcomes);
        let widest = text.lines().map(|line| line.chars().count()).max();
        let too_wide = |line: &&str| line.chars().count() > 100 && line.contains(' ');
        assert!(
            widest <= Some(100) || text.lines().find(too_wide).is_none(),
            "{text}"
        );
        assert!(text.contains("         even         curve      counters        leases\n"));
    }
}

#[test]
fn a_table_names_exceeded_limits_and_assumptions() {
    let text = table(&outcomes("shop"));
    for expected in [
        "With curve, the limit of 2,000 active visitors was exceeded by up to 140 (7.0 %).",
        "With leases, the limits were never exceeded: at most 2,000 active",
        "half waited 39.5 s at most, and 99 % 4 min 10 s at most. 37 visitors left while waiting.",
        "queued 7,500 7,500 7,500 7,500",
        "140 (7.0 %)",
        "The origin is not simulated",
    ] {
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            words(&text).contains(&words(expected)),
            "{expected}\n{text}"
        );
    }
}

#[test]
fn settings_of_a_sweep_are_rows_and_their_values_columns() {
    let outcomes: Vec<Outcome> = sweep()
        .into_iter()
        .filter(|outcome| outcome.allocation == AllocationKind::Leases)
        .collect();
    let text = table(&outcomes);
    let row = text
        .lines()
        .find(|line| line.starts_with("room.shop.new_users_per_minute"))
        .expect("the setting has a row");
    let cells: Vec<&str> = row.split_whitespace().skip(1).collect();
    assert_eq!(cells, ["600", "900", "1200"]);
}

#[test]
fn json_has_the_names_that_programs_rely_on() {
    let value = json(&scenario("sale"), &sweep());
    assert_eq!(value["scenario"]["starts_at"], "2023-09-11T11:45:54.000Z");
    let first = &value["outcomes"][0];
    assert_eq!(first["allocation"], "even");
    assert_eq!(
        first["settings"][0]["key"],
        "room.shop.new_users_per_minute"
    );
    assert_eq!(first["limits"]["total_active_users"], 2_000);
    assert_eq!(first["stats"]["inside_max"], 1_850);
    assert!(first["stats"]["wait_ms_p90"].is_null());
    assert_eq!(first["samples"][600]["at_ms"], 600_000);
    assert_eq!(first["data_centers"][0]["samples"][1]["arrived"], 20);
    assert_eq!(value["outcomes"].as_array().map(Vec::len), Some(12));
}

#[test]
fn typed_text_never_becomes_markup() {
    let folder = tempfile::tempdir().unwrap();
    let name = "<script>alert(1)</script>\"'&";
    let mut outcomes = outcomes(name);
    outcomes[3].settings = vec![(name.to_owned(), name.to_owned())];
    outcomes[3].violations = vec![Violation {
        promise: Invariant::Seats,
        at_ms: 61_000,
        seen: name.to_owned(),
    }];
    let page = write_html(folder.path(), &scenario(name), &outcomes).unwrap();
    for entry in fs::read_dir(folder.path()).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        assert!(!text.contains("<script"), "{text}");
    }
    let html = fs::read_to_string(page).unwrap();
    assert!(html.contains("&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;"));
    assert!(html.contains("0:01:01 into the run"));
}

#[test]
fn one_page_holds_everything_and_is_the_same_every_time() {
    let folder = tempfile::tempdir().unwrap();
    let write = || {
        let page = write_html(folder.path(), &scenario("sale"), &sweep()).unwrap();
        fs::read_to_string(page).unwrap()
    };
    let html = write();
    assert_eq!(html, write(), "the second one overwrites the first");
    let charts = fs::read_dir(folder.path()).unwrap().count() - 1;
    assert_eq!(html.matches("<svg ").count(), charts);
    let ids: Vec<&str> = html
        .split(" id=\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .collect();
    let mut unique = ids.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(ids.len(), unique.len());
    for foreign in ["http://", "https://", "url(", "<img", "<link", "@import"] {
        let found = html
            .replace("http://www.w3.org/2000/svg", "")
            .contains(foreign);
        assert!(!found, "the page fetches something: {foreign}");
    }
    assert!(html.contains("node data center 0 sale/3 crashes, and starts again 20 s later"));
    assert!(html.contains("half waited 39.5\u{a0}s at most"));
}

#[test]
fn only_the_largest_data_centers_have_a_row_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    write_html(folder.path(), &scenario("sale"), &outcomes("shop")).unwrap();
    let svg = fs::read_to_string(folder.path().join("1-by-data-center.svg")).unwrap();
    assert!(svg.contains("9 others"), "{svg}");
    assert!(svg.contains("data center 10 …") && !svg.contains("data center 11 …"));
}

#[test]
fn a_file_that_is_not_a_report_is_never_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let mine = folder.path().join("1-wait.svg");
    fs::write(&mine, "mine").unwrap();
    let error = write_html(folder.path(), &scenario("sale"), &outcomes("shop")).unwrap_err();
    assert!(matches!(error, ReportError::NotOurs { file } if file == mine));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// Leaves a made-up report in `ANTEROOM_REPORT=DIR`, if that is set, to look at.
#[test]
fn a_report_without_events_or_data_centers_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let bare = Outcome {
        samples: vec![],
        data_centers: vec![],
        stats: RunStatistics::default(),
        ..outcome("shop", AllocationKind::Leases)
    };
    let page = write_html(folder.path(), &scenario("sale"), &[bare]).unwrap();
    assert!(
        fs::read_to_string(page)
            .unwrap()
            .contains("No visitor waited.")
    );
    assert!(table(&[]).contains("The origin is not simulated"));
    if let Some(folder) = std::env::var_os("ANTEROOM_REPORT") {
        write_html(folder.as_ref(), &scenario("sale"), &sweep()).unwrap();
    }
}
