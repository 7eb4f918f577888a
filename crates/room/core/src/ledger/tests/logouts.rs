//! When is the seat of an ended session somebody else's?

use super::*;

const END: Timestamp = Timestamp(START.0 + 100_000);

fn logout() -> Revocation {
    Revocation {
        visitor: VisitorId([5; 16]),
        seat_ends_at: Some(END),
        until: START + LONGEST,
    }
}

/// Two nodes on a shared store; the first tells of a logout of one of its two seats.
struct Two {
    ledger: Ledger,
    nodes: [SyncRequest; 2],
    now: Timestamp,
}

impl Two {
    fn new() -> Self {
        let mut nodes = [request(1, 1, 0), request(2, 1, 0)];
        nodes[0].row.add_many(END, 2);
        let mut two = Self {
            ledger: Ledger::first_start(Incarnation(7)),
            nodes,
            now: START,
        };
        two.speak(0);
        two.speak(1);
        two.nodes[0].revocations = vec![logout()];
        two.speak(0);
        two.nodes[0].revocations.clear();
        two
    }

    /// A node speaks, and knows from then on what it was answered.
    fn speak(&mut self, index: usize) {
        self.now = self.now + DurationMs(100);
        let node = &mut self.nodes[index];
        let ledger = core::mem::take(&mut self.ledger);
        let (ledger, answer) = lent(ledger, node, self.now);
        self.ledger = ledger;
        node.number += 1;
        node.answered = Some(answer.number);
        node.generation = answer.generation;
        node.parent = Some(answer.incarnation);
        node.is_final = false;
        if let Some((version, _)) = answer.revoked {
            (node.revoked_version, node.refuses_through) = (version, version);
        }
    }
}

#[test]
fn a_seat_is_free_when_all_nodes_reject_its_ticket() {
    let mut two = Two::new();
    assert_eq!(two.ledger.inside(), 2);
    two.speak(0);
    two.speak(1);
    assert_eq!(two.ledger.inside(), 2, "the other hears of it just now");
    two.speak(1);
    assert_eq!(two.ledger.inside(), 1);
    two.nodes[1].revocations = vec![logout()];
    two.speak(1);
    two.speak(0);
    two.speak(1);
    assert_eq!(two.ledger.inside(), 1, "told again, it frees no other");
}

#[test]
fn a_seat_is_kept_while_a_silent_node_may_accept_its_ticket() {
    let mut two = Two::new();
    two.speak(0);
    two.now = START + LEASE_TTL + DurationMs(1_000);
    two.nodes[0].is_final = true;
    two.nodes[0].generation = None;
    for _ in 0..3 {
        two.speak(0);
    }
    assert_eq!(two.ledger.children.len(), 1, "the other is given up");
    assert_eq!(two.ledger.inside(), 2);
    assert_eq!(two.ledger.logouts.missing.len(), 1);
    // Somebody else says what he will, and time passes: the other one is still missed.
    two.now = two.now + LONGEST.times(2);
    two.nodes[0].is_final = true;
    two.nodes[0].generation = None;
    two.nodes[0].revocations = vec![Revocation {
        until: two.now + LONGEST,
        ..logout()
    }];
    for _ in 0..3 {
        two.speak(0);
    }
    assert_eq!(two.ledger.logouts.refused_through, 0);
    // A process that takes its place is as good as itself.
    two.nodes[0].replaces = vec![NodeId(2)];
    two.speak(0);
    assert!(two.ledger.logouts.missing.is_empty());
    two.speak(0);
    assert_ne!(two.ledger.logouts.refused_through, 0);
}

/// The missing process may let visitors pass by a clock that is as far behind as clocks may be.
#[test]
fn an_ended_seat_returns_a_second_later_while_a_process_is_missing() {
    for is_missing in [false, true] {
        let mut two = Two::new();
        if is_missing {
            two.ledger.give_up(NodeId(2), START + LEASE_TTL);
        }
        let mut inside_at = |after: u64| {
            two.now = END + DurationMs(after);
            for index in if is_missing { 0..1 } else { 0..2 } {
                let node = &mut two.nodes[index];
                (node.closed_through, node.is_final) = (END + DurationMs(after), true);
                node.row = SeatRow::default();
                node.row.add_many(END, 2);
                two.now = END + DurationMs(after) - DurationMs(100);
                two.speak(index);
            }
            two.ledger.inside()
        };
        let expected = if is_missing { [2, 2, 0] } else { [0, 0, 0] };
        assert_eq!([0, 999, 1_000].map(&mut inside_at), expected);
    }
}
