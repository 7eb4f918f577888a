//! Deployment of a seed: mostly few seats, short sessions and many faults; some have up to two
//! hundred seats, or sessions of up to an hour. Each seed leaves some kinds of behaviour and of
//! faults out, so that the others meet often.

mod comebacks;
mod crowds;
mod events;
mod faults;
mod flickers;
mod shape;

use anteroom_room::rules::{Limits, NewUsersWindow, QueueingMethod, Rules, SeatNeedsCookie};
use anteroom_room::time::{DurationMs, Timestamp};

use crate::rng::{Draw, Purpose, SimRng, whole};
use crate::scenario::model::{
    Arrivals, Behaviour, DataCenterPlan, Delay, FaultKind, FaultPlan, RatePoint, RoomPlan, Scenario,
};
use shape::{Pace, Shape, limits, short_session};

/// Start half a minute before a full one, so that minutes change early.
const STARTS_AT: Timestamp = Timestamp(1_694_432_730_000);
/// Time in which leases and seats of short sessions expire.
const LENGTH: DurationMs = DurationMs::from_secs(240);
/// Most events per session of visitors, on average: long sessions are for few.
const REQUESTS_PER_SESSION: f64 = 12.0;

/// Returns the scenario of a seed.
#[must_use]
pub fn scenario(seed: u64) -> Scenario {
    let mut rng = SimRng::new(seed, Purpose::Deployment);
    let data_centers = data_centers(&mut rng);
    let mut rules = rules(&mut rng);
    // A lease that ends during one upstream sync helps no visitor.
    let is_far = data_centers[0].to_global.from >= DurationMs(150);
    let shortest = if is_far { 12 } else { 4 };
    let short_lease = rng.between(DurationMs::from_secs(shortest), DurationMs::from_secs(20));
    let pace = Pace::of(rules.session_duration);
    // Some deployments with long sessions have the lease of production.
    let global_lease = if pace == Pace::Long && rng.chance(0.2) {
        DurationMs::from_secs(600)
    } else {
        short_lease
    };
    let shape = Shape {
        global_lease,
        data_centers: data_centers.len(),
        nodes: data_centers[0].nodes as usize,
        has_global_store: data_centers.len() > 1 || data_centers[0].to_global.to > DurationMs::ZERO,
        pace,
    };
    let mut behaviour = behaviour(&mut rng, rules.session_duration);
    let mut faults = faults::faults(&mut rng, shape, rules, &mut behaviour);
    let mut is_rush = false;
    match rng.below(100) {
        0..6 => {
            behaviour = jam(&mut rng, behaviour);
            faults.clear();
        }
        6..14 => {
            rules.session_duration =
                rng.between(DurationMs::from_secs(12), DurationMs::from_secs(20));
            rules.session_renewal = true;
            behaviour = travellers(&mut rng, behaviour);
            faults.clear();
        }
        14..20 => {
            rules.limits = limits_of_a_rush(&mut rng);
            rules.queueing_method = QueueingMethod::Fifo;
            is_rush = true;
        }
        _ => {}
    }
    windows(seed, &mut rules, &mut faults);
    let durability = comebacks::durability(seed, shape, &mut faults);
    let length = length(&faults, rules);
    let arrivals = if is_rush {
        rushes(rules.limits, length)
    } else {
        arrivals(&mut rng, rules, length)
    };
    let scenario = Scenario {
        name: format!("seed {seed}"),
        about: String::new(),
        seed,
        starts_at: STARTS_AT,
        length,
        sample_every: DurationMs::from_secs(60),
        global_lease,
        durability,
        compare: Vec::new(),
        rooms: vec![room(rules, arrivals, behaviour)],
        data_centers,
        faults,
    };
    events::schedule(throttled(held_turns(crowds::gather(flickers::flicker(
        scenario,
    )))))
}

fn room(rules: Rules, arrivals: Arrivals, behaviour: Behaviour) -> RoomPlan {
    RoomPlan {
        name: "room".to_owned(),
        rules,
        events: Vec::new(),
        arrivals: vec![arrivals],
        behaviour,
    }
}

/// Returns the time until the seats expire that are given just before the last fault.
fn length(faults: &[FaultPlan], rules: Rules) -> DurationMs {
    let sessions = faults.iter().filter_map(|fault| match fault.kind {
        FaultKind::SessionDuration { session, .. } => Some(session),
        _ => None,
    });
    let longest = sessions.fold(rules.session_duration, DurationMs::max);
    let last = faults
        .iter()
        .map(|fault| fault.at + fault.kind.lasts())
        .max();
    let needed = last.unwrap_or_default() + longest + longest + DurationMs::from_secs(60);
    needed.clamp(LENGTH, DurationMs::from_secs(9_000))
}

