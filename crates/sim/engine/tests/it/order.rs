//! Order of admission with many waiting visitors in two data centers: inversions are small, and
//! eligible visitors take their slots.

use anteroom_room::rules::AllocationKind;
use anteroom_sim::outcome::Outcome;
use anteroom_sim::scenario::file::ScenarioText;

/// Two data centers, 60 to 80 ms away from the root's ledger and back, for the visitors of each
/// test.
const DATA_CENTERS: &str = r#"
starts_at = "2030-03-15T12:00:00Z"
data_centers.count = 2
data_centers.nodes = 3
data_centers.share = "even"
data_centers.to_store = ["1ms", "2ms"]
data_centers.to_global = ["30ms", "40ms"]
"#;

const VISITORS: &str = r#"
name = "crowd"
about = "A hundred and twenty thousand come within a minute and a half."
length = "8m"

[room.launch]
total_active_users = 4000
new_users_per_minute = 4000
session_duration = "1m"

[[room.launch.arrivals]]
kind = "spike"
at = "10s"
per_second = 1400
rise = "1s"
lasts = "85s"
fall = "1s"

[room.launch.visitors]
pages = 3
think_time = "10s"
changes_node = 0.3
"#;

/// All sessions of the first visitors end at nearly the same time, after minutes in which the queue
/// hardly moved.
const WAVES: &str = r#"
name = "waves"
about = """\
    Four times as many as there are seats come within a second, and stay for five minutes each."""
length = "20m"

[room.launch]
total_active_users = 300
new_users_per_minute = 400
session_duration = "5m"

[[room.launch.arrivals]]
kind = "spike"
at = "10s"
per_second = 600
rise = "1s"
lasts = "1s"
fall = "1s"

[room.launch.visitors]
pages = 20
think_time = "30s"
log_out = 0.1
"#;

#[test]
fn long_waiting_visitors_take_slots_when_a_wave_of_sessions_ends() {
    let outcome = run(WAVES);
    let stats = &outcome.stats;
    println!(
        "{} admitted; fill {:?}; wait p50 {:?} ms, max {:?} ms",
        stats.admitted, stats.fill_while_overloaded, stats.wait_ms_p50, stats.wait_ms_max
    );
    assert!(outcome.violations.is_empty(), "{:?}", outcome.violations);
    assert!(stats.fill_while_overloaded >= Some(0.97));
}

fn run(visitors: &str) -> Outcome {
    let text = ScenarioText {
        source: "scenario.toml",
        name: "scenario",
        text: &[DATA_CENTERS, visitors].concat(),
        folder: None,
    };
    let scenario = text.read(&[]).expect("the scenario has no mistake");
    anteroom_sim::run(&scenario, 0, AllocationKind::Leases, &mut |_| {})
}

#[test]
fn a_hundred_thousand_enter_nearly_in_arrival_order() {
    let outcome = run(VISITORS);
    let waiting = outcome.samples.iter().map(|sample| sample.waiting).max();
    let stats = &outcome.stats;
    println!(
        "{} admitted while up to {} waited; order inversion in ms: p50 {:?}, p99 {:?}, max {:?}",
        stats.admitted,
        waiting.unwrap_or(0),
        stats.order_inversion_ms_p50,
        stats.order_inversion_ms_p99,
        stats.order_inversion_ms_max,
    );
    assert!(waiting >= Some(100_000), "{waiting:?} waited");
    assert!(outcome.violations.is_empty(), "{:?}", outcome.violations);
    // Within one second the first poll wins; beyond that the queue keeps its order while it moves
    // as fast as the reported waits.
    assert!(stats.order_inversion_ms_p99 <= Some(4_500));
    assert!(stats.order_inversion_ms_max <= Some(10_000));
}

/// Runs a room that is always full. A tenth of its visitors have pages in the background, which
/// send a request once a minute.
fn with_slow_refreshes(seats: u32, per_second: f64, length: &str) -> Outcome {
    let visitors = format!(
        r#"
name = "background"
about = "A tenth of the pages are in the background."
length = "{length}"

[room.launch]
total_active_users = {seats}
new_users_per_minute = 1000
session_duration = "1m"

[[room.launch.arrivals]]
kind = "constant"
per_second = {per_second}

[room.launch.visitors]
pages = 3
think_time = "10s"
patience = "10m"
changes_node = 0.5
throttled = 0.1
"#
    );
    let outcome = run(&visitors);
    assert!(outcome.violations.is_empty(), "{:?}", outcome.violations);
    outcome
}

#[test]
fn who_refreshes_slowly_is_admitted_with_its_next_request_where_many_are() {
    let outcome = with_slow_refreshes(300, 8.0, "20m");
    // Its turn comes at any moment of its interval of a minute. Without the wait for its turn
    // others went in before it for more than seven minutes.
    assert!(outcome.stats.passed_over_ms_max <= Some(65_000));
    // As without such visitors: no slot waits for them.
    assert!(outcome.stats.fill_while_overloaded >= Some(0.96));
}

#[test]
fn who_refreshes_slowly_is_admitted_in_the_end_where_few_are() {
    let outcome = with_slow_refreshes(10, 0.3, "40m");
    // A slot comes free every six seconds, and its request waits for ten of sixty. Without that
    // others went in before it for twenty minutes.
    assert!(outcome.stats.passed_over_ms_max <= Some(400_000));
    assert!(outcome.stats.fill_while_overloaded >= Some(0.96));
}
