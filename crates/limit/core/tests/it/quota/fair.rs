//! What the limit allows is used, and shared by those who want it.

use crate::quota::envoy::Style;
use crate::quota::world::{STEP, WINDOW, World};

/// What each Envoy let through in the whole windows of a run, after the first of them.
fn run(seed: u64, limit: u32, styles: &[Style]) -> Vec<Vec<u64>> {
    let mut world = World::new(seed, limit, (20, 5));
    for style in styles {
        world.join(*style);
    }
    for _ in 0..(6 * WINDOW / STEP) {
        world.step();
    }
    let whole: Vec<u64> = world.windows.keys().copied().collect();
    let whole = &whole[2..whole.len() - 1];
    let of = |which: usize| whole.iter().map(move |window| (which, *window));
    let envoys = (0..styles.len()).map(|which| {
        let spent = of(which).map(|at| world.spent.get(&at).copied().unwrap_or(0));
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
fn one_that_asks_for_more_than_there_is_gets_all_of_it() {
    check(600, &[Style::Steady(50)], |each| {
        (590..=600).contains(&each[0])
    });
}

#[test]
fn two_that_want_more_than_there_is_get_half_each() {
    check(600, &[Style::Steady(50), Style::Steady(50)], |each| {
        each.iter().all(|calls| (280..=320).contains(calls))
    });
}

#[test]
fn who_asks_little_gets_it_and_the_other_gets_the_rest() {
    check(600, &[Style::Steady(2), Style::Steady(50)], |each| {
        each[0] >= 110 && each[1] >= 430
    });
}

#[test]
fn who_asks_for_half_of_the_limit_is_hardly_refused() {
    // 300 in a window; refused is who comes in its last seconds.
    check(600, &[Style::Steady(5)], |each| each[0] >= 285);
}

#[test]
fn who_asks_for_just_below_the_limit_gets_most_of_it() {
    check(600, &[Style::Steady(9)], |each| each[0] >= 500);
}

#[test]
fn a_prepaying_client_gets_some_beside_those_who_call_singly() {
    for seed in 0..20 {
        let mut world = World::new(seed, 600, (20, 5));
        world.others_one_in = Some(1);
        world.join(Style::Steady(50));
        for _ in 0..(6 * WINDOW / STEP) {
            world.step();
            // Others ask for ten times the limit.
            world.call();
        }
        let whole: Vec<u64> = world.windows.keys().copied().collect();
        for window in &whole[2..whole.len() - 1] {
            let seen = world.windows[window];
            let ahead = world.spent[&(0, *window)];
            assert!(
                ahead >= 280,
                "seed {seed}, window {window}: {ahead}, {seen:?}"
            );
        }
    }
}

#[test]
fn shares_move_to_where_requests_are() {
    let mut world = World::new(3, 600, (20, 5));
    world.join(Style::Steady(50));
    world.join(Style::Steady(1));
    while world.window() < 3 {
        world.step();
    }
    world.envoys[0].style = Style::Steady(1);
    world.envoys[1].style = Style::Steady(50);
    while world.window() < 6 {
        world.step();
    }
    let spent = |which, window| world.spent.get(&(which, window)).copied().unwrap_or(0);
    assert!(spent(0, 2) > 450 && spent(1, 2) < 100, "{:?}", world.spent);
    assert!(spent(0, 5) < 100 && spent(1, 5) > 450, "{:?}", world.spent);
}
