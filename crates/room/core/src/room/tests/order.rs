//! Tests of inversions: admissions out of order.

use super::*;

#[test]
fn an_admission_before_an_earlier_visitor_is_counted() {
    let mut pair = Pair::new(Rules {
        session_duration: DurationMs(10_000),
        ..rules(2, 100)
    });
    pair.admit();
    pair.admit();
    let (first, _) = pair.queue(None);
    pair.queue(Some(first));
    pair.wait(3_000);
    let (second, _) = pair.queue(None);
    for ticket in [first, second] {
        pair.wait(200);
        pair.queue(Some(ticket));
    }
    // Both seats end, and both visitors are within the watermark; the second refreshes sooner.
    for _ in 0..9 {
        pair.wait(1_000);
        pair.sync();
        for ticket in [second, first] {
            pair.visit(Some(ticket));
        }
    }
    let inversions = pair.room.counters().inversions;
    assert_eq!(
        (inversions.total(), inversions.largest),
        (2, DurationMs(3_000))
    );
}
