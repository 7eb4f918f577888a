//! A desk of thousands of limits, before a store that takes its time, or never answers.

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
use crate::asking::tests::asking_of;
use crate::quota::books::BOOKS_MAX;
use crate::quota::told::Line;
use crate::wire::quota::BucketId;

const FILE: &str = "{domain: d, descriptors: [{key: k}]}";
const LIMITS: usize = 5_000;
/// What a store takes for one call.
const TAKES: Duration = Duration::from_millis(5);
const WINDOW: Duration = Duration::from_secs(10);
/// The beginning of an hour.
const START: u64 = 1_767_225_600_000_000;

/// Counts windows, with one look or charge after the other noted.
#[derive(Debug)]
struct Slow {
    began: Instant,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    states: HashMap<u128, State>,
    looked: Vec<u128>,
    on_the_way: usize,
    on_the_way_most: usize,
}

impl Slow {
    fn now(&self) -> TimestampUs {
        let elapsed = u64::try_from(self.began.elapsed().as_micros()).unwrap();
        TimestampUs(START + elapsed)
    }
}

impl SharedCounts for Slow {
    fn kind(&self) -> &'static str {
        "slow"
    }

    fn offers(&self) -> Needs {
        Needs::AtomicAdd
    }

    fn charge<'a>(
        &'a self,
        charges: &'a [SharedAcquire<'a>],
    ) -> BoxFuture<'a, Result<Vec<Verdict>, CountsError>> {
        Box::pin(async {
            {
                let mut kept = self.kept.lock();
                kept.on_the_way += 1;
                kept.on_the_way_most = kept.on_the_way_most.max(kept.on_the_way);
            }
            sleep(TAKES).await; // tidy: paused time
            let mut kept = self.kept.lock();
            kept.on_the_way -= 1;
            let verdicts = charges.iter().map(|charge| {
                let key = charge.key.0;
                if charge.cost == Cost::Peek {
                    kept.looked.push(key);
                }
                let limit = FixedWindow::new(charge.policy.rate());
                let state = kept.states.entry(key).or_default();
                limit.step(state, self.now(), charge.cost)
            });
            Ok(verdicts.collect())
        })
    }
}

/// Decides nothing.
#[derive(Debug)]
enum Mute {
    /// It never answers.
    Silent,
    /// It is away, and says so.
    Gone,
}

impl SharedCounts for Mute {
    fn kind(&self) -> &'static str {
        "mute"
    }

    fn offers(&self) -> Needs {
        Needs::AtomicAdd
    }

    fn charge<'a>(
        &'a self,
        _: &'a [SharedAcquire<'a>],
    ) -> BoxFuture<'a, Result<Vec<Verdict>, CountsError>> {
        match self {
            Self::Silent => Box::pin(std::future::pending()),
            Self::Gone => {
                let place = "here".to_owned();
                let source = "gone".into();
                Box::pin(async { Err(CountsError::Unreachable { place, source }) })
            }
        }
    }
}

/// A desk, and one stream of which all are told.
struct Stage {
    asking: Arc<RequestHandler>,
    facts: mpsc::Sender<StreamEvent>,
    outbox: mpsc::Sender<Result<Line, Status>>,
    lines: mpsc::Receiver<Result<Line, Status>>,
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
        let asking = asking_of(FILE, false, Counts::Shared(store), Arc::new(now));
        let asking = Arc::new(asking);
        let (facts, told) = mpsc::channel(1_024);
        let (outbox, lines) = mpsc::channel(100_000);
        let actor = QuotaActor::new(Arc::clone(&asking), Clock(began));
        let actor = tokio::spawn(actor.run(told));
        Self {
            asking,
            facts,
            outbox,
            lines,
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
        self.asking.counters.quota.read().assigned
    }

    fn books(&self) -> u64 {
        self.asking.counters.quota.read().limits
    }

    /// Until this holds; not for ever.
    async fn until(&self, holds: impl Fn(&Self) -> bool) {
        let wait = async {
            while !holds(self) {
                sleep(Duration::from_millis(1)).await; // tidy: paused time
            }
        };
        let waited = timeout(Duration::from_secs(120), wait).await;
        assert!(waited.is_ok(), "{:?}", self.asking.counters.quota.read());
    }
}

/// So many calls in a window. Of one, who is assigned it holds all.
fn policy(calls: u32) -> Policy {
    let rate = Rate::new(calls, DurationUs::from_secs(WINDOW.as_secs()));
    Policy::FixedWindow(FixedWindow::new(rate.unwrap()))
}

