//! Decisions and requests of a node, with replies made by hand.

use super::*;
use crate::leases::epoch::EpochId;
use crate::policy::Policy;
use crate::rate::Rate;
use crate::sliding_log::SlidingLog;

/// Limit of a hundred requests a minute, with leases of three seconds.
fn limit() -> LeasedLimit {
    let rate = Rate::new(100, DurationUs::from_secs(60)).unwrap();
    LeasedLimit::new(Policy::SlidingLog(SlidingLog::new(rate).unwrap())).unwrap()
}

fn id(number: u64) -> RequestId {
    RequestId {
        incarnation: 1,
        number,
    }
}

fn answer(number: u64, granted: u32) -> LeaseReply {
    LeaseReply {
        id: id(number),
        granted,
        ttl: DurationUs::from_secs(3),
        retry_after: Some(DurationUs::ZERO),
        remaining: 40,
        full_after: DurationUs::from_secs(60),
        uncertain_for: DurationUs::ZERO,
        epoch: EpochId {
            number: 1,
            random: 1,
        },
    }
}

fn rejection(number: u64, retry_after: Option<DurationUs>) -> LeaseReply {
    LeaseReply {
        retry_after,
        remaining: 0,
        ..answer(number, 0)
    }
}

/// Returns a holding that sent a request at zero and leased `held`.
fn holding(held: u32) -> Holding {
    let mut holding = Holding::new();
    assert_eq!(
        holding.decide(TimestampUs(0), Cost::take(held)),
        Decision::Wait(Turn(1))
    );
    let request = holding
        .poll_request(TimestampUs(0), id(1), &limit())
        .unwrap();
    assert_eq!((request.least, request.waiting), (held, held));
    assert!(holding.handle_reply(TimestampUs(10), &answer(1, held), TimestampUs(0)));
    holding
}

fn is_admitted(decision: Decision) -> bool {
    matches!(decision, Decision::Decided(verdict) if verdict.is_allowed())
}

