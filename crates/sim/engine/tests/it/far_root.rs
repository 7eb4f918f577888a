//! Deployments whose root is far from their data centers.

use anteroom_room::rules::AllocationKind;
use anteroom_sim::outcome::Outcome;
use anteroom_sim::run;
use anteroom_sim::scenario::file::ScenarioText;

/// Runs an overloaded room of two data centers whose root is `one_way_ms` away.
fn simulate(seats: u32, method: &str, one_way_ms: u32) -> Outcome {
    let data_center = |name: &str| {
        let most = one_way_ms + 2;
        format!(
            "[[data_center]]\nname = \"{name}\"\nnodes = 2\nshare = 50\n\
             to_global = [\"{one_way_ms}ms\", \"{most}ms\"]\n"
        )
    };
    let (a, b) = (data_center("a"), data_center("b"));
    // A visitor is active for some 100 s.
    let per_second = f64::from(seats) / 20.0;
    let per_minute = 24 + 4 * seats;
    let text = format!(
        "name = \"far-root\"\nabout = \"A far root.\"\nstarts_at = \"2030-03-15T12:00:00Z\"\n\
         length = \"90m\"\n{a}{b}\
         [room.shop]\ntotal_active_users = {seats}\nnew_users_per_minute = {per_minute}\n\
         session_duration = \"1m\"\nqueueing_method = \"{method}\"\n\
         [[room.shop.arrivals]]\nkind = \"constant\"\nfrom = \"10s\"\nper_second = {per_second}\n\
         [room.shop.visitors]\npages = 3\nthink_time = \"20s\"\npatience = \"5m\"\n\
         changes_node = 0.5\n"
    );
    run_text(&text)
}

fn run_text(text: &str) -> Outcome {
    let text = ScenarioText {
        source: "scenario.toml",
        name: "scenario",
        text,
        folder: None,
    };
    let scenario = text
        .read(&[])
        .unwrap_or_else(|problems| panic!("{problems}"));
    run(&scenario, 0, AllocationKind::Leases, &mut |_| {})
}

/// Returns the use of the binding limit while visitors wait.
fn fill(outcome: &Outcome) -> f64 {
    assert_eq!(outcome.violations, []);
    outcome.stats.fill_while_overloaded.expect("visitors wait")
}

fn assert_far_is_nearly_as_full(method: &str) {
    for seats in [2, 10, 100] {
        let near = fill(&simulate(seats, method, 20));
        let far = fill(&simulate(seats, method, 200));
        assert!(
            far >= 0.97 * near,
            "{method}, {seats} seats: {far} of {near}"
        );
    }
}

#[test]
fn a_far_root_costs_fifo_at_most_three_percent_of_the_fill() {
    assert_far_is_nearly_as_full("fifo");
}

#[test]
fn a_far_root_costs_random_at_most_three_percent_of_the_fill() {
    assert_far_is_nearly_as_full("random");
}

#[test]
fn a_quiet_room_queues_nobody_for_a_far_root() {
    let outcome = run_text(include_str!("../../scenarios/slow-ramp-to-95-percent.toml"));
    assert_eq!(outcome.stats.queued_although_free_and_first, 0.0);
}

#[test]
fn the_first_visitor_after_a_pause_is_not_queued() {
    // A data center without visitors asks the root every ten seconds, and knows its last reply for
    // five. The visitors come one by one, at any moment of that.
    let text = "name = \"pauses\"\nabout = \"One visitor at a time.\"\n\
         starts_at = \"2030-03-15T12:00:00Z\"\nlength = \"8h\"\n\
         data_centers.count = 3\ndata_centers.nodes = 2\ndata_centers.share = \"even\"\n\
         data_centers.to_global = [\"40ms\", \"50ms\"]\n\
         [room.shop]\ntotal_active_users = 100\nnew_users_per_minute = 100\n\
         session_duration = \"10s\"\ndisable_session_renewal = true\n\
         [[room.shop.arrivals]]\nkind = \"constant\"\nfrom = \"1m\"\nper_second = 0.02\n\
         [room.shop.visitors]\npages = 1\n";
    let outcome = run_text(text);
    assert_eq!(outcome.violations, []);
    assert!(outcome.stats.visitors > 400);
    assert_eq!(outcome.stats.queued, 0);
}
