//! Tests of forecasts, with rooms whose future is known.

use super::*;
use crate::rules::Limits;
use crate::time::Minute;

/// First second of a minute.
const NOW: Timestamp = Timestamp(1_694_432_700_000);

/// Returns rules with sessions of 16 minutes, so that a part of the seat is about a minute.
fn rules(total_active_users: u32, new_users_per_minute: u32) -> Rules {
    Rules {
        limits: Limits {
            total_active_users,
            new_users_per_minute,
        },
        session_duration: DurationMs::from_secs(960),
        ..Rules::default()
    }
}

fn snapshot(active: u32, waiting: u32, ends_ahead: [u32; END_PARTS]) -> Snapshot {
    Snapshot {
        as_of: NOW,
        active,
        waiting,
        ends_ahead,
        longest_known: DurationMs::from_secs(992),
        ..Snapshot::default()
    }
}

fn unknown() -> Habits {
    Habits::default()
}

fn giving_up(rate: u64) -> Habits {
    Habits {
        giving_up: GivingUp::known(rate),
        ..Habits::default()
    }
}

#[track_caller]
fn check(forecast: &WaitForecast, ahead: u32, expected_secs: u64) {
    let wait = forecast.wait(ahead, NOW).expect("somebody leaves").0 / 1_000;
    let off = wait.abs_diff(expected_secs);
    assert!(
        off <= 20 + expected_secs / 20,
        "{ahead} ahead: {wait} s, not {expected_secs}"
    );
}

#[test]
fn an_empty_room_admits_by_the_limit_of_the_minute() {
    let forecast = WaitForecast::of(
        &snapshot(0, 500, [0; END_PARTS]),
        &rules(2_000, 120),
        &unknown(),
    );
    for (ahead, secs) in [(0, 0), (59, 30), (119, 60), (479, 240)] {
        check(&forecast, ahead, secs);
    }
}

#[test]
fn without_pacing_a_minute_admits_at_its_beginning() {
    let rules = Rules {
        pacing: false,
        ..rules(2_000, 120)
    };
    let mut used_up = snapshot(0, 500, [0; END_PARTS]);
    used_up.admitted = alloc::vec![(Minute(NOW.0 / 60_000), 120)];
    let forecast = WaitForecast::of(&used_up, &rules, &unknown());
    for (ahead, secs) in [(0, 60), (119, 70), (120, 120)] {
        check(&forecast, ahead, secs);
    }
}

#[test]
fn a_full_room_admits_as_seats_end() {
    // Ten in each of the first parts, who have left; nobody knows about the others.
    let mut ends = [10; END_PARTS];
    ends[12..].fill(0);
    let forecast = WaitForecast::of(&snapshot(120, 100, ends), &rules(120, 600), &unknown());
    for (ahead, secs) in [(0, 6), (9, 62), (49, 310), (99, 620)] {
        check(&forecast, ahead, secs);
    }
}

#[test]
fn fixed_sessions_end_one_session_after_they_began() {
    let rules = Rules {
        session_renewal: false,
        ..rules(100, 600)
    };
    let mut ends = [0; END_PARTS];
    ends[15] = 100;
    let forecast = WaitForecast::of(&snapshot(100, 150, ends), &rules, &unknown());
    for (ahead, secs) in [(0, 930), (99, 992), (100, 930 + 976)] {
        check(&forecast, ahead, secs);
    }
}

#[test]
fn those_who_browse_leave_at_the_rate_at_which_others_left() {
    // A room in balance: one in ten who browse leaves in each part, and its seat ends 16 later.
    let mut ends = [25; END_PARTS];
    ends[12..].copy_from_slice(&[25, 25, 25, 175]);
    let active = ends.iter().sum();
    let forecast = WaitForecast::of(
        &snapshot(active, 2_000, ends),
        &rules(active, 600),
        &unknown(),
    );
    // 25 in each part go on, far beyond the ends that are known.
    for (ahead, secs) in [(24, 62), (249, 620), (499, 1_240), (999, 2_480)] {
        check(&forecast, ahead, secs);
    }
}

#[test]
fn those_who_give_up_make_the_wait_shorter() {
    let room = snapshot(0, 100_000, [0; END_PARTS]);
    let rules = rules(1_000_000, 600);
    // ln(1 + h a / s) / h with h = 0.001 and s = 10 a second.
    let forecast = WaitForecast::of(&room, &rules, &giving_up(1_000));
    for (ahead, secs) in [(1_000, 95), (10_000, 693), (30_000, 1_386)] {
        check(&forecast, ahead, secs);
    }
}

#[test]
fn a_queue_longer_than_the_forecast_goes_on_at_its_last_rate() {
    let forecast = WaitForecast::of(
        &snapshot(0, 1_000_000, [0; END_PARTS]),
        &rules(9_000_000, 60),
        &unknown(),
    );
    check(&forecast, 599_999, 600_000);
}

#[test]
fn where_nobody_leaves_there_is_no_forecast() {
    let nobody_leaves =
        WaitForecast::of(&snapshot(0, 10, [0; END_PARTS]), &rules(0, 60), &unknown());
    assert_eq!(nobody_leaves.wait(0, NOW), None);
    assert_eq!(WaitForecast::default().wait(0, NOW), None);
}

#[test]
fn quartiles_of_a_lottery_rise() {
    let forecast = WaitForecast::of(
        &snapshot(0, 240, [0; END_PARTS]),
        &rules(2_000, 60),
        &unknown(),
    );
    let wait = forecast.wait_by_lot(240, NOW).expect("somebody leaves");
    let secs = [wait.low, wait.middle, wait.high].map(|wait| wait.0 / 1_000);
    assert_eq!(secs.map(|secs| (secs + 2) / 60), [1, 2, 3]);
}
