//! The limit is used fully, and shared by the members with demand.

use crate::quota::envoy::Style;
use crate::quota::simulation::{STEP, Simulation, WINDOW};

/// Returns what each Envoy allowed in each whole window of a run, after the first of them.
fn run(seed: u64, limit: u32, styles: &[Style]) -> Vec<Vec<u64>> {
    let mut simulation = Simulation::new(seed, limit, (20, 5));
    for style in styles {
        simulation.join(*style);
    }
    for _ in 0..(6 * WINDOW / STEP) {
        simulation.step();
    }
    let whole: Vec<u64> = simulation.windows.keys().copied().collect();
    let whole = &whole[2..whole.len() - 1];
    let of = |which: usize| whole.iter().map(move |window| (which, *window));
    let envoys = (0..styles.len()).map(|which| {
        let spent = of(which).map(|at| simulation.spent.get(&at).copied().unwrap_or(0));
        spent.collect()
    });
    envoys.collect()
}

fn check(limit: u32, styles: &[Style], holds: impl Fn(&[u64]) -> bool) {
    for seed in 0..20 {
        let spent = run(seed, limit, styles);
        for window in 0..spent[0].len() {
            let each: Vec<u64> = spent.iter().map(|spent| spent[window]).collect();
            assert!(
                holds(&each),
                "seed {seed}, window {window}: {styles:?} {each:?}"
            );
        }
    }
}

#[test]
fn one_member_with_excess_demand_gets_the_whole_limit() {
    check(600, &[Style::Steady(50)], |each| {
        (590..=600).contains(&each[0])
    });
}

#[test]
fn two_members_with_excess_demand_get_half_each() {
    check(600, &[Style::Steady(50), Style::Steady(50)], |each| {
        each.iter().all(|requests| (280..=320).contains(requests))
    });
}

#[test]
fn a_small_demand_is_met_and_the_other_gets_the_rest() {
    check(600, &[Style::Steady(2), Style::Steady(50)], |each| {
        each[0] >= 110 && each[1] >= 430
    });
}

#[test]
fn a_demand_of_half_the_limit_is_rarely_rejected() {
    // 300 in a window; some in its last seconds are rejected.
    check(600, &[Style::Steady(5)], |each| each[0] >= 285);
}

#[test]
fn a_demand_just_below_the_limit_is_mostly_met() {
    check(600, &[Style::Steady(9)], |each| each[0] >= 500);
}

#[test]
fn a_member_gets_its_share_beside_single_requests() {
    for seed in 0..20 {
        let mut simulation = Simulation::new(seed, 600, (20, 5));
        simulation.others_one_in = Some(1);
        simulation.join(Style::Steady(50));
        for _ in 0..(6 * WINDOW / STEP) {
            simulation.step();
            // Other clients send ten times the limit.
            simulation.request();
        }
        let whole: Vec<u64> = simulation.windows.keys().copied().collect();
        for window in &whole[2..whole.len() - 1] {
            let seen = simulation.windows[window];
            let ahead = simulation.spent[&(0, *window)];
            assert!(
                ahead >= 280,
                "seed {seed}, window {window}: {ahead}, {seen:?}"
            );
        }
    }
}

#[test]
fn shares_follow_demand() {
    let mut simulation = Simulation::new(3, 600, (20, 5));
    simulation.join(Style::Steady(50));
    simulation.join(Style::Steady(1));
    while simulation.window() < 3 {
        simulation.step();
    }
    simulation.envoys[0].style = Style::Steady(1);
    simulation.envoys[1].style = Style::Steady(50);
    while simulation.window() < 6 {
        simulation.step();
    }
    let spent = |which, window| simulation.spent.get(&(which, window)).copied().unwrap_or(0);
    assert!(
        spent(0, 2) > 450 && spent(1, 2) < 100,
        "{:?}",
        simulation.spent
    );
    assert!(
        spent(0, 5) < 100 && spent(1, 5) > 450,
        "{:?}",
        simulation.spent
    );
}
