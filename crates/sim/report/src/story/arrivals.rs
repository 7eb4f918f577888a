//! Small numbers of visitors against the real allocations.

use std::collections::BTreeMap;

use anteroom_room::allocation::counters::CounterAllocator;
use anteroom_room::allocation::{Allocator as _, AllocatorContext, AnyAllocator, CounterKey, Take};
use anteroom_room::hash::LotteryKey;
use anteroom_room::id::{DataCenterId, NodeId, VisitorId};
use anteroom_room::lease::Lease;
use anteroom_room::ledger::{LeaseTerms, Ledger};
use anteroom_room::room::{Capacity, Predecessors, Room, RoomIdentity, TurnWait, Verdict, Visit};
use anteroom_room::rules::{AllocationKind, Limits, Rules};
use anteroom_room::statistics::RoomStatistics;
use anteroom_room::time::{DurationMs, Timestamp};

use super::room::{DELHI, exponent_millionths, rules};

/// Start of a minute without admissions yet.
const START: Timestamp = Timestamp(1_694_432_760_000);
/// Time between two arrivals in [`Nodes`].
const BETWEEN: DurationMs = DurationMs(50);

/// Two nodes with about ten slots, and their visitors.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct TwoNodes {
    /// Allocation of the slots.
    pub(super) kind: AllocationKind,
    /// Visitors at each of the nodes.
    pub(super) arrivals: [u32; 2],
    /// Admitted visitors at each of the nodes.
    pub(super) admitted: [u32; 2],
}

impl TwoNodes {
    /// Sends visitors to the two nodes in turn, while each has any left.
    pub(super) fn of(kind: AllocationKind, slots: u32, arrivals: [u32; 2]) -> Self {
        let mut nodes = Nodes::new(kind, slots);
        let mut admitted = [0; 2];
        for turn in 0..arrivals[0].max(arrivals[1]) {
            for node in 0..2 {
                if turn < arrivals[node] && nodes.admits(node) {
                    admitted[node] += 1;
                }
            }
        }
        Self {
            kind,
            arrivals,
            admitted,
        }
    }

    /// Returns the admitted visitors of both nodes.
    pub(super) const fn admitted_total(&self) -> u32 {
        self.admitted[0] + self.admitted[1]
    }

    /// Returns the queued visitors of both nodes.
    pub(super) const fn queued(&self) -> u32 {
        self.arrivals[0] + self.arrivals[1] - self.admitted_total()
    }
}

/// Returns how many visitors were admitted before the first one waits, when so many of a hundred
/// visitors come to the first node and the others to the second one.
pub(super) fn admitted_before_the_first_waits(
    kind: AllocationKind,
    slots: u32,
    percent_at_first: u32,
) -> u32 {
    let mut nodes = Nodes::new(kind, slots);
    let mut credit = 0;
    for admitted in 0..slots * 3 {
        credit += percent_at_first;
        let node = usize::from(credit < 100);
        credit %= 100;
        if !nodes.admits(node) {
            return admitted;
        }
    }
    slots * 3
}

/// Two nodes of one data center, each with the state of its allocation.
struct Nodes {
    rules: Rules,
    statistics: RoomStatistics,
    allocators: [AnyAllocator; 2],
    counters: BTreeMap<CounterKey, u64>,
    leases: Option<LeasingNodes>,
}

impl Nodes {
    /// Creates two nodes with `slots` slots at 10 % of the limit (`curve`), or exactly so many
    /// free.
    fn new(kind: AllocationKind, slots: u32) -> Self {
        // The minute's admissions are the slots, and a tenth of ten times as many seats is taken.
        let limits = Limits {
            total_active_users: slots * 10,
            new_users_per_minute: slots,
        };
        let rules = Rules {
            limits,
            allocation: kind,
            pacing: false,
            ..rules(exponent_millionths())
        };
        let statistics = RoomStatistics {
            as_of: START,
            active_users: slots,
            nodes_total: 2,
            nodes_here: 2,
            admitted_this_minute: 0,
            last_minute: vec![],
        };
        Self {
            rules,
            statistics,
            allocators: [AnyAllocator::new(kind), AnyAllocator::new(kind)],
            counters: BTreeMap::new(),
            leases: (kind == AllocationKind::Leases).then(|| LeasingNodes::new(slots)),
        }
    }

    fn admits(&mut self, node: usize) -> bool {
        if let Some(leases) = &mut self.leases {
            return leases.admits(node);
        }
        let minute = (&self.rules, &self.statistics, DELHI);
        admit(&mut self.allocators[node], minute, &mut self.counters)
    }
}

