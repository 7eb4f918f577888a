//! Limits in a store that several nodes share.

mod mixed;

use anteroom_config::OnLimitStoreFailure;
use anteroom_limit::algorithm::Algorithm as _;
use anteroom_limit::policy::{Needs, State};
use anteroom_limit::verdict::Verdict;
use anteroom_limit_store::ClientKey;
use anteroom_limit_store::shared::{BoxFuture, CountsError, SharedAcquire, SharedCounts};
use parking_lot::Mutex;

use super::*;
use crate::counted::CoveredLimit;
use crate::stores::SharedStore;

/// Store in memory that can be unavailable, and whose replies take time.
#[derive(Debug, Default)]
struct Far {
    states: Mutex<HashMap<(String, ClientKey), State>>,
    requests: AtomicUsize,
    is_away: AtomicBool,
    is_busy: AtomicBool,
    /// Continues from leases while it is unavailable.
    has_leases: AtomicBool,
    /// Limits without leases left.
    spent: Mutex<Vec<&'static str>>,
    /// Whether replies are missing, rather than connections.
    is_late: AtomicBool,
    reply_time: Mutex<Duration>,
}

const NOW: TimestampUs = TimestampUs(1_700_000_000_000_000);

impl Far {
    /// Decides about all requests or none, at one point in time.
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
        if !verdicts.iter().all(Verdict::is_allowed) {
            *states = before;
        }
        verdicts
    }

    /// Returns how many more requests of this client would be allowed.
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

    fn is_unavailable(&self, _: &str, _: ClientKey) -> bool {
        self.is_away.load(Relaxed)
    }

    fn acquire<'a>(
        &'a self,
        charges: &'a [SharedAcquire<'a>],
    ) -> BoxFuture<'a, Result<Vec<Verdict>, CountsError>> {
        Box::pin(async move {
            self.requests.fetch_add(1, Relaxed);
            let reply_time = *self.reply_time.lock();
            tokio::time::sleep(reply_time).await; // tidy: paused time
            let is_spent = |charge: &SharedAcquire<'_>| self.spent.lock().contains(&charge.limit);
            let can_decide = self.has_leases.load(Relaxed) && !charges.iter().any(is_spent);
            if self.is_late.load(Relaxed) {
                return Err(CountsError::Late {
                    store_name: "far".to_owned(),
                    source: "nothing came".into(),
                });
            }
            if self.is_away.load(Relaxed) && !can_decide {
                return Err(CountsError::Unreachable {
                    store_name: "far".to_owned(),
                    source: "it is unavailable".into(),
                });
            }
            if self.is_busy.load(Relaxed) {
                return Err(CountsError::Busy {
                    store_name: "far".to_owned(),
                    source: "many requests".into(),
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
    limit.shared_store = Some(SharedStore {
        counts: Arc::clone(far) as Arc<_>,
        on_failure: OnLimitStoreFailure::Bounded,
    });
    limit
}

fn on_failure(mut limit: Limit, on_failure: OnLimitStoreFailure) -> Limit {
    limit.shared_store.as_mut().unwrap().on_failure = on_failure;
    limit
}

#[tokio::test(start_paused = true)]
async fn two_nodes_together_allow_what_one_may() {
    let far = Arc::new(Far::default());
    let node = || Site::behind(vec![far_limit("api", a_minute(5), &far)]);
    let (one, other) = (node(), node());
    let mut allowed = 0;
    for _ in 0..10 {
        allowed += one.allowed(1, "/", "192.0.2.7").await;
        allowed += other.allowed(1, "/", "192.0.2.7").await;
    }
    assert_eq!(allowed, 5);
    assert_eq!(one.allowed(9, "/", "192.0.2.8").await, 5);
    let rejected = other.send_to(Method::GET, "/", "192.0.2.7").await;
    assert_eq!(rejected.status(), 429);
    assert!(
        rejected.headers()["ratelimit"]
            .to_str()
            .unwrap()
            .starts_with("\"api\";r=0;")
    );
}

#[tokio::test(start_paused = true)]
async fn a_client_has_its_own_limit_in_a_shared_store() {
    let far = Arc::new(Far::default());
    let mut api = far_limit("api", a_minute(2), &far);
    let key = key_of_named(&api.parts, 64, &api.kept.keys, &["192.0.2.8".to_owned()]);
    api.own.insert(key.unwrap(), a_minute(4));
    let site = Site::behind(vec![api]);
    assert_eq!(site.allowed(9, "/", "192.0.2.7").await, 2);
    assert_eq!(site.allowed(9, "/", "192.0.2.8").await, 4);
    let response = site.send_to(Method::GET, "/", "192.0.2.8").await;
    assert_eq!(response.headers()["ratelimit-policy"], "\"api\";q=4;w=60");
}

#[tokio::test(start_paused = true)]
async fn a_rejected_request_costs_nothing_in_any_store() {
    // The strictest of three in turn: local, one store, another store.
    for strictest in 0..3 {
        let (far, farther) = (Arc::new(Far::default()), Arc::new(Far::default()));
        let limit_of = |at: usize| if at == strictest { 2 } else { 10 };
        let limits = || {
            vec![
                limit("local", a_minute(limit_of(0))),
                far_limit("far", a_minute(limit_of(1)), &far),
                far_limit("farther", a_minute(limit_of(2)), &farther),
            ]
        };
        let site = Site::behind(limits());
        assert_eq!(site.allowed(50, "/", "192.0.2.7").await, 2, "{strictest}");
        let left = [far.left(&limits()[1]), farther.left(&limits()[2])];
        assert_eq!(left, [limit_of(1) - 2, limit_of(2) - 2], "{strictest}");
        let plan = site.limiter.plan();
        let CoveredLimit { limit, key } = CoveredLimit {
            limit: &plan.limits[0],
            key: key_of_named(
                &plan.limits[0].parts,
                64,
                &plan.limits[0].kept.keys,
                &["192.0.2.7".to_owned()],
            )
            .unwrap(),
        };
        let peek = anteroom_limit_store::local::LocalAcquire {
            cost: Cost::Peek,
            ..limit.acquire(key, Duration::ZERO)
        };
        let verdict = limit.kept.counts.acquire(&peek, site.limiter.now());
        assert_eq!(verdict.remaining, limit_of(0) - 2, "{strictest}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_over_a_local_limit_reaches_no_store() {
    let far = Arc::new(Far::default());
    let site = Site::behind(vec![
        limit("local", a_minute(2)),
        far_limit("far", a_minute(10), &far),
    ]);
    assert_eq!(site.allowed(50, "/", "192.0.2.7").await, 2);
    assert_eq!(far.requests.load(Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn a_local_rejection_after_a_shared_acquisition_refunds_it() {
    let far = Arc::new(Far::default());
    *far.reply_time.lock() = Duration::from_millis(70);
    let limits = || {
        vec![
            limit("local", a_minute(1)),
            far_limit("far", a_minute(10), &far),
        ]
    };
    let site = Site::behind(limits());
    let responses = futures_util::future::join_all((0..5).map(|_| site.get())).await;
    let allowed = responses.iter().filter(|status| **status == 200).count();
    assert_eq!(allowed, 1);
    assert_eq!(far.left(&limits()[1]), 9);
}

#[tokio::test(start_paused = true)]
async fn while_a_store_is_unavailable_its_failure_setting_applies() {
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
        assert_eq!(site.allowed(9, "/", "192.0.2.7").await, 2, "{on:?}");
        assert_eq!(site.limiter.stats()[0].store_failures, 4, "{on:?}");
    };
    let rejected: [u16; 4] = [503; 4];
    check(
        OnLimitStoreFailure::Bounded,
        &rejected,
        &[("unavailable", 4)],
    )
    .await;
    check(
        OnLimitStoreFailure::Closed,
        &rejected,
        &[("unavailable", 4)],
    )
    .await;
    check(OnLimitStoreFailure::Open, &[200; 4], &[("uncounted", 4)]).await;
    let alone = [200, 200, 429, 429];
    check(
        OnLimitStoreFailure::Local,
        &alone,
        &[("allow", 2), ("reject", 2)],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn leases_are_spent_while_a_store_is_unavailable_unless_closed() {
    let check = async |on: OnLimitStoreFailure, expected: usize| {
        let far = Arc::new(Far::default());
        far.has_leases.store(true, Relaxed);
        far.is_away.store(true, Relaxed);
        let site = Site::behind(vec![on_failure(far_limit("api", a_minute(2), &far), on)]);
        assert_eq!(site.allowed(9, "/", "192.0.2.7").await, expected, "{on:?}");
    };
    check(OnLimitStoreFailure::Bounded, 2).await;
    check(OnLimitStoreFailure::Closed, 0).await;
}

#[tokio::test(start_paused = true)]
async fn a_busy_store_allows_nothing_over_the_limit() {
    for on in [OnLimitStoreFailure::Open, OnLimitStoreFailure::Local] {
        let far = Arc::new(Far::default());
        let site = Site::behind(vec![on_failure(far_limit("api", a_minute(2), &far), on)]);
        far.is_busy.store(true, Relaxed);
        assert_eq!(site.get().await, 503, "{on:?}");
        far.is_busy.store(false, Relaxed);
        assert_eq!(site.allowed(9, "/", "192.0.2.7").await, 2, "{on:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_cannot_be_counted_gets_a_retry_time() {
    let far = Arc::new(Far::default());
    far.is_away.store(true, Relaxed);
    let site = Site::behind(vec![far_limit("api", a_minute(2), &far)]);
    let response = site.send_to(Method::GET, "/", "192.0.2.7").await;
    assert_eq!(response.status(), 503);
    let seconds: u64 = response.headers()["retry-after"]
        .to_str()
        .unwrap()
        .parse()
        .unwrap();
    assert!((5..=6).contains(&seconds), "{seconds}");
    assert_eq!(
        response.headers()["content-type"],
        "application/problem+json"
    );
    assert!(!response.headers().contains_key("ratelimit"));
    let mut from_a_person = request(Method::GET, "/", "192.0.2.7");
    let html = HeaderValue::from_static("text/html");
    from_a_person.headers_mut().insert(ACCEPT, html);
    let response = site.send(from_a_person).await;
    assert_eq!(
        response.headers()["content-type"],
        "text/html; charset=utf-8"
    );
    assert_eq!(site.served.load(Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn an_unavailable_store_refunds_the_limits_of_other_stores() {
    let (far, down) = (Arc::new(Far::default()), Arc::new(Far::default()));
    down.is_away.store(true, Relaxed);
    let limits = || {
        vec![
            far_limit("far", a_minute(10), &far),
            far_limit("down", a_minute(10), &down),
        ]
    };
    let site = Site::behind(limits());
    assert_eq!(site.get().await, 503);
    assert_eq!(far.left(&limits()[0]), 10);
}

#[tokio::test(start_paused = true)]
async fn a_shared_leaky_bucket_delays_up_to_the_maximum() {
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
    let responses = futures_util::future::join_all((0..6).map(|_| async {
        let status = site.get().await;
        (status.as_u16(), began.elapsed().as_secs())
    }));
    let expected = [(200, 0), (200, 1), (200, 2), (200, 3), (429, 0), (429, 0)];
    assert_eq!(responses.await, expected);
}

#[tokio::test(start_paused = true)]
async fn a_shared_limit_in_shadow_mode_delays_no_request() {
    let far = Arc::new(Far::default());
    *far.reply_time.lock() = Duration::from_secs(1);
    let mut shadow = far_limit("new", a_minute(2), &far);
    shadow.is_shadow = true;
    let site = Site::behind(vec![shadow]);
    let began = Instant::now();
    assert_eq!(site.allowed(5, "/", "192.0.2.7").await, 5);
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert_eq!(site.events("new"), []);
    tokio::time::sleep(Duration::from_secs(2)).await; // tidy: paused time
    assert_eq!(site.events("new"), [("allow", 2), ("shadow", 3)]);
    far.is_away.store(true, Relaxed);
    assert_eq!(site.allowed(1, "/", "192.0.2.7").await, 1);
    tokio::time::sleep(Duration::from_secs(2)).await; // tidy: paused time
    assert_eq!(
        site.events("new"),
        [("allow", 2), ("shadow", 3), ("uncounted", 1)]
    );
}
