//! Reports of made-up minutes: each rule with the smallest points that show it.

use super::*;
use crate::figures::{RoomFigures, Sample};
use anteroom_room::rules::Limits;
use anteroom_room::time::DurationMs;

/// First minute of a day.
const DAY: Minute = Minute(1_440 * 20_000);

fn point(minute: u64, admitted: u64, active: u32, waiting: u32) -> Point {
    let begins = Minute(DAY.0 + minute);
    let mut point = Point {
        begins,
        minutes: 1,
        room: RoomFigures::of(Sample {
            at: begins.starts_at(),
            active,
            waiting,
            limits: Limits {
                total_active_users: 100,
                new_users_per_minute: 10,
            },
        }),
        ..Point::default()
    };
    point.figures.admitted = admitted;
    point
}

fn report(points: &[Point]) -> Report {
    Report::of("shop", Some("sale"), &query(), points)
}

fn query() -> Query {
    Query::new(DAY, Minute(DAY.0 + 5), Some(1), DAY).unwrap()
}

#[test]
fn a_limit_held_if_no_minute_is_above_it_and_the_nearest_one_is_named() {
    let report = report(&[point(0, 3, 99, 0), point(1, 10, 20, 0), point(2, 9, 1, 0)]);
    assert_eq!(report.admissions.held, Some(true));
    let nearest = report.admissions.nearest.unwrap();
    assert!(nearest.at.ends_with("00:01:00Z"), "{}", nearest.at);
    assert_eq!((nearest.count, nearest.limit), (10, 10));
    assert_eq!(report.active.nearest.unwrap().count, 99);
    assert_eq!(report.missing_points, 2);
}

#[test]
fn a_minute_above_its_limit_is_listed() {
    let report = report(&[point(0, 11, 101, 0), point(1, 10, 90, 0)]);
    for check in [report.admissions, report.active] {
        assert_eq!((check.held, check.above_total), (Some(false), 1));
        assert_eq!(check.above, [check.nearest.unwrap()]);
    }
}

#[test]
fn a_lowered_limit_is_no_violation() {
    let mut lowered = point(1, 10, 100, 0);
    lowered.room.new_users_per_minute.min = 5;
    lowered.room.new_users_per_minute.last = 5;
    lowered.room.total_active_users.last = 50;
    let mut next = point(2, 9, 95, 0);
    next.room.new_users_per_minute.max = 5;
    next.room.total_active_users.max = 50;
    let held = report(&[point(0, 10, 100, 0), lowered.clone()]);
    assert_eq!(
        (held.admissions.held, held.active.held),
        (Some(true), Some(true))
    );
    let late = report(&[lowered, next.clone()]);
    assert_eq!(late.admissions.held, Some(false), "a minute later it holds");
    assert_eq!(late.active.held, Some(true), "those inside stay");
    // Without the minute before there is no excuse.
    next.begins = Minute(DAY.0 + 4);
    let gap = report(&[point(0, 10, 100, 0), next]);
    assert_eq!(gap.active.held, Some(false));
}

#[test]
fn without_a_reply_of_the_ledger_nothing_is_said_about_limits() {
    let mut unknown = point(0, 1_000, 0, 0);
    unknown.room = RoomFigures::default();
    let report = report(&[unknown]);
    assert_eq!(
        (report.admissions.held, report.admissions.unchecked),
        (None, 1)
    );
    assert_eq!(report.admissions.nearest, None);
}

#[test]
fn who_left_after_the_range_is_a_miss_and_who_left_before_is_not() {
    let mut left = point(0, 0, 0, 0);
    left.figures.announced = anteroom_room::figures::AnnouncedWaits {
        right: 6,
        early: 1,
        late: 2,
        left_before: 90,
        left_after: 1,
        left_unannounced: 5,
    };
    let report = report(&[left]);
    assert_eq!(report.announced.right_per_mille, Some(600));
    assert_eq!((report.announced.left_before, report.abandoned), (90, 96));
}

#[test]
fn fill_is_of_the_minutes_in_which_visitors_waited() {
    let report = report(&[point(0, 1, 10, 0), point(1, 9, 100, 5), point(2, 10, 90, 1)]);
    assert_eq!(report.fill.points, 2);
    assert_eq!(report.fill.active_per_mille, Some(950));
    assert_eq!(report.fill.admissions_per_mille, Some(950));
}

#[test]
fn the_page_has_no_script_and_shows_names_as_text() {
    let mut points = vec![point(0, 3, 50, 7), point(1, 12, 60, 8)];
    points[0].figures.waits.note(DurationMs::from_secs(90));
    let report = Report::of("<script>", Some("a&b"), &query(), &points);
    let page = html(&report, &query(), &points);
    assert!(!page.contains("<script"), "a name is text");
    assert!(page.contains("Room &lt;script&gt;, event a&amp;b"));
    assert_eq!(page.matches("<svg").count(), 6);
    assert_eq!(page.matches("<figcaption>").count(), 6);
    assert_eq!(page.matches("<tr><th scope=\"row\">").count(), 2);
    assert!(page.contains("prefers-color-scheme: dark"));
    assert!(
        !page.contains("http://www.w3.org/1999"),
        "nothing is fetched"
    );
    let text = text(&report);
    assert!(text.contains("! Admissions       1 step was above the limit; worst: 12 of 10"));
    assert!(
        text.contains("Waits            1 admitted visitors waited; half 1 min 37 s"),
        "{text}"
    );
}

#[test]
fn a_report_of_nothing_says_so() {
    let report = report(&[]);
    assert_eq!(report.missing_points, 5);
    let page = html(&report, &query(), &[]);
    assert!(page.contains("nothing is known of 5 steps"));
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["admissions"]["held"], serde_json::Value::Null);
}