/// Requests a slot once, and takes a number from a counter where the allocation needs it.
fn admit(
    allocator: &mut AnyAllocator,
    (rules, statistics, data_center): (&Rules, &RoomStatistics, DataCenterId),
    counters: &mut BTreeMap<CounterKey, u64>,
) -> bool {
    let mut lease = Lease::default();
    loop {
        let mut context = AllocatorContext {
            rules,
            statistics,
            data_center,
            lease: &mut lease,
            now: statistics.as_of,
        };
        let key = match allocator.take(&mut context) {
            Take::Slot => return true,
            Take::UsedUp | Take::SyncWithParent => return false,
            Take::TakeNumber(key) => key,
        };
        let next = counters.entry(key).or_insert(0);
        let number = *next;
        *next += 1;
        let AnyAllocator::Counters(allocator) = allocator else {
            return false;
        };
        if allocator.handle_number(key, Some(number)) {
            return true;
        }
    }
}

/// Returns how many of the arrivals at one node are admitted.
pub(super) fn at_one_node(
    kind: AllocationKind,
    minute: (&Rules, &RoomStatistics, DataCenterId),
    arrivals: u32,
) -> u32 {
    let (mut allocator, mut counters) = (AnyAllocator::new(kind), BTreeMap::new());
    let admitted = (0..arrivals).filter(|_| admit(&mut allocator, minute, &mut counters));
    u32::try_from(admitted.count()).unwrap_or(u32::MAX)
}

/// Whether a number from a counter admits a visitor where there are so many slots.
pub(super) fn counter_admits(slots: u32, number: u64) -> bool {
    let nodes = Nodes::new(AllocationKind::Counters, slots);
    let mut allocator = CounterAllocator::default();
    let mut lease = Lease::default();
    let mut context = AllocatorContext {
        rules: &nodes.rules,
        statistics: &nodes.statistics,
        data_center: DELHI,
        lease: &mut lease,
        now: START,
    };
    match allocator.take(&mut context) {
        Take::TakeNumber(key) => allocator.handle_number(key, Some(number)),
        _ => false,
    }
}

/// Two whole rooms on one ledger, because leases need both sides.
struct LeasingNodes {
    rooms: [Room; 2],
    ledger: Ledger,
    synced_at: [Timestamp; 2],
    now: Timestamp,
    visitors: u128,
}

impl LeasingNodes {
    /// Creates rooms with few seats. A minute's admissions are usable only from half a second after
    /// its start, and would show nothing about sharing.
    fn new(seats: u32) -> Self {
        let rules = Rules {
            limits: Limits {
                total_active_users: seats,
                new_users_per_minute: seats * 10,
            },
            allocation: AllocationKind::Leases,
            pacing: false,
            ..Rules::default()
        };
        let room = |incarnation| {
            let identity = RoomIdentity {
                node: NodeId(incarnation),
                process: NodeId(incarnation),
                is_alone: true,
                data_center: DELHI,
                lottery_key: LotteryKey([1; 16]),
            };
            Room::new(
                identity,
                Predecessors::default(),
                rules,
                Capacity::default(),
                Timestamp::ZERO,
            )
        };
        Self {
            rooms: [room(1), room(2)],
            ledger: Ledger::new(),
            synced_at: [Timestamp::ZERO; 2],
            now: START + DurationMs::from_secs(1),
            visitors: 0,
        }
    }

    /// Sends a new visitor to a node. Without a free slot it waits for the ledger's reply, for at
    /// most one period of the other node, which then returns its unused slots.
    fn admits(&mut self, node: usize) -> bool {
        self.now = self.now + BETWEEN;
        self.sync_when_due();
        self.visitors += 1;
        let mut visit = Visit {
            is_poll: false,
            visitor: VisitorId(self.visitors.to_le_bytes()),
            ticket: None,
            may_sync: true,
            turn_wait: TurnWait::No,
            gets_page: false,
        };
        for _ in 0..5 {
            match self.rooms[node].handle_visit(visit, self.now) {
                Verdict::Admit(_) => return true,
                Verdict::SyncWithParent => self.sync(node),
                _ => return false,
            }
            self.now = self.now + BETWEEN;
            self.sync_when_due();
        }
        visit.may_sync = false;
        matches!(
            self.rooms[node].handle_visit(visit, self.now),
            Verdict::Admit(_)
        )
    }

    fn sync_when_due(&mut self) {
        for node in 0..2 {
            if self.now.since(self.synced_at[node]) >= self.rooms[node].sync_period() {
                self.sync(node);
            }
        }
    }

    fn sync(&mut self, node: usize) {
        self.synced_at[node] = self.now;
        let request = self.rooms[node].poll_sync(self.now);
        let ledger = std::mem::take(&mut self.ledger);
        let (ledger, reply) = ledger.sync(&request, LeaseTerms::default(), self.now);
        self.ledger = ledger;
        self.rooms[node].handle_reply(reply, self.now);
    }
}
