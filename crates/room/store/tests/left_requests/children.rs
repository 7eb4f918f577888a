//! Children of a root's ledger that each get one more slot with every sync.

use std::sync::Arc;
use std::time::Duration;

use anteroom_room::hash::LotteryKey;
use anteroom_room::id::{DataCenterId, DeploymentId, Incarnation, NodeId};
use anteroom_room::ledger::LeaseTerms;
use anteroom_room::rules::{Limits, NewUsersWindow};
use anteroom_room::seats::SeatRow;
use anteroom_room::sync::{
    LeaseBalance, LeaseDemand, LeaseUsage, RecordStamp, Reply, RoomFacts, SyncRequest,
};
use anteroom_room::time::{DurationMs, Timestamp};
use anteroom_room::waiting::WaitingForecast;
use anteroom_store::memory::Memory;
use anteroom_store::wire::ledger::left_request;
use anteroom_store::{
    Clock, Deployment, LedgerRole, LeftId, LeftRequest, Membership, RecordKey, StoredLedger, join,
};

/// A first millisecond of a minute.
const START: Timestamp = Timestamp(1_694_432_700_000);
const LONGEST_SEAT: DurationMs = DurationMs(310_000);

/// Clock that shows one time.
pub(crate) struct StoppedClock;

impl StoppedClock {
    pub(crate) fn shared() -> Arc<Self> {
        Arc::new(Self)
    }
}

impl Clock for StoppedClock {
    fn now(&self) -> Timestamp {
        START
    }

    fn never_before(&self, _at: Timestamp) {}
}

/// Returns the record that all tests use.
pub(crate) fn key() -> RecordKey {
    RecordKey("shop/world".to_owned())
}

/// Returns the root's ledger, as one process sees it.
pub(crate) fn root(store: &Memory) -> StoredLedger {
    let role = LedgerRole::Root(LeaseTerms::ROOT);
    StoredLedger::new(Arc::new(store.clone()), key(), "shop", role)
}

/// Begins the deployment, so that the root's ledger is known to be the first.
pub(crate) async fn begin(store: &Memory) {
    let membership = Membership {
        deployment: Deployment {
            deployment_id: DeploymentId(1),
            lottery_key: LotteryKey([1; 16]),
        },
        ticket_keys: vec![[1; 32]],
    };
    join(store, &membership, true, START)
        .await
        .expect("it succeeds");
}

/// Child of a ledger.
pub(crate) struct Child {
    ledger: StoredLedger,
    id: u64,
    number: u64,
    parent: Option<Incarnation>,
    generation: Option<u32>,
    applied_reply: Option<u64>,
    seats: u32,
}

impl Child {
    pub(crate) fn new(ledger: StoredLedger, id: u64) -> Self {
        Self {
            ledger,
            id,
            number: 0,
            parent: None,
            generation: None,
            applied_reply: None,
            seats: 0,
        }
    }

    pub(crate) fn id(&self) -> NodeId {
        NodeId(self.id)
    }

    /// Returns the number of the newest request.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn seats(&self) -> u32 {
        self.seats
    }

    /// Returns the time between its syncs.
    pub(crate) fn period(&self) -> Duration {
        Duration::from_millis(400 + self.id * 37 % 200)
    }

    /// Sends one request, and applies the reply.
    pub(crate) async fn sync(&mut self) -> Reply {
        let request = self.request();
        let reply = self.ledger.sync(&request).await.expect("it succeeds");
        if let Reply::Granted(granted) = &reply {
            assert_eq!(granted.number, self.number);
            self.parent = Some(granted.incarnation);
            self.generation = granted.generation;
            self.applied_reply = Some(granted.number);
            self.seats += granted.granted.seats;
        }
        reply
    }

    /// Makes the next request, as it is left beside a record.
    pub(crate) fn left_request(&mut self) -> LeftRequest {
        let request = self.request();
        LeftRequest {
            id: LeftId::of(&request),
            value: left_request::encode(&request).expect("it succeeds"),
        }
    }

    fn request(&mut self) -> SyncRequest {
        self.number += 1;
        let data_center = DataCenterId(u32::try_from(self.id).expect("it succeeds"));
        SyncRequest {
            child: self.id(),
            process: self.id(),
            replaces: Vec::new(),
            data_center,
            sent_at: START + DurationMs(self.number),
            stamp: RecordStamp::default(),
            is_join: false,
            known_closed: Timestamp::ZERO,
            is_read_under_parent: true,
            parent: self.parent,
            voided_by: None,
            witnessed_epoch: None,
            number: self.number,
            applied_reply: self.applied_reply,
            generation: self.generation,
            is_final: self.generation.is_none(),
            balance: LeaseBalance {
                seats: self.seats,
                admissions: self.seats,
                minute: START.minute(),
                ..LeaseBalance::default()
            },
            demand: LeaseDemand {
                slots: self.seats + 1,
                ..LeaseDemand::default()
            },
            used: LeaseUsage::default(),
            admitted: Vec::new(),
            row: SeatRow::default(),
            closed_through: START,
            longest_seat: LONGEST_SEAT,
            longest_known: LONGEST_SEAT,
            nodes: 1,
            waiting: WaitingForecast::default(),
            revocations: Vec::new(),
            revoked_version: 0,
            rejects_through: 0,
            is_of_ledger: false,
            settings: RoomFacts {
                limits: Limits {
                    total_active_users: 100_000,
                    new_users_per_minute: 100_000,
                },
                window: NewUsersWindow::Minute,
                longest_seat: LONGEST_SEAT,
                pacing: false,
                needs_traffic: false,
            },
            is_leaving: false,
        }
    }
}
