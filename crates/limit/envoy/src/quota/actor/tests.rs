//! Tests of the actor with thousands of limits, before a store that is slow, or never replies.

use std::sync::Arc;

use anteroom_limit::algorithm::Algorithm as _;
use anteroom_limit::fixed_window::{FixedWindow, State};
use anteroom_limit::policy::Needs;
use anteroom_limit::rate::Rate;
use anteroom_limit_store::shared::{SharedAcquire, SharedCounts};
use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tonic::Status;

use super::*;
use crate::quota::assignments::BucketUpdate;
use crate::quota::ledgers::LEDGERS_MAX;
use crate::request_handler::tests::handler_with;
use crate::wire::quota::BucketId;

const FILE: &str = "{domain: d, descriptors: [{key: k}]}";
const LIMITS: usize = 5_000;
/// Time that the store takes for one request.
const STORE_DELAY: Duration = Duration::from_millis(5);
const WINDOW: Duration = Duration::from_secs(10);
/// Start of an hour.
const START: u64 = 1_767_225_600_000_000;

/// Store that counts windows and records its peeks, or replies otherwise.
#[derive(Debug)]
struct TestStore {
    began: Instant,
    manner: Manner,
    state: Mutex<StoreState>,
}

#[derive(Clone, Copy, Debug)]
enum Manner {
    /// Replies after [`STORE_DELAY`].
    Slow,
    /// Never replies.
    Silent,
    /// Fails at once, as unavailable.
    Gone,
}

#[derive(Debug, Default)]
struct StoreState {
    states: HashMap<u128, State>,
    peeked: Vec<u128>,
    in_flight: usize,
    in_flight_max: usize,
}

impl TestStore {
    fn new(manner: Manner) -> Arc<Self> {
        Arc::new(Self {
            began: Instant::now(),
            manner,
            state: Mutex::default(),
        })
    }

    fn now(&self) -> TimestampUs {
        let elapsed = u64::try_from(self.began.elapsed().as_micros()).unwrap();
        TimestampUs(START + elapsed)
    }
}

impl SharedCounts for TestStore {
    fn kind(&self) -> &'static str {
        "test"
    }

    fn offers(&self) -> Needs {
        Needs::AtomicAdd
    }

    fn acquire<'a>(
        &'a self,
        acquires: &'a [SharedAcquire<'a>],
    ) -> BoxFuture<'a, Result<Vec<Verdict>, CountsError>> {
        Box::pin(async {
            match self.manner {
                Manner::Slow => {}
                Manner::Silent => std::future::pending().await,
                Manner::Gone => {
                    let store_name = "here".to_owned();
                    let source = "gone".into();
                    return Err(CountsError::Unreachable { store_name, source });
                }
            }
            {
                let mut state = self.state.lock();
                state.in_flight += 1;
                state.in_flight_max = state.in_flight_max.max(state.in_flight);
            }
            sleep(STORE_DELAY).await; // tidy: paused time
            let mut state = self.state.lock();
            state.in_flight -= 1;
            let verdicts = acquires.iter().map(|acquire| {
                let key = acquire.key.0;
                if acquire.cost == Cost::Peek {
                    state.peeked.push(key);
                }
                let limit = FixedWindow::new(acquire.policy.rate());
                let state = state.states.entry(key).or_default();
                limit.step(state, self.now(), acquire.cost)
            });
            Ok(verdicts.collect())
        })
    }
}

/// An actor, and one stream that receives all its updates.
struct Stage {
    handler: Arc<RequestHandler>,
    facts: mpsc::Sender<StreamEvent>,
    outbox: mpsc::Sender<Result<BucketUpdate, Status>>,
    updates: mpsc::Receiver<Result<BucketUpdate, Status>>,
    actor: JoinHandle<()>,
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.actor.abort();
    }
}

impl Stage {
    fn new(store: Arc<dyn SharedCounts>) -> Self {
        let began = Instant::now();
        let now = move || TimestampUs(START + u64::try_from(began.elapsed().as_micros()).unwrap());
        let handler = handler_with(FILE, false, Counts::Shared(store), Arc::new(now));
        let handler = Arc::new(handler);
        let (facts, receiver) = mpsc::channel(1_024);
        let (outbox, updates) = mpsc::channel(100_000);
        let actor = QuotaActor::new(Arc::clone(&handler), Clock(began));
        let actor = tokio::spawn(actor.run(receiver));
        Self {
            handler,
            facts,
            outbox,
            updates,
            actor,
        }
    }

    async fn join(&self, which: u64) {
        let id = Arc::new(BucketId::default());
        let outbox = self.outbox.clone();
        let joined = StreamEvent::Joined {
            member: MemberId(which),
            counted: counted(which.into()),
            route: Route { id, outbox },
        };
        self.facts.send(joined).await.unwrap();
        self.report(which, 0, 1).await;
    }

    async fn report(&self, which: u64, allowed: u64, denied: u64) {
        let reported = StreamEvent::Reported {
            member: MemberId(which),
            policy: policy(1),
            allowed,
            denied,
        };
        self.facts.send(reported).await.unwrap();
    }

    fn assigned(&self) -> u64 {
        self.handler.counters.quota.read().assigned
    }

