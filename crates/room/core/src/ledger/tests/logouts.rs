//! Tests of when the seat of a revoked session is free.

use super::*;

const END: Timestamp = Timestamp(START.0 + 100_000);

fn logout() -> Revocation {
    Revocation {
        visitor: VisitorId([5; 16]),
        seat_ends_at: Some(END),
        until: START + LONGEST,
    }
}

/// Two nodes on a shared store; the first reports a logout of one of its two seats.
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
        two.sync(0);
        two.sync(1);
        two.nodes[0].revocations = vec![logout()];
        two.sync(0);
        two.nodes[0].revocations.clear();
        two
    }

    /// Syncs a node, which applies the reply.
    fn sync(&mut self, index: usize) {
        self.now = self.now + DurationMs(100);
        let node = &mut self.nodes[index];
        let ledger = core::mem::take(&mut self.ledger);
        let (ledger, reply) = grant(ledger, node, self.now);
        self.ledger = ledger;
        node.number += 1;
        node.applied_reply = Some(reply.number);
        node.generation = reply.generation;
        node.parent = Some(reply.incarnation);
        node.is_final = false;
        if let Some((version, _)) = reply.revoked {
            (node.revoked_version, node.rejects_through) = (version, version);
        }
    }
}

#[test]
fn a_seat_is_free_when_all_nodes_reject_its_ticket() {
    let mut two = Two::new();
    assert_eq!(two.ledger.active(), 2);
    two.sync(0);
    two.sync(1);
    assert_eq!(two.ledger.active(), 2, "the other learns of it only now");
    two.sync(1);
    assert_eq!(two.ledger.active(), 1);
    two.nodes[1].revocations = vec![logout()];
    two.sync(1);
    two.sync(0);
    two.sync(1);
    assert_eq!(two.ledger.active(), 1, "reported again, it frees no other");
}

#[test]
fn a_seat_stays_taken_while_a_missing_node_may_accept_its_ticket() {
    let mut two = Two::new();
    two.sync(0);
    two.now = START + LEASE_TTL + DurationMs(1_000);
    two.nodes[0].is_final = true;
    two.nodes[0].generation = None;
    for _ in 0..3 {
        two.sync(0);
    }
    assert_eq!(two.ledger.children.len(), 1, "the other is given up");
    assert_eq!(two.ledger.active(), 2);
    assert_eq!(two.ledger.logouts.missing_processes.len(), 1);
    // Another node reports a logout, and time passes: the other one is still missing.
    two.now = two.now + LONGEST.times(2);
    two.nodes[0].is_final = true;
    two.nodes[0].generation = None;
    two.nodes[0].revocations = vec![Revocation {
        until: two.now + LONGEST,
        ..logout()
    }];
    for _ in 0..3 {
        two.sync(0);
    }
    assert_eq!(two.ledger.logouts.rejected_through, 0);
    // A successor's report counts like its own.
    two.nodes[0].replaces = vec![NodeId(2)];
    two.sync(0);
    assert!(two.ledger.logouts.missing_processes.is_empty());
    two.sync(0);
    assert_ne!(two.ledger.logouts.rejected_through, 0);
}

/// The missing process may admit visitors by a clock with the largest lag allowed.
#[test]
fn an_ended_seat_returns_a_second_later_while_a_process_is_missing() {
    for is_missing in [false, true] {
        let mut two = Two::new();
        if is_missing {
            two.ledger.give_up(NodeId(2));
        }
        let mut active_at = |after: u64| {
            two.now = END + DurationMs(after);
            for index in if is_missing { 0..1 } else { 0..2 } {
                let node = &mut two.nodes[index];
                (node.closed_through, node.is_final) = (END + DurationMs(after), true);
                node.row = SeatRow::default();
                node.row.add_many(END, 2);
                two.now = END + DurationMs(after) - DurationMs(100);
                two.sync(index);
            }
            two.ledger.active()
        };
        let expected = if is_missing { [2, 2, 0] } else { [0, 0, 0] };
        assert_eq!([0, 999, 1_000].map(&mut active_at), expected);
    }
}
