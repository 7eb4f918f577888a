//! Tests of the windows of true time: a tenth of a minute's admissions in any second, and a
//! minute's in any 60 s where the window slides.

use alloc::collections::VecDeque;

use super::*;
use crate::record_view::RecordView;
use crate::split_mix::SplitMix;
use crate::store::Identity;

/// Node as a ledger sees it: it uses what it is granted, and reports in absolute counts.
struct TestChild {
    request: SyncRequest,
    view: RecordView,
    left: u32,
}

impl TestChild {
    fn new(child: u64, window: NewUsersWindow) -> Self {
        let mut request = request(child, 1, 0);
        request.number = 0;
        request.settings.limits = Limits {
            total_active_users: 100_000,
            new_users_per_minute: 120,
        };
        request.settings.window = window;
        request.settings.pacing = false;
        Self {
            request,
            view: RecordView::default(),
            left: 0,
        }
    }

    fn use_up(&mut self, count: u32, now: Timestamp) -> u32 {
        let used = count.min(self.left);
        self.left -= used;
        let admitted = &mut self.request.admitted;
        match admitted
            .iter_mut()
            .find(|(minute, _)| *minute == now.minute())
        {
            Some((_, sum)) => *sum += used,
            None => admitted.push((now.minute(), used)),
        }
        used
    }

    /// Reports, and asks for `slots` in all. What is left of another minute is worth nothing.
    fn sync(&mut self, ledger: &mut Ledger, slots: u32, now: Timestamp) -> u32 {
        let request = &mut self.request;
        request.number += 1;
        request.applied_reply = (request.number > 1).then_some(request.number - 1);
        (request.sent_at, request.closed_through) = (now, now);
        let before = request.balance.minute;
        if before != now.minute() {
            self.left = 0;
        }
        request.balance = LeaseBalance {
            seats: self.left,
            admissions: self.left,
            minute: now.minute(),
            ..LeaseBalance::default()
        };
        request.demand.slots = slots;
        self.view.stamp(request, now);
        let record_time = ledger.time_of(request);
        let reply = ledger.handle_sync(request.clone(), LeaseTerms::default(), record_time);
        self.view.handle_reply(&reply, now);
        let Reply::Granted(reply) = reply else {
            panic!("expected a lease, got {reply:?}");
        };
        request.parent = Some(reply.incarnation);
        (request.generation, request.is_final) = (reply.generation, false);
        self.left += reply.granted.admissions;
        reply.granted.admissions
    }
}

fn two_children(window: NewUsersWindow) -> [TestChild; 2] {
    [1, 2].map(|child| TestChild::new(child, window))
}

fn after(ms: u64) -> Timestamp {
    START + DurationMs(ms)
}

#[test]
fn a_burst_gets_a_tenth_of_a_minute_at_once_and_the_next_tenth_a_second_later() {
    let mut ledger = Ledger::new();
    let mut child = TestChild::new(1, NewUsersWindow::Minute);
    assert_eq!(child.sync(&mut ledger, 500, after(10_000)), 12);
    assert_eq!(child.use_up(500, after(10_001)), 12);
    for ms in [10_002, 10_250, 10_500, 11_000] {
        assert_eq!(child.sync(&mut ledger, 500, after(ms)), 0, "{ms}");
    }
    // The report of 10,002 is known to be older since the reply of 10,250.
    assert_eq!(child.sync(&mut ledger, 500, after(11_251)), 0);
    assert_eq!(child.sync(&mut ledger, 500, after(11_252)), 12);
}

#[test]
fn returned_admissions_are_granted_again_at_once() {
    let mut ledger = Ledger::new();
    let [mut one, mut other] = two_children(NewUsersWindow::Minute);
    assert_eq!(one.sync(&mut ledger, 12, after(0)), 12);
    assert_eq!(other.sync(&mut ledger, 12, after(1)), 0);
    one.left = 5;
    one.sync(&mut ledger, 5, after(2));
    assert_eq!(other.sync(&mut ledger, 12, after(3)), 7);
}

#[test]
fn admissions_of_a_silent_child_count_until_its_minute_is_over_by_all_clocks() {
    let mut ledger = Ledger::new();
    let [mut lost, mut other] = two_children(NewUsersWindow::Minute);
    assert_eq!(lost.sync(&mut ledger, 12, after(55_000)), 12);
    for ms in (55_500..60_999).step_by(250) {
        assert_eq!(other.sync(&mut ledger, 12, after(ms)), 0, "{ms}");
    }
    // All clocks have passed the minute; what was left may have been used at its end.
    assert_eq!(other.sync(&mut ledger, 12, after(61_000)), 0);
    assert_eq!(other.sync(&mut ledger, 12, after(61_250)), 0);
    assert_eq!(other.sync(&mut ledger, 12, after(62_252)), 12);
}

