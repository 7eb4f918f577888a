//! Limits that are counted in a store of several nodes.

mod mixed;

use anteroom_config::OnLimitStoreFailure;
use anteroom_limit::algorithm::Algorithm as _;
use anteroom_limit::policy::{Needs, State};
use anteroom_limit::verdict::Verdict;
use anteroom_limit_store::CallKey;
use anteroom_limit_store::shared::{BoxFuture, CountsError, SharedAcquire, SharedCounts};
use parking_lot::Mutex;

use super::*;
use crate::counted::CoveredLimit;
use crate::stores::Elsewhere;

/// A store in memory that can be away, and whose answers take their time.
#[derive(Debug, Default)]
struct Far {
    states: Mutex<HashMap<(String, CallKey), State>>,
    asked: AtomicUsize,
    is_away: AtomicBool,
    is_busy: AtomicBool,
    /// It goes on from what it has lent.
    lends: AtomicBool,
    /// Except for limits of which nothing is left.
    spent: Mutex<Vec<&'static str>>,
    /// Its answers do not come, rather than that there is no way to it.
    is_late: AtomicBool,
    takes: Mutex<Duration>,
}

const NOW: TimestampUs = TimestampUs(1_700_000_000_000_000);

impl Far {
    /// All or none, at one moment.
    fn decide(&self, charges: &[SharedAcquire<'_>]) -> Vec<Verdict> {
        let mut states = self.states.lock();
        let before = states.clone();
        let verdicts: Vec<Verdict> = charges
            .iter()
            .map(|charge| {
                let state = states.entry((charge.limit.to_owned(), charge.key));
                let state = state.or_default();
                charge.policy.step(state, NOW, charge.cost)
            })
            .collect();
        if !verdicts.iter().all(Verdict::is_admitted) {
            *states = before;
        }
        verdicts
    }

    /// How many more calls of this client would go through.
    fn left(&self, limit: &Limit) -> u32 {
        let address = "192.0.2.7".to_owned();
        let key = key_of_named(&limit.parts, 64, &limit.kept.keys, &[address]).unwrap();
        let peek = SharedAcquire {
            limit: &limit.name,
            policy: &limit.policy,
            key,
            cost: Cost::Peek,
        };
        self.decide(&[peek])[0].remaining
    }
}

impl SharedCounts for Far {
    fn kind(&self) -> &'static str {
        "far"
    }

    fn offers(&self) -> Needs {
        Needs::Transaction
    }

    fn is_away(&self, _: &str, _: CallKey) -> bool {
        self.is_away.load(Relaxed)
    }

    fn charge<'a>(
        &'a self,
        charges: &'a [SharedAcquire<'a>],
    ) -> BoxFuture<'a, Result<Vec<Verdict>, CountsError>> {
        Box::pin(async move {
            self.asked.fetch_add(1, Relaxed);
            let takes = *self.takes.lock();
            tokio::time::sleep(takes).await; // tidy: paused time
            let is_spent = |charge: &SharedAcquire<'_>| self.spent.lock().contains(&charge.limit);
            let can_decide = self.lends.load(Relaxed) && !charges.iter().any(is_spent);
            if self.is_late.load(Relaxed) {
                return Err(CountsError::Late {
                    place: "far".to_owned(),
                    source: "nothing came".into(),
                });
            }
            if self.is_away.load(Relaxed) && !can_decide {
                return Err(CountsError::Unreachable {
                    place: "far".to_owned(),
                    source: "it is away".into(),
                });
            }
            if self.is_busy.load(Relaxed) {
                return Err(CountsError::Busy {
                    place: "far".to_owned(),
                    source: "many ask".into(),
                });
            }
            Ok(self.decide(charges))
        })
    }
}

fn far_limit(name: &str, policy: Policy, far: &Arc<Far>) -> Limit {
    let mut limit = limit(name, policy);
    let kept = Arc::get_mut(&mut limit.kept).unwrap();
    kept.keys = KeyMaker::shared(name);
    limit.store = LimitStore::Valkey;
    limit.elsewhere = Some(Elsewhere {
        counts: Arc::clone(far) as Arc<_>,
        on_failure: OnLimitStoreFailure::Bounded,
    });
    limit
}

fn on_failure(mut limit: Limit, on_failure: OnLimitStoreFailure) -> Limit {
    limit.elsewhere.as_mut().unwrap().on_failure = on_failure;
    limit
}

#[tokio::test(start_paused = true)]
async fn two_nodes_let_through_what_one_may() {
    let far = Arc::new(Far::default());
    let node = || Site::behind(vec![far_limit("api", a_minute(5), &far)]);
    let (one, other) = (node(), node());
    let mut went = 0;
    for _ in 0..10 {
        went += one.went(1, "/", "192.0.2.7").await;
        went += other.went(1, "/", "192.0.2.7").await;
    }
    assert_eq!(went, 5);
    assert_eq!(one.went(9, "/", "192.0.2.8").await, 5);
    let over = other.ask(Method::GET, "/", "192.0.2.7").await;
    assert_eq!(over.status(), 429);
    assert!(
        over.headers()["ratelimit"]
            .to_str()
            .unwrap()
            .starts_with("\"api\";r=0;")
    );
}