fn counted(key: u128) -> Counted {
    Counted {
        key: CallKey(key),
        policy: policy(1),
        is_shadow: false,
    }
}

fn slow() -> Arc<Slow> {
    Arc::new(Slow {
        began: Instant::now(),
        kept: Mutex::default(),
    })
}

// tidy: paused time
#[tokio::test(start_paused = true)]
async fn thousands_of_limits_are_shared_in_one_round_when_a_window_begins() {
    let store = slow();
    let stage = Stage::new(Arc::<Slow>::clone(&store));
    let all = LIMITS as u64;
    for which in 0..all {
        stage.join(which).await;
    }
    stage.until(|stage| stage.assigned() == all).await;
    // A look and a charge of each, so many at once.
    let round = TAKES * u32::try_from(2 * LIMITS.div_ceil(CALLS_MAX)).unwrap();
    let late = LOOK_EVERY + round + 4 * TAKES;
    assert!(store.began.elapsed() <= late, "{:?}", store.began.elapsed());
    // Nobody reports anything.
    stage.until(|stage| stage.assigned() == 2 * all).await;
    let elapsed = store.began.elapsed();
    assert!(elapsed <= WINDOW + late, "{elapsed:?}");
    assert_eq!(store.kept.lock().on_the_way_most, CALLS_MAX);
}

// tidy: paused time
#[tokio::test(start_paused = true)]
async fn who_is_always_due_does_not_come_before_who_waits() {
    let store = slow();
    let stage = Stage::new(Arc::<Slow>::clone(&store));
    let all = LIMITS as u64;
    for which in 0..all {
        stage.join(which).await;
    }
    stage.until(|stage| stage.assigned() == all).await;
    sleep(WINDOW - store.began.elapsed()).await; // tidy: paused time
    store.kept.lock().looked.clear();
    // Of these something goes through all the time that is to be charged.
    let quiet = |key: &u128| *key < LIMITS as u128;
    let mut looked = Vec::new();
    while looked.iter().filter(|key| quiet(key)).count() < LIMITS {
        for loud in 0..10 {
            let counted = Counted {
                policy: policy(1_000_000),
                ..counted(LIMITS as u128 + loud)
            };
            let spent = StreamEvent::Spent { counted, calls: 1 };
            stage.facts.send(spent).await.unwrap();
        }
        sleep(Duration::from_millis(1)).await; // tidy: paused time
        looked.clone_from(&store.kept.lock().looked);
    }
    let [first, last] = [
        looked.iter().position(quiet).unwrap(),
        looked.iter().rposition(quiet).unwrap(),
    ];
    let between = looked[first..last].iter();
    let loud = between.filter(|key| !quiet(key)).count();
    // Each once that was due before all others, and once more that was looked at just then.
    assert!(loud <= 20, "{loud}");
    let quiet: HashSet<_> = looked.iter().copied().filter(quiet).collect();
    assert_eq!(quiet.len(), LIMITS);
}

// tidy: paused time
#[tokio::test(start_paused = true)]
async fn unclaimed_refunds_are_bounded_and_forgiven_during_an_outage() {
    let silent = Stage::new(Arc::new(Mute::Silent));
    let spent = |key| StreamEvent::Spent {
        counted: counted(key),
        calls: 1,
    };
    for key in 0..BOOKS_MAX + 10 {
        silent.facts.send(spent(key as u128)).await.unwrap();
    }
    silent
        .until(|stage| stage.books() == BOOKS_MAX as u64)
        .await;
    // Whoever shares a limit has a place, and leaves none behind.
    let beyond = BOOKS_MAX as u64 + 20;
    silent.join(beyond).await;
    silent.until(|stage| stage.books() > BOOKS_MAX as u64).await;
    silent.report(beyond, 7, 0).await;
    let member = MemberId(beyond);
    silent
        .facts
        .send(StreamEvent::Gone { member })
        .await
        .unwrap();
    silent
        .until(|stage| stage.books() == BOOKS_MAX as u64)
        .await;

    let gone = Stage::new(Arc::new(Mute::Gone));
    for key in 0..1_000 {
        gone.facts.send(spent(key)).await.unwrap();
    }
    gone.join(1_000).await;
    gone.until(|stage| stage.books() == 1).await;
    assert!(gone.lines.is_empty());
}
