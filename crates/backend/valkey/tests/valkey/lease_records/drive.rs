//! Drives one client at a server that grants leases in one step and by the algorithms alone, and
//! compares both.

use std::sync::atomic::{AtomicU64, Ordering};

use anteroom_limit::leases::epoch::{Before, Epoch, EpochId};
use anteroom_limit::leases::message::{Request, RequestId};
use anteroom_limit::leases::parent::grant;
use anteroom_limit::leases::widened::LeasedLimit;
use anteroom_limit::time::{DurationUs, TimestampUs};
use anteroom_limit_store::ClientKey;
use anteroom_limit_store::lease_store::step::{Step, Stepped};
use anteroom_limit_store::lease_store::{
    LeaseKey, LeaseRecords, Loaded, Partition, StoredRecord, Swapped, Token, Write, record,
};
use anteroom_limit_store::shared::TestTime;
use anteroom_testkit::redis_server::{RedisServer, Reply};
use anteroom_valkey::ValkeyLeases;

use crate::support::single;

pub(super) const PARTITION: Partition = Partition(0);
pub(super) const START: u64 = 1_767_225_600_000_000;
/// Token of the write of the epoch's record.
pub(super) const EPOCH: Token = Token(7);
/// Extra time in ms for which values are kept with the clock of a test.
const SLACK_MS: u64 = 3_600_000;
/// Longest time in ms until a test checks a value.
const CHECK_DELAY_MS: u64 = 5_000;
/// Expiry above which a value never expires.
const LONGEST_MS: u64 = 4_503_599_627_370;

/// Server for many clients, one after the other.
pub(super) struct Arena {
    pub(super) server: RedisServer,
    pub(super) store: ValkeyLeases,
    pub(super) time: TestTime,
    clients: AtomicU64,
}

/// Client under test.
pub(super) struct Client<'a> {
    pub(super) arena: &'a Arena,
    pub(super) key: ClientKey,
    pub(super) epoch: Epoch,
    pub(super) leased_limit: LeasedLimit,
    pub(super) now: TimestampUs,
    pub(super) requests: u64,
    /// Number of grants by the script.
    pub(super) grants: u64,
}

impl Arena {
    pub(super) async fn start() -> Self {
        let server = RedisServer::start().await;
        let time = TestTime::default();
        let address = single(server.port());
        let store = ValkeyLeases::with_time(&address, "anteroom", time.clone()).unwrap();
        let read = store.load(PARTITION, None).await.unwrap();
        let write = Write {
            expected: read.expected(),
            token: EPOCH,
            value: b"epoch",
        };
        store.swap_epoch(PARTITION, write).await.unwrap();
        Self {
            server,
            store,
            time,
            clients: AtomicU64::new(0),
        }
    }

    pub(super) async fn client(&self, leased_limit: LeasedLimit, before: Before) -> Client<'_> {
        let client = self.clients.fetch_add(1, Ordering::SeqCst);
        let read = self.store.load(PARTITION, None).await.unwrap();
        Client {
            arena: self,
            key: ClientKey(u128::from(client)),
            epoch: Epoch {
                id: EpochId {
                    number: 1,
                    random: u64::MAX,
                },
                identity: read.identity,
                began_at: TimestampUs(START),
                before,
                longest_loss: None,
            },
            leased_limit,
            now: TimestampUs(START),
            requests: 0,
            grants: 0,
        }
    }
}

impl Client<'_> {
    pub(super) fn name(&self) -> LeaseKey<'_> {
        LeaseKey {
            limit: "api",
            key: self.key,
        }
    }

    pub(super) async fn load(&self) -> Loaded {
        let store = &self.arena.store;
        store.load(PARTITION, Some(self.name())).await.unwrap()
    }

    /// Requests a lease as a node does, and compares the grant with that of the algorithm.
    pub(super) async fn request(&mut self, least: u32, waiting: u32, most: u32) {
        self.requests += 1;
        self.arena.time.set(self.now);
        let request = Request {
            id: RequestId {
                incarnation: 1,
                number: 1,
            },
            least,
            waiting,
            most,
        };
        let step = Step {
            epoch: &self.epoch,
            epoch_token: EPOCH,
            token: Token(u128::from(self.requests) + 100),
            leased_limit: &self.leased_limit,
            request: &request,
        };
        let found = self.load().await;
        let expected = step.take(&found);
        let stepped = self.arena.store.step(PARTITION, self.name(), step);
        let stepped = stepped.unwrap().await.unwrap();
        let current = self.load().await;
        let context = format!(
            "{request:?} at {:?} by {:?} from {found:?}",
            self.now, self.leased_limit
        );
        let Some(expected) = expected else {
            assert_eq!(stepped, Stepped::NotTaken(found.clone()), "{context}");
            assert_eq!(current, found, "{context}");
            self.grant_by_swap(&request, &found).await;
            return;
        };
        assert_eq!(stepped, Stepped::Granted(expected.grant), "{context}");
        let (token, value) = (step.token, expected.value);
        assert_eq!(
            current.client,
            Some(StoredRecord { token, value }),
            "{context}"
        );
        self.check_expiry(expected.keep_for, &context).await;
        self.grants += 1;
    }

    /// Checks that the new value is kept as long as the algorithm says, and hardly longer.
    async fn check_expiry(&self, keep_for: DurationUs, context: &str) {
        let name = format!("anteroom:{{lent~0}}:api:{:032x}", self.key.0);
        let Reply::Int(ms) = self.arena.server.send_ok(&["PTTL", &name]).await else {
            panic!("no number of ms: {context}");
        };
        let expected = keep_for.0.div_ceil(1_000);
        match u64::try_from(ms) {
            Ok(ms) => {
                let kept = (ms + CHECK_DELAY_MS).checked_sub(SLACK_MS);
                let kept = kept.unwrap_or_else(|| panic!("{ms} ms: {context}"));
                assert!(
                    (expected..=expected + CHECK_DELAY_MS).contains(&kept),
                    "{ms} ms: {context}"
                );
            }
            Err(_) => assert!(expected >= LONGEST_MS, "for ever: {context}"),
        }
    }

    /// Grants by load and swap, as a node does if the script cannot.
    pub(super) async fn grant_by_swap(&self, request: &Request, found: &Loaded) {
        let kept = found.client.as_ref();
        let record = kept.map(|kept| record::decode(&kept.value).unwrap());
        let granted = grant(
            &self.leased_limit,
            &self.epoch,
            record.as_ref(),
            request,
            found.now,
        );
        let Some(granted) = granted.write else {
            return;
        };
        let write = Write {
            expected: found.expected(),
            token: Token(u128::from(self.requests) + 100),
            value: &record::encode(&granted.record),
        };
        // Longer than any test takes.
        let kept = DurationUs::from_secs(3_600);
        let swapped = self
            .arena
            .store
            .swap(PARTITION, self.name(), write, kept)
            .await;
        assert_eq!(swapped.unwrap(), Swapped::Written);
    }
}