    fn ledgers(&self) -> u64 {
        self.handler.counters.quota.read().limits
    }

    /// Waits until `holds` returns true, with a timeout.
    async fn until(&self, holds: impl Fn(&Self) -> bool) {
        let wait = async {
            while !holds(self) {
                sleep(Duration::from_millis(1)).await; // tidy: paused time
            }
        };
        let waited = timeout(Duration::from_secs(120), wait).await;
        assert!(waited.is_ok(), "{:?}", self.handler.counters.quota.read());
    }
}

/// Returns a limit of `requests` requests per window. A limit of one is used up by its first
/// assignment.
fn policy(requests: u32) -> Policy {
    let rate = Rate::new(requests, DurationUs::from_secs(WINDOW.as_secs()));
    Policy::FixedWindow(FixedWindow::new(rate.unwrap()))
}

fn counted(key: u128) -> Counted {
    Counted {
        key: ClientKey(key),
        policy: policy(1),
        is_shadow: false,
    }
}

// tidy: paused time
#[tokio::test(start_paused = true)]
async fn thousands_of_limits_are_assigned_in_one_round_of_a_new_window() {
    let store = TestStore::new(Manner::Slow);
    let stage = Stage::new(Arc::<TestStore>::clone(&store));
    let all = LIMITS as u64;
    for which in 0..all {
        stage.join(which).await;
    }
    stage.until(|stage| stage.assigned() == all).await;
    // A peek and an acquisition of each, so many at once.
    let round = STORE_DELAY * u32::try_from(2 * LIMITS.div_ceil(STORE_REQUESTS_MAX)).unwrap();
    let late = CHECK_EVERY + round + 4 * STORE_DELAY;
    assert!(store.began.elapsed() <= late, "{:?}", store.began.elapsed());
    // Without any report.
    stage.until(|stage| stage.assigned() == 2 * all).await;
    let elapsed = store.began.elapsed();
    assert!(elapsed <= WINDOW + late, "{elapsed:?}");
    assert_eq!(store.state.lock().in_flight_max, STORE_REQUESTS_MAX);
}

// tidy: paused time
#[tokio::test(start_paused = true)]
async fn limits_that_are_always_due_do_not_starve_others() {
    let store = TestStore::new(Manner::Slow);
    let stage = Stage::new(Arc::<TestStore>::clone(&store));
    let all = LIMITS as u64;
    for which in 0..all {
        stage.join(which).await;
    }
    stage.until(|stage| stage.assigned() == all).await;
    sleep(WINDOW - store.began.elapsed()).await; // tidy: paused time
    store.state.lock().peeked.clear();
    // The others, in contrast, always have unpaid requests.
    let quiet = |key: &u128| *key < LIMITS as u128;
    let mut peeked = Vec::new();
    while peeked.iter().filter(|key| quiet(key)).count() < LIMITS {
        for busy in 0..10 {
            let counted = Counted {
                policy: policy(1_000_000),
                ..counted(LIMITS as u128 + busy)
            };
            let spent = StreamEvent::Spent {
                counted,
                requests: 1,
            };
            stage.facts.send(spent).await.unwrap();
        }
        sleep(Duration::from_millis(1)).await; // tidy: paused time
        peeked.clone_from(&store.state.lock().peeked);
    }
    let [first, last] = [
        peeked.iter().position(quiet).unwrap(),
        peeked.iter().rposition(quiet).unwrap(),
    ];
    let between = peeked[first..last].iter();
    let busy = between.filter(|key| !quiet(key)).count();
    // One peek that was due before all others, and one that was in flight just then.
    assert!(busy <= 20, "{busy}");
    let quiet: HashSet<_> = peeked.iter().copied().filter(quiet).collect();
    assert_eq!(quiet.len(), LIMITS);
}

// tidy: paused time
#[tokio::test(start_paused = true)]
async fn debts_are_bounded_and_dropped_during_an_outage() {
    let silent = Stage::new(TestStore::new(Manner::Silent));
    let spent = |key| StreamEvent::Spent {
        counted: counted(key),
        requests: 1,
    };
    for key in 0..LEDGERS_MAX + 10 {
        silent.facts.send(spent(key as u128)).await.unwrap();
    }
    silent
        .until(|stage| stage.ledgers() == LEDGERS_MAX as u64)
        .await;
    // A limit that is shared has room, and leaves no debt behind.
    let beyond = LEDGERS_MAX as u64 + 20;
    silent.join(beyond).await;
    silent
        .until(|stage| stage.ledgers() > LEDGERS_MAX as u64)
        .await;
    silent.report(beyond, 7, 0).await;
    let member = MemberId(beyond);
    silent
        .facts
        .send(StreamEvent::Gone { member })
        .await
        .unwrap();
    silent
        .until(|stage| stage.ledgers() == LEDGERS_MAX as u64)
        .await;

    let gone = Stage::new(TestStore::new(Manner::Gone));
    for key in 0..1_000 {
        gone.facts.send(spent(key)).await.unwrap();
    }
    gone.join(1_000).await;
    gone.until(|stage| stage.ledgers() == 1).await;
    assert!(gone.updates.is_empty());
}