#[tokio::test(start_paused = true)]
async fn a_client_has_its_own_limit_elsewhere_too() {
    let far = Arc::new(Far::default());
    let mut api = far_limit("api", a_minute(2), &far);
    let key = key_of_named(&api.parts, 64, &api.kept.keys, &["192.0.2.8".to_owned()]);
    api.own.insert(key.unwrap(), a_minute(4));
    let site = Site::behind(vec![api]);
    assert_eq!(site.went(9, "/", "192.0.2.7").await, 2);
    assert_eq!(site.went(9, "/", "192.0.2.8").await, 4);
    let said = site.ask(Method::GET, "/", "192.0.2.8").await;
    assert_eq!(said.headers()["ratelimit-policy"], "\"api\";q=4;w=60");
}

#[tokio::test(start_paused = true)]
async fn what_one_rejects_no_other_is_charged_wherever_they_are() {
    // The strictest of three in turn: here, at one store, at another.
    for strictest in 0..3 {
        let (far, farther) = (Arc::new(Far::default()), Arc::new(Far::default()));
        let calls = |at: usize| if at == strictest { 2 } else { 10 };
        let limits = || {
            vec![
                limit("here", a_minute(calls(0))),
                far_limit("far", a_minute(calls(1)), &far),
                far_limit("farther", a_minute(calls(2)), &farther),
            ]
        };
        let site = Site::behind(limits());
        assert_eq!(site.went(50, "/", "192.0.2.7").await, 2, "{strictest}");
        let left = [far.left(&limits()[1]), farther.left(&limits()[2])];
        assert_eq!(left, [calls(1) - 2, calls(2) - 2], "{strictest}");
        let here = site.meter.plan();
        let CoveredLimit { limit, key } = CoveredLimit {
            limit: &here.limits[0],
            key: key_of_named(
                &here.limits[0].parts,
                64,
                &here.limits[0].kept.keys,
                &["192.0.2.7".to_owned()],
            )
            .unwrap(),
        };
        let peek = anteroom_limit_store::local::LocalAcquire {
            cost: Cost::Peek,
            ..limit.charge(key, Duration::ZERO)
        };
        let verdict = limit.kept.counts.charge(&peek, site.meter.now());
        assert_eq!(verdict.remaining, calls(0) - 2, "{strictest}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_over_here_does_not_travel() {
    let far = Arc::new(Far::default());
    let site = Site::behind(vec![
        limit("here", a_minute(2)),
        far_limit("far", a_minute(10), &far),
    ]);
    assert_eq!(site.went(50, "/", "192.0.2.7").await, 2);
    assert_eq!(far.asked.load(Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn whoever_loses_here_while_a_store_was_asked_is_refunded_there() {
    let far = Arc::new(Far::default());
    *far.takes.lock() = Duration::from_millis(70);
    let limits = || {
        vec![
            limit("here", a_minute(1)),
            far_limit("far", a_minute(10), &far),
        ]
    };
    let site = Site::behind(limits());
    let answers = futures_util::future::join_all((0..5).map(|_| site.get())).await;
    let went = answers.iter().filter(|status| **status == 200).count();
    assert_eq!(went, 1);
    assert_eq!(far.left(&limits()[1]), 9);
}

#[tokio::test(start_paused = true)]
async fn while_a_store_is_away_a_limit_does_what_it_was_told() {
    let check = async |on: OnLimitStoreFailure, expected: &[u16], events: &[(&str, u64)]| {
        let far = Arc::new(Far::default());
        let site = Site::behind(vec![on_failure(far_limit("api", a_minute(2), &far), on)]);
        far.is_away.store(true, Relaxed);
        let mut statuses = Vec::new();
        for _ in 0..4 {
            statuses.push(site.get().await.as_u16());
        }
        assert_eq!(statuses, expected, "{on:?}");
        assert_eq!(site.events("api"), events, "{on:?}");
        far.is_away.store(false, Relaxed);
        assert_eq!(site.went(9, "/", "192.0.2.7").await, 2, "{on:?}");
        assert_eq!(site.meter.stats()[0].store_failures, 4, "{on:?}");
    };
    let refused: [u16; 4] = [503; 4];
    check(
        OnLimitStoreFailure::Bounded,
        &refused,
        &[("unavailable", 4)],
    )
    .await;
    check(OnLimitStoreFailure::Closed, &refused, &[("unavailable", 4)]).await;
    check(OnLimitStoreFailure::Open, &[200; 4], &[("uncounted", 4)]).await;
    let alone = [200, 200, 429, 429];
    check(
        OnLimitStoreFailure::Local,
        &alone,
        &[("admit", 2), ("reject", 2)],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_was_lent_goes_on_unless_it_must_not() {
    let check = async |on: OnLimitStoreFailure, expected: usize| {
        let far = Arc::new(Far::default());
        far.lends.store(true, Relaxed);
        far.is_away.store(true, Relaxed);
        let site = Site::behind(vec![on_failure(far_limit("api", a_minute(2), &far), on)]);
        assert_eq!(site.went(9, "/", "192.0.2.7").await, expected, "{on:?}");
    };
    check(OnLimitStoreFailure::Bounded, 2).await;
    check(OnLimitStoreFailure::Closed, 0).await;
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_only_busy_lets_nobody_past_the_limit() {
    for on in [OnLimitStoreFailure::Open, OnLimitStoreFailure::Local] {
        let far = Arc::new(Far::default());
        let site = Site::behind(vec![on_failure(far_limit("api", a_minute(2), &far), on)]);
        far.is_busy.store(true, Relaxed);
        assert_eq!(site.get().await, 503, "{on:?}");
        far.is_busy.store(false, Relaxed);
        assert_eq!(site.went(9, "/", "192.0.2.7").await, 2, "{on:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_cannot_be_counted_is_told_when_to_come_again() {
    let far = Arc::new(Far::default());
    far.is_away.store(true, Relaxed);
    let site = Site::behind(vec![far_limit("api", a_minute(2), &far)]);
    let answer = site.ask(Method::GET, "/", "192.0.2.7").await;
    assert_eq!(answer.status(), 503);
    let seconds: u64 = answer.headers()["retry-after"]
        .to_str()
        .unwrap()
        .parse()
        .unwrap();
    assert!((5..=6).contains(&seconds), "{seconds}");
    assert_eq!(answer.headers()["content-type"], "application/problem+json");
    assert!(!answer.headers().contains_key("ratelimit"));
    let mut from_a_person = request(Method::GET, "/", "192.0.2.7");
    let html = HeaderValue::from_static("text/html");
    from_a_person.headers_mut().insert(ACCEPT, html);
    let answer = site.send(from_a_person).await;
    assert_eq!(answer.headers()["content-type"], "text/html; charset=utf-8");
    assert_eq!(site.served.load(Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn what_one_store_has_charged_is_given_back_if_another_is_away() {
    let (far, away) = (Arc::new(Far::default()), Arc::new(Far::default()));
    away.is_away.store(true, Relaxed);
    let limits = || {
        vec![
            far_limit("far", a_minute(10), &far),
            far_limit("away", a_minute(10), &away),
        ]
    };
    let site = Site::behind(limits());
    assert_eq!(site.get().await, 503);
    assert_eq!(far.left(&limits()[0]), 10);
}

#[tokio::test(start_paused = true)]
async fn a_line_elsewhere_is_no_longer_than_patience() {
    let far = Arc::new(Far::default());
    let rate = Rate::new(60, DurationUs::from_secs(60)).unwrap();
    let bucket = Policy::LeakyBucket(LeakyBucket::new(rate, 10));
    let smooth = || {
        let mut smooth = far_limit("smooth", bucket, &far);
        smooth.on_limit = OnLimit::Delay {
            max: DurationMs::from_secs(3),
        };
        smooth
    };
    let site = Site::behind(vec![smooth()]);
    let began = Instant::now();
    let answers = futures_util::future::join_all((0..6).map(|_| async {
        let status = site.get().await;
        (status.as_u16(), began.elapsed().as_secs())
    }));
    let expected = [(200, 0), (200, 1), (200, 2), (200, 3), (429, 0), (429, 0)];
    assert_eq!(answers.await, expected);
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_only_looks_elsewhere_keeps_nobody_waiting() {
    let far = Arc::new(Far::default());
    *far.takes.lock() = Duration::from_secs(1);
    let mut shadow = far_limit("new", a_minute(2), &far);
    shadow.is_shadow = true;
    let site = Site::behind(vec![shadow]);
    let began = Instant::now();
    assert_eq!(site.went(5, "/", "192.0.2.7").await, 5);
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert_eq!(site.events("new"), []);
    tokio::time::sleep(Duration::from_secs(2)).await; // tidy: paused time
    assert_eq!(site.events("new"), [("admit", 2), ("shadow", 3)]);
    far.is_away.store(true, Relaxed);
    assert_eq!(site.went(1, "/", "192.0.2.7").await, 1);
    tokio::time::sleep(Duration::from_secs(2)).await; // tidy: paused time
    assert_eq!(
        site.events("new"),
        [("admit", 2), ("shadow", 3), ("uncounted", 1)]
    );
}
