//! A small world for a seed: mostly few seats, short sessions and many faults; some have up to two
//! hundred seats, or sessions of up to an hour. Each seed leaves some kinds of behaviour and of
//! faults out, so that those it has meet often.

mod faults;
mod shape;

use anteroom_room::rules::{Limits, QueueingMethod, Rules, SeatNeedsCookie};
use anteroom_room::time::{Millis, Span};

use crate::dice::{Dice, Draw, Purpose, whole};
use crate::scenario::model::{
    Arrivals, Behaviour, DataCenterPlan, Delay, FaultKind, FaultPlan, RatePoint, RoomPlan, Scenario,
};
use shape::{Pace, Shape, limits, short_session};

/// The worlds begin half a minute before a full one, so that minutes change early.
const STARTS_AT: Millis = Millis(1_694_432_730_000);
/// Long enough for leases and seats of short sessions to end.
const LENGTH: Span = Span::from_secs(240);
/// Most events that are left for one session of visitors, on average: long sessions are for few.
const REQUESTS_PER_SESSION: f64 = 12.0;

/// The small world of a seed.
#[must_use]
pub fn scenario(seed: u64) -> Scenario {
    let mut dice = Dice::new(seed, Purpose::World);
    let data_centers = data_centers(&mut dice);
    let mut rules = rules(&mut dice);
    // A lease that ends while one errand is under way helps nobody.
    let is_far = data_centers[0].to_world.from >= Span(150);
    let shortest = if is_far { 12 } else { 4 };
    let short_lease = dice.between(Span::from_secs(shortest), Span::from_secs(20));
    let pace = Pace::of(rules.session_duration);
    // In some worlds with long sessions it is as long as in production.
    let world_lease = if pace == Pace::Long && dice.chance(0.2) {
        Span::from_secs(600)
    } else {
        short_lease
    };
    let shape = Shape {
        world_lease,
        data_centers: data_centers.len(),
        nodes: data_centers[0].nodes as usize,
        has_world: data_centers.len() > 1 || data_centers[0].to_world.to > Span::ZERO,
        pace,
    };
    let mut behaviour = behaviour(&mut dice, rules.session_duration);
    let mut faults = faults::faults(&mut dice, shape, rules, &mut behaviour);
    let mut is_rush = false;
    match dice.below(100) {
        0..6 => {
            behaviour = jam(&mut dice, behaviour);
            faults.clear();
        }
        6..14 => {
            rules.session_duration = dice.between(Span::from_secs(12), Span::from_secs(20));
            rules.session_renewal = true;
            behaviour = travellers(&mut dice, behaviour);
            faults.clear();
        }
        14..20 => {
            rules.limits = limits_of_a_rush(&mut dice);
            rules.queueing_method = QueueingMethod::Fifo;
            is_rush = true;
        }
        _ => {}
    }
    let length = length(&faults, rules);
    let arrivals = if is_rush {
        rushes(rules.limits, length)
    } else {
        arrivals(&mut dice, rules, length)
    };
    Scenario {
        name: format!("seed {seed}"),
        about: String::new(),
        seed,
        starts_at: STARTS_AT,
        length,
        sample_every: Span::from_secs(60),
        world_lease,
        compare: Vec::new(),
        rooms: vec![RoomPlan {
            name: "room".to_owned(),
            rules,
            arrivals: vec![arrivals],
            behaviour,
        }],
        data_centers,
        faults,
    }
}

/// How long it takes until the seats that are given last before the last fault have ended.
fn length(faults: &[FaultPlan], rules: Rules) -> Span {
    let sessions = faults.iter().filter_map(|fault| match fault.kind {
        FaultKind::SessionDuration { session, .. } => Some(session),
        _ => None,
    });
    let longest = sessions.fold(rules.session_duration, Span::max);
    let last = faults
        .iter()
        .map(|fault| fault.at + fault.kind.lasts())
        .max();
    let needed = last.unwrap_or_default() + longest + longest + Span::from_secs(60);
    needed.clamp(LENGTH, Span::from_secs(9_000))
}

/// Several times as many as there is room for come; in worlds with long sessions fewer a second.
fn arrivals(dice: &mut Dice, rules: Rules, length: Span) -> Arrivals {
    let seats = f64::from(rules.limits.total_active_users);
    let rate = seats / rules.session_duration.0 as f64 * 1e3;
    let wanted = rate * f64::from(1 + dice.below(9));
    let is_long = length > LENGTH;
    let per_second = if is_long {
        wanted.clamp(0.02, 0.5 + seats / 60.0)
    } else {
        wanted.clamp(0.4, 5.0)
    };
    // Many seats are taken within a minute, or nothing happens in a short world.
    let at_first = per_second.max(seats / 40.0);
    let point = |secs, per_second| RatePoint {
        at: Span::from_secs(secs),
        per_second,
    };
    let end = RatePoint {
        at: length,
        per_second,
    };
    Arrivals {
        data_center: None,
        points: vec![
            point(0, at_first),
            point(60, at_first),
            point(60, per_second),
            end,
        ],
    }
}

/// Seats for all who come, and few admissions a minute: the minute runs out first.
fn limits_of_a_rush(dice: &mut Dice) -> Limits {
    Limits {
        total_active_users: 100 + dice.below(101),
        new_users_per_minute: 8 + dice.below(33),
    }
}

