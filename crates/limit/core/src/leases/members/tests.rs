//! Two nodes and the record of members between them.

use super::*;

const FIRST: StoreIdentity = StoreIdentity(1);
const SECOND: StoreIdentity = StoreIdentity(2);
const LOSS: DurationUs = DurationUs::from_secs(3);

fn secs(secs: u64) -> TimestampUs {
    TimestampUs(1_000_000) + DurationUs::from_secs(secs)
}

/// Node with the record that it shares with others.
struct Node(Membership);

impl Node {
    fn new(node: u64) -> Self {
        Self(Membership::new(node))
    }

    /// Reads, and writes if that is due. Returns whether it did.
    fn turn(&mut self, members: &mut Members, store: StoreIdentity, phase: Phase, at: u64) -> bool {
        self.0.handle_read(members, store, secs(at));
        let next = self.0.poll_write(members, LOSS, phase, secs(at));
        let is_written = next.is_some();
        if let Some(next) = next {
            *members = next;
            self.0.handle_written(secs(at), secs(at));
        }
        is_written
    }

    fn is_safe(&self, at: TimestampUs) -> bool {
        self.0.is_safe(LOSS, at)
    }
}

#[test]
fn a_new_member_is_safe_when_its_entry_cannot_be_forgotten() {
    let (mut node, mut members) = (Node::new(1), Members::default());
    assert!(!node.is_safe(secs(9)));
    assert!(node.turn(&mut members, FIRST, Phase::InForce, 0));
    assert!(!node.is_safe(secs(0) + LOSS));
    assert!(node.is_safe(secs(0) + LOSS + DurationUs(1)));
    assert!(
        !node.turn(&mut members, FIRST, Phase::InForce, 2),
        "it is not due yet"
    );
    // Removed, or forgotten: it begins anew.
    members = Members::default();
    assert!(node.turn(&mut members, FIRST, Phase::InForce, 4));
    assert!(!node.is_safe(secs(7)));
    assert!(node.is_safe(secs(8)));
}

#[test]
fn a_member_that_does_not_renew_is_granted_nothing_before_it_is_removed() {
    let (mut silent, mut other) = (Node::new(1), Node::new(2));
    let mut members = Members::default();
    silent.turn(&mut members, FIRST, Phase::InForce, 0);
    assert!(silent.is_safe(secs(0) + SAFE_FOR - DurationUs(1)));
    assert!(!silent.is_safe(secs(0) + SAFE_FOR));
    for at in 0..15 {
        other.turn(&mut members, FIRST, Phase::InForce, at);
        assert_eq!(members.0.len(), 2, "{at}");
    }
    other.turn(&mut members, FIRST, Phase::InForce, 15);
    assert_eq!(members.0.len(), 1);
}

#[test]
fn the_time_in_which_nobody_could_read_counts_for_nobody() {
    let (mut one, mut other) = (Node::new(1), Node::new(2));
    let mut members = Members::default();
    one.turn(&mut members, FIRST, Phase::InForce, 0);
    other.turn(&mut members, FIRST, Phase::InForce, 0);
    // The store was away for a minute.
    one.turn(&mut members, FIRST, Phase::InForce, 60);
    assert_eq!(members.0.len(), 2);
    assert!(other.turn(&mut members, FIRST, Phase::InForce, 60));
    assert!(other.is_safe(secs(60)));
}

#[test]
fn nothing_is_complete_before_every_member_has_reported() {
    let (mut one, mut other) = (Node::new(1), Node::new(2));
    let mut members = Members::default();
    one.turn(&mut members, FIRST, Phase::InForce, 0);
    other.turn(&mut members, FIRST, Phase::InForce, 0);
    one.turn(&mut members, SECOND, Phase::Reporting, 20);
    assert_eq!(one.0.reports(&members, LOSS, secs(20)), Reports::Missing);
    one.turn(&mut members, SECOND, Phase::Reported, 20);
    assert_eq!(one.0.reports(&members, LOSS, secs(20)), Reports::Missing);
    other.turn(&mut members, SECOND, Phase::Reported, 21);
    one.turn(&mut members, SECOND, Phase::Reported, 21);
    assert_eq!(one.0.reports(&members, LOSS, secs(21)), Reports::Complete);
    // Both were members for longer than the store can forget.
    assert!(one.is_safe(secs(21)) && other.is_safe(secs(21)));
}

#[test]
fn a_member_that_will_not_report_means_loss_unless_the_store_keeps_all() {
    let (mut one, mut other) = (Node::new(1), Node::new(2));
    let mut members = Members::default();
    one.turn(&mut members, FIRST, Phase::InForce, 0);
    other.turn(&mut members, FIRST, Phase::InForce, 0);
    for at in 20..32 {
        one.turn(&mut members, SECOND, Phase::Reported, at);
        assert_eq!(
            one.0.reports(&members, LOSS, secs(at)),
            Reports::Missing,
            "{at}"
        );
    }
    one.turn(&mut members, SECOND, Phase::Reported, 32);
    assert_eq!(members.0.len(), 2, "a silent member stays until then");
    assert_eq!(one.0.reports(&members, LOSS, secs(32)), Reports::Lost);
    let keeps_all = DurationUs::ZERO;
    assert_eq!(
        one.0.reports(&members, keeps_all, secs(32)),
        Reports::Complete
    );
}

#[test]
fn a_node_that_is_no_member_joins_after_its_report() {
    let (mut node, mut members) = (Node::new(1), Members::default());
    assert!(!node.turn(&mut members, SECOND, Phase::Reporting, 0));
    assert!(node.turn(&mut members, SECOND, Phase::Reported, 1));
    let entry = members.0[0];
    assert_eq!((entry.node, entry.reported_to), (1, SECOND));
    assert_eq!(members.without(1), Some(Members::default()));
    assert_eq!(members.without(2), None);
}

#[test]
fn the_number_of_members_is_bounded() {
    let full = (0..MEMBERS_MAX as u64).map(|node| Member {
        node,
        renewals: 0,
        reported_to: FIRST,
    });
    let mut members = Members(full.collect());
    assert!(!Node::new(u64::MAX).turn(&mut members, FIRST, Phase::InForce, 0));
    assert!(Node::new(3).turn(&mut members, FIRST, Phase::InForce, 0));
    assert_eq!(members.0.len(), MEMBERS_MAX);
}