fn rejected_for(decision: Decision) -> Option<DurationUs> {
    match decision {
        Decision::Decided(Verdict {
            outcome: Outcome::Reject { retry_after },
            ..
        }) => retry_after,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_first_request_waits_for_the_reply() {
    let mut holding = holding(2);
    assert!(is_admitted(holding.decide_again(
        TimestampUs(10),
        Cost::take(2),
        Turn(1)
    )));
    assert_eq!(
        holding.decide(TimestampUs(11), Cost::ONE),
        Decision::Wait(Turn(2))
    );
}

#[test]
fn a_lease_counts_from_the_read_less_a_margin() {
    for (at, spends) in [(2_984_998, true), (2_984_999, false)] {
        assert_eq!(
            is_admitted(holding(2).decide(TimestampUs(at), Cost::ONE)),
            spends,
            "{at}"
        );
    }
}

#[test]
fn only_the_reply_to_the_newest_request_counts_and_once() {
    let mut holding = holding(2);
    assert!(
        !holding.handle_reply(TimestampUs(20), &answer(1, 2), TimestampUs(0)),
        "a reply counts once"
    );
    holding.decide(TimestampUs(30), Cost::take(5));
    holding
        .poll_request(TimestampUs(30), id(2), &limit())
        .unwrap();
    holding.handle_failure(TimestampUs(40), id(2));
    assert!(
        !holding.handle_reply(TimestampUs(50), &answer(2, 5), TimestampUs(30)),
        "too late"
    );
    assert_eq!(holding.balance(TimestampUs(50)), 2);
}

#[test]
fn one_message_covers_all_requests_that_wait_when_it_is_sent() {
    let mut holding = Holding::new();
    holding.decide(TimestampUs(0), Cost::take(3));
    holding.decide(TimestampUs(0), Cost::ONE);
    let request = holding
        .poll_request(TimestampUs(0), id(1), &limit())
        .unwrap();
    assert_eq!((request.least, request.waiting), (1, 4));
    assert_eq!(
        holding.decide(TimestampUs(1), Cost::ONE),
        Decision::Wait(Turn(2))
    );
    assert_eq!(holding.poll_request(TimestampUs(1), id(2), &limit()), None);
    let reply = rejection(1, Some(DurationUs(500_000)));
    holding.handle_reply(TimestampUs(9), &reply, TimestampUs(0));
    let again = holding.decide_again(TimestampUs(9), Cost::ONE, Turn(1));
    assert_eq!(rejected_for(again), Some(DurationUs(499_991)));
    let later = holding.decide_again(TimestampUs(9), Cost::ONE, Turn(2));
    assert_eq!(later, Decision::Wait(Turn(2)));
}

#[test]
fn only_the_missing_part_of_a_cost_is_requested() {
    let mut holding = Holding::new();
    holding.decide(TimestampUs(0), Cost::take(9));
    holding
        .poll_request(TimestampUs(0), id(1), &limit())
        .unwrap();
    holding.handle_reply(TimestampUs(9), &answer(1, 9), TimestampUs(0));
    let waits = holding.decide(TimestampUs(10), Cost::take(10));
    assert!(matches!(waits, Decision::Wait(_)));
    let request = holding
        .poll_request(TimestampUs(10), id(2), &limit())
        .unwrap();
    assert_eq!((request.least, request.waiting), (1, 1));
}

#[test]
fn a_rejection_of_the_parent_holds_until_its_retry_time() {
    let mut holding = Holding::new();
    holding.decide(TimestampUs(0), Cost::take(2));
    holding
        .poll_request(TimestampUs(0), id(1), &limit())
        .unwrap();
    let mut reply = rejection(1, Some(DurationUs(500_000)));
    reply.remaining = 1;
    holding.handle_reply(TimestampUs(9), &reply, TimestampUs(0));
    assert_eq!(
        rejected_for(holding.decide(TimestampUs(100), Cost::take(2))),
        Some(DurationUs(499_900))
    );
    assert!(matches!(
        holding.decide(TimestampUs(100), Cost::ONE),
        Decision::Wait(_)
    ));
    assert!(matches!(
        holding.decide(TimestampUs(500_000), Cost::take(2)),
        Decision::Wait(_)
    ));
    let mut never = Holding::new();
    never.decide(TimestampUs(0), Cost::take(200));
    never.poll_request(TimestampUs(0), id(1), &limit()).unwrap();
    never.handle_reply(TimestampUs(9), &rejection(1, None), TimestampUs(0));
    assert_eq!(
        rejected_for(never.decide(TimestampUs(10), Cost::take(200))),
        None
    );
    let later = TimestampUs(10) + REPLY_VALID_FOR;
    assert!(matches!(
        never.decide(later, Cost::take(200)),
        Decision::Wait(_)
    ));
}

/// One request comes each millisecond, and each grant is one, spent at once.
#[test]
fn a_shortage_limits_messages_per_lease() {
    let (mut holding, mut requests, mut wants) = (Holding::new(), 0, 0);
    for at in 0..3_000 {
        let now = TimestampUs(at * 1_000);
        if !matches!(holding.decide(now, Cost::ONE), Decision::Wait(_)) {
            continue;
        }
        requests += 1;
        let request = holding.poll_request(now, id(requests), &limit()).unwrap();
        assert_eq!(request.least, 1);
        wants = request.waiting;
        let mut answer = answer(requests, 1);
        answer.remaining = 0;
        // One becomes free every few milliseconds.
        answer.retry_after = Some(DurationUs(4_000));
        holding.handle_reply(now, &answer, now);
        let turn = Turn(requests);
        assert!(is_admitted(holding.decide_again(now, Cost::ONE, turn)));
    }
    // The first one came alone.
    assert_eq!(requests, 1 + REQUESTS_OF_TTL);
    // A thousand a second, for an eighth of three seconds; the average lags at first.
    assert!((250..=400).contains(&wants), "{wants}");
}

#[test]
fn a_client_may_wait_for_a_reply_at_its_retry_time() {
    let mut holding = Holding::new();
    for (number, at) in [(1, 0), (2, 60_000_000), (3, 60_750_000)] {
        let now = TimestampUs(at);
        assert!(matches!(holding.decide(now, Cost::ONE), Decision::Wait(_)));
        holding.poll_request(now, id(number), &limit()).unwrap();
        let reply = rejection(number, Some(DurationUs(1)));
        holding.handle_reply(now, &reply, now);
    }
    let then = TimestampUs(60_750_001);
    assert!(matches!(holding.decide(then, Cost::ONE), Decision::Wait(_)));
}

#[test]
fn without_a_rejection_a_message_covers_only_waiting_requests() {
    let mut holding = Holding::new();
    for number in 1..20 {
        let now = TimestampUs(number * 10_000);
        let Decision::Wait(turn) = holding.decide(now, Cost::ONE) else {
            panic!("{number} was decided at once");
        };
        let request = holding.poll_request(now, id(number), &limit()).unwrap();
        assert_eq!(request.waiting, 1);
        let mut answer = answer(number, 1);
        // The parent has more.
        answer.retry_after = Some(DurationUs::ZERO);
        answer.remaining = 3;
        holding.handle_reply(now, &answer, now);
        assert!(is_admitted(holding.decide_again(now, Cost::ONE, turn)));
    }
}

#[test]
fn an_unavailable_parent_does_not_delay_requests_for_long() {
    let mut holding = Holding::new();
    holding.decide(TimestampUs(0), Cost::ONE);
    holding
        .poll_request(TimestampUs(0), id(1), &limit())
        .unwrap();
    holding.handle_failure(TimestampUs(900), id(1));
    assert_eq!(
        holding.decide_again(TimestampUs(900), Cost::ONE, Turn(1)),
        Decision::Unavailable
    );
    assert_eq!(
        holding.decide(TimestampUs(901), Cost::ONE),
        Decision::Unavailable
    );
    let later = TimestampUs(900) + UNAVAILABLE_FOR;
    assert!(matches!(
        holding.decide(later, Cost::ONE),
        Decision::Wait(_)
    ));
}

#[test]
fn a_lease_that_ended_on_arrival_means_an_unavailable_parent() {
    for (ttl, decision) in [
        (3_000_000, Decision::Unavailable),
        (1_000, Decision::Wait(Turn(2))),
    ] {
        let mut holding = Holding::new();
        holding.decide(TimestampUs(0), Cost::ONE);
        holding
            .poll_request(TimestampUs(0), id(1), &limit())
            .unwrap();
        let mut late = answer(1, 1);
        late.ttl = DurationUs(ttl);
        holding.handle_reply(TimestampUs(ttl), &late, TimestampUs(0));
        let again = holding.decide_again(TimestampUs(ttl), Cost::ONE, Turn(1));
        assert_eq!(
            again, decision,
            "a lease that ended with its window proves nothing"
        );
    }
}

#[test]
fn steady_requests_are_leased_ahead() {
    let mut holding = holding(100);
    let (mut now, mut number) = (TimestampUs(10), 2);
    for k in 0..400 {
        now = now + DurationUs(10_000);
        let decision = holding.decide(now, Cost::ONE);
        assert!(is_admitted(decision), "{k}: {decision:?}");
        if let Some(request) = holding.poll_request(now, id(number), &limit()) {
            assert_eq!(request.waiting, 0);
            assert!(request.most > 10, "{request:?}");
            let read_at = now;
            now = now + DurationUs(2_000);
            holding.handle_reply(now, &answer(number, request.most), read_at);
            number += 1;
        }
    }
    assert!((3..20).contains(&number), "{number}");
}

#[test]
fn a_rare_client_leaves_no_unused_leases() {
    let mut holding = holding(1);
    holding.decide_again(TimestampUs(10), Cost::ONE, Turn(1));
    for k in 1..20 {
        let now = TimestampUs(k * 5_000_000);
        assert!(matches!(holding.decide(now, Cost::ONE), Decision::Wait(_)));
        let request = holding.poll_request(now, id(k + 1), &limit()).unwrap();
        assert_eq!((request.waiting, request.most), (1, 1));
        holding.handle_reply(now, &answer(k + 1, 1), now);
        assert!(is_admitted(holding.decide_again(
            now,
            Cost::ONE,
            Turn(k + 1)
        )));
        assert_eq!(holding.poll_request(now, id(0), &limit()), None);
    }
}

#[test]
fn a_peek_takes_nothing_and_waits_only_without_a_reply() {
    let mut holding = Holding::new();
    assert_eq!(
        holding.decide(TimestampUs(0), Cost::Peek),
        Decision::Wait(Turn(1))
    );
    let request = holding
        .poll_request(TimestampUs(0), id(1), &limit())
        .unwrap();
    assert_eq!((request.least, request.waiting, request.most), (0, 0, 0));
    holding.handle_reply(TimestampUs(9), &answer(1, 0), TimestampUs(0));
    let Decision::Decided(verdict) = holding.decide_again(TimestampUs(9), Cost::Peek, Turn(1))
    else {
        panic!("it is known");
    };
    assert_eq!((verdict.is_allowed(), verdict.remaining), (true, 40));
}

#[test]
fn undone_requests_can_be_spent_again_while_their_lease_runs() {
    let mut holding = holding(2);
    assert!(is_admitted(holding.decide(TimestampUs(20), Cost::take(2))));
    assert_eq!(
        holding.undo(TimestampUs(21), TimestampUs(20), 2).remaining,
        42
    );
    assert!(is_admitted(holding.decide(TimestampUs(22), Cost::take(2))));
    holding.undo(TimestampUs(3_000_000), TimestampUs(22), 2);
    assert_eq!(holding.balance(TimestampUs(3_000_000)), 0);
}

#[test]
fn a_new_limit_voids_the_last_reply() {
    let mut holding = Holding::new();
    holding.decide(TimestampUs(0), Cost::ONE);
    holding
        .poll_request(TimestampUs(0), id(1), &limit())
        .unwrap();
    holding.handle_reply(
        TimestampUs(9),
        &rejection(1, Some(DurationUs(1_000))),
        TimestampUs(0),
    );
    holding.handle_new_limit();
    assert!(matches!(
        holding.decide(TimestampUs(10), Cost::ONE),
        Decision::Wait(_)
    ));
}

#[test]
fn a_rejection_is_uncertain_while_it_may_be_due_to_a_loss() {
    let mut holding = holding(1);
    assert!(is_admitted(holding.decide(TimestampUs(20), Cost::ONE)));
    let wait = holding.decide(TimestampUs(30), Cost::ONE);
    assert_eq!(wait, Decision::Wait(Turn(2)));
    holding
        .poll_request(TimestampUs(30), id(2), &limit())
        .unwrap();
    let reply = LeaseReply {
        uncertain_for: DurationUs(1_000),
        ..rejection(2, Some(DurationUs::from_secs(60)))
    };
    assert!(holding.handle_reply(TimestampUs(50), &reply, TimestampUs(30)));
    let again = holding.decide_again(TimestampUs(50), Cost::ONE, Turn(2));
    assert_eq!(again, Decision::Uncertain(DurationUs(980)));
    let other = holding.decide(TimestampUs(1_029), Cost::Peek);
    assert_eq!(other, Decision::Uncertain(DurationUs(1)));
    let certain = holding.decide(TimestampUs(1_030), Cost::ONE);
    assert_eq!(rejected_for(certain), Some(DurationUs(59_999_000)));
}