/// Nearly nobody comes, but in the last seconds of each minute about as many as it may admit: when
/// they have been admitted, nodes hold admissions of the next minute.
fn rushes(limits: Limits, length: Span) -> Arrivals {
    const LASTS: Span = Span::from_secs(3);
    let quiet = 0.02;
    let rush = f64::from(limits.new_users_per_minute) * 1.2 / (LASTS.0 as f64 / 1e3);
    let point = |at, per_second| RatePoint { at, per_second };
    let mut points = vec![point(Span::ZERO, quiet)];
    let mut edge = STARTS_AT.minute().next().starts_at().since(STARTS_AT);
    while edge < length.min(LENGTH) {
        let begins = edge.less(LASTS);
        points.extend([
            point(begins, quiet),
            point(begins, rush),
            point(edge, rush),
            point(edge, quiet),
        ]);
        edge = edge + Span::from_secs(60);
    }
    points.push(point(length, quiet));
    Arrivals {
        data_center: None,
        points,
    }
}

fn data_centers(dice: &mut Dice) -> Vec<DataCenterPlan> {
    let count = 1 + dice.below(3);
    let nodes = 1 + dice.below(if count == 1 { 4 } else { 3 });
    let is_alone = count == 1 && dice.chance(0.7);
    let fast = Delay {
        from: Span(0),
        to: Span(4),
    };
    let far = if dice.chance(0.25) {
        Delay {
            from: Span(150),
            to: Span(400),
        }
    } else {
        Delay {
            from: Span(10),
            to: Span(90),
        }
    };
    let near = Delay {
        from: Span::ZERO,
        to: Span::ZERO,
    };
    (0..count)
        .map(|index| DataCenterPlan {
            name: format!("dc{index}"),
            nodes,
            share: 1.0,
            to_store: fast,
            to_world: if is_alone { near } else { far },
        })
        .collect()
}

fn rules(dice: &mut Dice) -> Rules {
    let session_duration = match dice.below(10) {
        0..7 => short_session(dice),
        7 | 8 => dice.between(Span::from_secs(20), Span::from_secs(300)),
        _ => dice.between(Span::from_secs(300), Span::from_secs(3_600)),
    };
    let opens_after = dice.between(Span::from_secs(2), Span::from_secs(20));
    let is_opened = dice.chance(0.05);
    Rules {
        limits: limits(dice),
        session_duration,
        session_renewal: !dice.chance(0.1),
        queueing_method: match dice.below(20) {
            0 => QueueingMethod::Random,
            1 => QueueingMethod::Reject,
            2 => QueueingMethod::Passthrough,
            _ => QueueingMethod::Fifo,
        },
        opens_at: is_opened.then_some(STARTS_AT + opens_after),
        draw: is_opened && dice.chance(0.5),
        pacing: dice.chance(0.5),
        seat_needs_cookie: match dice.below(10) {
            0..4 => SeatNeedsCookie::Never,
            4..8 => SeatNeedsCookie::NearLimit,
            _ => SeatNeedsCookie::Always,
        },
        ask_again: (!dice.chance(0.3)).then_some(Span::from_secs(1)),
        ..Rules::default()
    }
}

/// A figure in some worlds, nothing in the others.
fn sometimes(dice: &mut Dice, in_share: f64, most: f64) -> f64 {
    if dice.chance(in_share) {
        dice.unit() * most
    } else {
        0.0
    }
}

fn behaviour(dice: &mut Dice, session: Span) -> Behaviour {
    let keeps_coming = dice.chance(0.5);
    let parallel_requests = if dice.chance(0.4) { dice.below(5) } else { 0 };
    Behaviour {
        pages: 1.0 + dice.unit() * if keeps_coming { 60.0 } else { 5.0 },
        think_time: match Pace::of(session) {
            Pace::Short => dice.between(Span(200), Span(300 + session.0 / 3)),
            Pace::Long => {
                let often = Span(whole(session.0 as f64 / REQUESTS_PER_SESSION));
                dice.between(Span(often.0 / 2), often + often)
            }
        },
        parallel_requests,
        second_tab: sometimes(dice, 0.3, 0.6),
        patience: dice.chance(0.3).then_some(Span::from_secs(20)),
        no_shows: sometimes(dice, 0.3, 0.5),
        changes_node: sometimes(dice, 0.5, 1.0),
        changes_data_center: sometimes(dice, 0.4, 0.7),
        without_cookies: sometimes(dice, 0.2, 0.4),
        log_out: sometimes(dice, 0.3, 0.8),
        replays: sometimes(dice, 0.4, 0.8),
    }
}

/// A crowd of clients without cookies, among a few who keep theirs.
fn jam(dice: &mut Dice, behaviour: Behaviour) -> Behaviour {
    Behaviour {
        without_cookies: 0.5 + dice.unit() * 0.45,
        changes_node: 0.0,
        changes_data_center: 0.0,
        replays: 0.0,
        ..behaviour
    }
}

/// Visitors who keep coming, and seldom change the data center: whoever has changed it stays for a
/// while.
fn travellers(dice: &mut Dice, behaviour: Behaviour) -> Behaviour {
    Behaviour {
        pages: 40.0,
        think_time: dice.between(Span(400), Span(1_500)),
        changes_data_center: 0.02 + dice.unit() * 0.08,
        without_cookies: 0.0,
        log_out: 0.0,
        ..behaviour
    }
}
