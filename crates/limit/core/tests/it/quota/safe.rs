//! The limit holds.

use crate::quota::envoy::Style;
use crate::quota::simulation::{STEP, Simulation, WINDOW, message_delay_max};

/// Runs three windows and a half with random faults. Returns a violation.
fn run(seed: u64) -> Option<String> {
    let limit = [7, 60, 1_000][usize::try_from(seed % 3).unwrap()];
    let mut simulation = Simulation::new(seed, limit, (message_delay_max(), 2_000));
    simulation.others_one_in = Some(10);
    let is_calm = simulation.draw.is_one_in(2);
    for _ in 0..=simulation.draw.below(4) {
        let style = style(&mut simulation);
        simulation.join(style);
    }
    for _ in 0..(7 * WINDOW / 2 / STEP) {
        simulation.step();
        if simulation.draw.is_one_in(200) {
            simulation.request();
        }
        if !is_calm {
            inject(&mut simulation);
        }
    }
    let violations = simulation.windows.iter();
    let mut violations =
        violations.filter(|(_, seen)| seen.requests > seen.limit || seen.assigned > seen.limit);
    violations
        .next()
        .map(|(window, seen)| format!("seed {seed}, window {window}: {seen:?}"))
}

fn style(simulation: &mut Simulation) -> Style {
    match simulation.draw.below(4) {
        0 => Style::Early,
        1 | 2 => Style::Late,
        _ => Style::Steady(simulation.draw.below(30)),
    }
}

fn inject(simulation: &mut Simulation) {
    let count = simulation.envoys.len() as u64;
    match simulation.draw.below(5_000) {
        0..=4 => {
            let which = simulation.draw.below(count);
            simulation.cut(usize::try_from(which).unwrap());
        }
        5 => {
            let style = style(simulation);
            simulation.join(style);
        }
        6 => simulation.limit = 1 + u32::try_from(simulation.draw.below(500)).unwrap(),
        7 => {
            let style = style(simulation);
            let which = usize::try_from(simulation.draw.below(count)).unwrap();
            simulation.envoys[which].style = style;
        }
        8..=10 => {
            let ms = [500, 5_000, 2 * WINDOW][usize::try_from(simulation.draw.below(3)).unwrap()];
            let back = simulation.draw.below(ms);
            simulation.set_back(back);
        }
        _ => {}
    }
}

#[test]
fn no_window_exceeds_its_limit_however_requests_are_spent() {
    let violations: Vec<String> = (0..400).filter_map(run).collect();
    assert!(
        violations.is_empty(),
        "{} of 400: {:#?}",
        violations.len(),
        &violations[..1]
    );
}