#[test]
fn admissions_of_an_ended_lease_count_until_its_child_cannot_use_them() {
    let mut ledger = Ledger::new();
    let [mut lost, mut other] = two_children(NewUsersWindow::Minute);
    assert_eq!(lost.sync(&mut ledger, 12, after(10_000)), 12);
    let mut granted_at = None;
    for ms in (10_250..30_000).step_by(250) {
        let granted = other.sync(&mut ledger, 12, after(ms));
        assert!(granted == 0 || granted == 12);
        if granted == 12 && granted_at.is_none() {
            granted_at = Some(ms);
        }
        other.left = 0;
    }
    // A lease, the difference of clocks, the second, and the syncs that show that it is over.
    assert_eq!(granted_at, Some(10_000 + 10_000 + 1_000 + 1_500));
}

#[test]
fn a_grant_that_a_store_lost_counts_though_its_minute_is_over() {
    let mut ledger = Ledger::new();
    let [mut one, mut other] = two_children(NewUsersWindow::Sliding);
    one.sync(&mut ledger, 0, after(50_000));
    other.sync(&mut ledger, 0, after(50_000));
    let mut older = ledger.clone();
    assert_eq!(one.sync(&mut ledger, 12, after(50_250)), 12);
    one.use_up(12, after(55_000));
    let store = StoreFacts {
        identity: Identity(7),
        ..older.store()
    };
    older.begin_probation(store, LeaseTerms::default());
    for ms in [60_250, 60_500, 61_500] {
        other.sync(&mut older, 0, after(ms));
    }
    one.sync(&mut older, 0, after(61_750));
    let counted: u32 = older.recent.slots.iter().map(|(_, count)| count).sum();
    assert_eq!(counted, 12);
}

#[test]
fn an_ended_reserve_counts_as_a_whole_window() {
    let mut ledger = Ledger::started_over(START);
    let mut child = TestChild::new(1, NewUsersWindow::Minute);
    for ms in (59_000..62_200).step_by(250) {
        assert_eq!(child.sync(&mut ledger, 12, after(ms)), 0, "{ms}");
    }
    assert_eq!(child.sync(&mut ledger, 12, after(62_502)), 12);
}

#[test]
fn limits_that_fall_and_windows_that_change_hold_for_the_next_grants() {
    let mut ledger = Ledger::new();
    let mut child = TestChild::new(1, NewUsersWindow::Minute);
    assert_eq!(child.sync(&mut ledger, 10, after(0)), 10);
    child.request.settings.limits.new_users_per_minute = 60;
    assert_eq!(child.sync(&mut ledger, 20, after(1)), 0);
    child.request.settings.limits.new_users_per_minute = 240;
    assert_eq!(child.sync(&mut ledger, 500, after(2)), 14);
    child.use_up(24, after(2));
    child.request.settings.limits.new_users_per_minute = 30;
    child.request.settings.window = NewUsersWindow::Sliding;
    // The list knows what was used before the switch.
    let mut granted = 0;
    for ms in (250..59_000).step_by(250) {
        granted += child.sync(&mut ledger, 500, after(ms));
        child.use_up(500, after(ms));
    }
    assert_eq!(granted, 30 - 24);
}

#[test]
fn no_window_of_true_time_has_too_many_admissions() {
    for (seed, window) in (0..40).flat_map(|seed| {
        let windows = [NewUsersWindow::Minute, NewUsersWindow::Sliding];
        windows.map(|window| (seed, window))
    }) {
        let mut rng = SplitMix(seed);
        let mut below = |limit: u64| rng.next_u64() % limit;
        let mut ledger = Ledger::new();
        let mut children: Vec<TestChild> = (1..=1 + below(4))
            .map(|node| TestChild::new(node, window))
            .collect();
        let mut admitted: VecDeque<u64> = VecDeque::new();
        let mut total = 0;
        let mut ms = below(60_000);
        while ms < 200_000 {
            ms += below(120);
            let child = below(children.len() as u64);
            let child = &mut children[usize::try_from(child).unwrap()];
            // A pause that is shorter than a lease, so that no report is void.
            let wanted = u32::try_from(below(40)).unwrap();
            child.sync(&mut ledger, wanted, after(ms));
            let now = ms + below(3);
            let used = child.use_up(wanted, after(now));
            total += used;
            admitted.extend((0..used).map(|_| now));
            let within = |length| {
                admitted
                    .iter()
                    .rev()
                    .take_while(|at| now - **at < length)
                    .count()
            };
            assert!(within(1_000) <= 12, "seed {seed} at {now}");
            if window == NewUsersWindow::Sliding {
                assert!(within(60_000) <= 120, "seed {seed} at {now}");
            }
            ms = now;
        }
        assert!(total > 150, "seed {seed}: {total} admissions");
        assert!(ledger.to_parts().recent.slots.len() <= 160);
    }
}
