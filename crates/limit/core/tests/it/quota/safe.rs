//! The limit holds.

use crate::quota::envoy::Style;
use crate::quota::world::{STEP, WINDOW, World, longest_way};

/// Three windows and a half of a world, with whatever may happen; what broke.
fn run(seed: u64) -> Option<String> {
    let limit = [7, 60, 1_000][usize::try_from(seed % 3).unwrap()];
    let mut world = World::new(seed, limit, (longest_way(), 2_000));
    world.others_one_in = Some(10);
    let is_calm = world.draw.is_one_in(2);
    for _ in 0..=world.draw.below(4) {
        let style = style(&mut world);
        world.join(style);
    }
    for _ in 0..(7 * WINDOW / 2 / STEP) {
        world.step();
        if world.draw.is_one_in(200) {
            world.call();
        }
        if !is_calm {
            happen(&mut world);
        }
    }
    let broken = world.windows.iter();
    let mut broken =
        broken.filter(|(_, seen)| seen.calls > seen.limit || seen.assigned > seen.limit);
    broken
        .next()
        .map(|(window, seen)| format!("seed {seed}, window {window}: {seen:?}"))
}

fn style(world: &mut World) -> Style {
    match world.draw.below(4) {
        0 => Style::Early,
        1 | 2 => Style::Late,
        _ => Style::Steady(world.draw.below(30)),
    }
}

fn happen(world: &mut World) {
    let count = world.envoys.len() as u64;
    match world.draw.below(5_000) {
        0..=4 => {
            let which = world.draw.below(count);
            world.cut(usize::try_from(which).unwrap());
        }
        5 => {
            let style = style(world);
            world.join(style);
        }
        6 => world.limit = 1 + u32::try_from(world.draw.below(500)).unwrap(),
        7 => {
            let style = style(world);
            let which = usize::try_from(world.draw.below(count)).unwrap();
            world.envoys[which].style = style;
        }
        8..=10 => {
            let ms = [500, 5_000, 2 * WINDOW][usize::try_from(world.draw.below(3)).unwrap()];
            let back = world.draw.below(ms);
            world.set_back(back);
        }
        _ => {}
    }
}

#[test]
fn no_window_has_more_calls_than_its_limit_however_they_are_spent() {
    let broken: Vec<String> = (0..400).filter_map(run).collect();
    assert!(
        broken.is_empty(),
        "{} of 400: {:#?}",
        broken.len(),
        &broken[..1]
    );
}