/// Returns arrivals of several times as many visitors as there is room for; fewer a second with
/// long sessions.
fn arrivals(rng: &mut SimRng, rules: Rules, length: DurationMs) -> Arrivals {
    let seats = f64::from(rules.limits.total_active_users);
    let rate = seats / rules.session_duration.0 as f64 * 1e3;
    let wanted = rate * f64::from(1 + rng.below(9));
    let is_long = length > LENGTH;
    let per_second = if is_long {
        wanted.clamp(0.02, 0.5 + seats / 60.0)
    } else {
        wanted.clamp(0.4, 5.0)
    };
    // Many seats are taken within a minute; otherwise nothing happens in a short run.
    let at_first = per_second.max(seats / 40.0);
    let point = |secs, per_second| RatePoint {
        at: DurationMs::from_secs(secs),
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

/// Returns seats for all visitors, and few admissions a minute: the minute runs out first.
fn limits_of_a_rush(rng: &mut SimRng) -> Limits {
    Limits {
        total_active_users: 100 + rng.below(101),
        new_users_per_minute: 8 + rng.below(33),
    }
}

/// Returns nearly no arrivals, except in the last seconds of each minute: about as many as it may
/// admit. Once they are admitted, nodes have admissions of the next minute.
fn rushes(limits: Limits, length: DurationMs) -> Arrivals {
    const LASTS: DurationMs = DurationMs::from_secs(3);
    let quiet = 0.02;
    let rush = f64::from(limits.new_users_per_minute) * 1.2 / (LASTS.0 as f64 / 1e3);
    let point = |at, per_second| RatePoint { at, per_second };
    let mut points = vec![point(DurationMs::ZERO, quiet)];
    let mut edge = STARTS_AT.minute().next().starts_at().since(STARTS_AT);
    while edge < length.min(LENGTH) {
        let begins = edge.less(LASTS);
        points.extend([
            point(begins, quiet),
            point(begins, rush),
            point(edge, rush),
            point(edge, quiet),
        ]);
        edge = edge + DurationMs::from_secs(60);
    }
    points.push(point(length, quiet));
    Arrivals {
        data_center: None,
        points,
    }
}

fn data_centers(rng: &mut SimRng) -> Vec<DataCenterPlan> {
    let count = 1 + rng.below(3);
    let nodes = 1 + rng.below(if count == 1 { 4 } else { 3 });
    let is_alone = count == 1 && rng.chance(0.7);
    let fast = Delay {
        from: DurationMs(0),
        to: DurationMs(4),
    };
    let far = if rng.chance(0.25) {
        Delay {
            from: DurationMs(150),
            to: DurationMs(400),
        }
    } else {
        Delay {
            from: DurationMs(10),
            to: DurationMs(90),
        }
    };
    let near = Delay {
        from: DurationMs::ZERO,
        to: DurationMs::ZERO,
    };
    (0..count)
        .map(|index| DataCenterPlan {
            name: format!("dc{index}"),
            nodes,
            share: 1.0,
            to_store: fast,
            to_global: if is_alone { near } else { far },
        })
        .collect()
}

fn rules(rng: &mut SimRng) -> Rules {
    let session_duration = match rng.below(10) {
        0..7 => short_session(rng),
        7 | 8 => rng.between(DurationMs::from_secs(20), DurationMs::from_secs(300)),
        _ => rng.between(DurationMs::from_secs(300), DurationMs::from_secs(3_600)),
    };
    let opens_after = rng.between(DurationMs::from_secs(2), DurationMs::from_secs(20));
    let is_opened = rng.chance(0.05);
    Rules {
        limits: limits(rng),
        session_duration,
        session_renewal: !rng.chance(0.1),
        queueing_method: match rng.below(20) {
            0 => QueueingMethod::Random,
            1 => QueueingMethod::Reject,
            2 => QueueingMethod::Passthrough,
            _ => QueueingMethod::Fifo,
        },
        opens_at: is_opened.then_some(STARTS_AT + opens_after),
        draw: is_opened && rng.chance(0.5),
        pacing: rng.chance(0.5),
        seat_needs_cookie: match rng.below(10) {
            0..4 => SeatNeedsCookie::Never,
            4..8 => SeatNeedsCookie::NearLimit,
            _ => SeatNeedsCookie::Always,
        },
        refresh_interval: (!rng.chance(0.3)).then_some(DurationMs::from_secs(1)),
        ..Rules::default()
    }
}

/// Makes the window slide in some seeds, from the start or from some time on, and switches it back
/// in some. Nothing else of a seed changes.
fn windows(seed: u64, rules: &mut Rules, faults: &mut Vec<FaultPlan>) {
    let mut rng = SimRng::new(seed, Purpose::Windows);
    let other = match rng.below(8) {
        0 | 1 => {
            rules.new_users_window = NewUsersWindow::Sliding;
            None
        }
        2 => {
            rules.new_users_window = NewUsersWindow::Sliding;
            Some(NewUsersWindow::Minute)
        }
        3 => Some(NewUsersWindow::Sliding),
        _ => None,
    };
    if let Some(window) = other {
        let within = rng.between(DurationMs::ZERO, DurationMs(3_000));
        let at = rng.between(DurationMs::from_secs(5), DurationMs::from_secs(90));
        let kind = FaultKind::NewUsersWindow { window, within };
        faults.push(FaultPlan { at, kind });
    }
}

/// Makes visitors be away when their turn comes, in a quarter of the seeds. Nothing else of a seed
/// changes.
fn held_turns(mut scenario: Scenario) -> Scenario {
    let mut rng = SimRng::new(scenario.seed, Purpose::Turns);
    if rng.chance(0.25) {
        let room = &mut scenario.rooms[0];
        room.behaviour.away = 0.1 + rng.unit() * 0.7;
        let session = room.rules.session_duration;
        room.rules.turn_held_for = rng.between(DurationMs::from_secs(1), session + session);
    }
    scenario
}

/// Makes browsers throttle pages in a sixth of the seeds. Nothing else of a seed changes.
fn throttled(mut scenario: Scenario) -> Scenario {
    let mut rng = SimRng::new(scenario.seed, Purpose::Throttled);
    scenario.rooms[0].behaviour.throttled = sometimes(&mut rng, 1.0 / 6.0, 0.6);
    scenario
}

/// Returns a number in a share of all cases, and 0 in the others.
fn sometimes(rng: &mut SimRng, in_share: f64, most: f64) -> f64 {
    if rng.chance(in_share) {
        rng.unit() * most
    } else {
        0.0
    }
}

fn behaviour(rng: &mut SimRng, session: DurationMs) -> Behaviour {
    let keeps_coming = rng.chance(0.5);
    let parallel_requests = if rng.chance(0.4) { rng.below(5) } else { 0 };
    Behaviour {
        pages: 1.0 + rng.unit() * if keeps_coming { 60.0 } else { 5.0 },
        think_time: match Pace::of(session) {
            Pace::Short => rng.between(DurationMs(200), DurationMs(300 + session.0 / 3)),
            Pace::Long => {
                let often = DurationMs(whole(session.0 as f64 / REQUESTS_PER_SESSION));
                rng.between(DurationMs(often.0 / 2), often + often)
            }
        },
        parallel_requests,
        second_tab: sometimes(rng, 0.3, 0.6),
        patience: rng.chance(0.3).then_some(DurationMs::from_secs(20)),
        no_shows: sometimes(rng, 0.3, 0.5),
        away: 0.0,
        throttled: 0.0,
        changes_node: sometimes(rng, 0.5, 1.0),
        changes_data_center: sometimes(rng, 0.4, 0.7),
        without_cookies: sometimes(rng, 0.2, 0.4),
        log_out: sometimes(rng, 0.3, 0.8),
        replays: sometimes(rng, 0.4, 0.8),
    }
}

/// Makes most visitors drop their cookies, among a few who keep them.
fn jam(rng: &mut SimRng, behaviour: Behaviour) -> Behaviour {
    Behaviour {
        without_cookies: 0.5 + rng.unit() * 0.45,
        changes_node: 0.0,
        changes_data_center: 0.0,
        replays: 0.0,
        ..behaviour
    }
}

/// Makes visitors keep coming and seldom change the data center, so that each change lasts.
fn travellers(rng: &mut SimRng, behaviour: Behaviour) -> Behaviour {
    Behaviour {
        pages: 40.0,
        think_time: rng.between(DurationMs(400), DurationMs(1_500)),
        changes_data_center: 0.02 + rng.unit() * 0.08,
        without_cookies: 0.0,
        log_out: 0.0,
        ..behaviour
    }
}
