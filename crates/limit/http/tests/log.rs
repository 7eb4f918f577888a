//! Log lines about an unavailable store: one when requests cannot be counted, and one when they are
//! counted again. That holds for every failure setting and every kind of store.
//!
//! All in one test, and in a program of its own: `tracing` caches for the whole process whether
//! anything listens to a log line.

use std::fmt::{Debug, Write as _};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use anteroom_config::{Config, LimitStore};
use anteroom_limit::algorithm::Algorithm as _;
use anteroom_limit::policy::{Needs, State};
use anteroom_limit::time::TimestampUs;
use anteroom_limit::verdict::Verdict;
use anteroom_limit_http::{CountStores, Limiter, LimiterContext, RateLimitLayer};
use anteroom_limit_store::ClientKey;
use anteroom_limit_store::shared::{BoxFuture, CountsError, SharedAcquire, SharedCounts};
use anteroom_proxy::body::Body;
use anteroom_proxy::forwarded::{Client, Scheme, TrustedProxies};
use anteroom_proxy::request_context::RequestContext;
use bytes::Bytes;
use http::{HeaderValue, Request, Response};
use parking_lot::Mutex;
use tokio::time::advance;
use tower::{Layer as _, ServiceExt as _};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

const NOW: TimestampUs = TimestampUs(1_700_000_000_000_000);
const GONE: &str = "requests cannot be counted";
const BACK: &str = "requests are counted again";

/// Messages that this crate has logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("anteroom_limit_http")
    }

    fn event(&self, event: &Event<'_>) {
        let mut message = Message::default();
        event.record(&mut message);
        self.0.lock().push(message.0);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[derive(Default)]
struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            write!(self.0, "{value:?}").expect("writing to a string cannot fail");
        }
    }
}

struct Program;

impl LimiterContext for Program {
    fn now(&self) -> TimestampUs {
        NOW
    }

    fn wall_seconds(&self) -> u64 {
        1_700_000_000
    }
}

/// Kind of a store.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    /// Reached over a network for each request.
    Remote,
    /// Decides locally, and knows whether it is unavailable.
    Local,
}

/// Store in memory that can be unavailable.
#[derive(Debug)]
struct Store {
    kind: Kind,
    is_away: AtomicBool,
    /// Continues from leases while it is unavailable.
    has_leases: AtomicBool,
}

impl Store {
    fn decide(&self, charges: &[SharedAcquire<'_>]) -> Result<Vec<Verdict>, CountsError> {
        if self.is_away.load(Relaxed) && !self.has_leases.load(Relaxed) {
            return Err(CountsError::Unreachable {
                store_name: "far".to_owned(),
                source: "it is unavailable".into(),
            });
        }
        let verdict = |charge: &SharedAcquire<'_>| {
            let mut nothing_yet = State::default();
            charge.policy.step(&mut nothing_yet, NOW, charge.cost)
        };
        Ok(charges.iter().map(verdict).collect())
    }
}

impl SharedCounts for Store {
    fn kind(&self) -> &'static str {
        "far"
    }

    fn offers(&self) -> Needs {
        Needs::Transaction
    }

    fn is_unavailable(&self, _: &str, _: ClientKey) -> bool {
        self.kind == Kind::Local && self.is_away.load(Relaxed)
    }

    fn acquire<'a>(
        &'a self,
        charges: &'a [SharedAcquire<'a>],
    ) -> BoxFuture<'a, Result<Vec<Verdict>, CountsError>> {
        Box::pin(std::future::ready(self.decide(charges)))
    }

    fn try_acquire_now(
        &self,
        charges: &[SharedAcquire<'_>],
        verdicts: &mut Vec<Verdict>,
    ) -> Option<Result<(), CountsError>> {
        if self.kind == Kind::Remote {
            return None;
        }
        Some(self.decide(charges).map(|decided| verdicts.extend(decided)))
    }
}

/// Service behind a limit of a shared store.
struct Site {
    store: Arc<Store>,
    layer: RateLimitLayer,
    log: Log,
}

impl Site {
    fn new(kind: Kind, on_store_failure: &str, log: &Log) -> Self {
        let text = format!(
            "[store]\nkind = \"valkey\"\nlocal = \"redis://127.0.0.1\"\n\
             [[room]]\nname = \"none\"\nhost = \"none.example\"\norigin = \"http://127.0.0.1:9\"\n\
             total_active_users = 1\nnew_users_per_minute = 1\n\
             [[limit]]\nname = \"api\"\nlimit = \"100/min\"\nstore = \"valkey\"\n\
             on_store_failure = \"{on_store_failure}\"\n"
        );
        let config = Config::parse("limits.toml", &text);
        let config = config.expect("the config is valid").config;
        let store = Arc::new(Store {
            kind,
            is_away: AtomicBool::new(false),
            has_leases: AtomicBool::new(false),
        });
        let stores = CountStores::from_iter([(
            LimitStore::Valkey,
            Arc::clone(&store) as Arc<dyn SharedCounts>,
        )]);
        let limiter = Limiter::new(&config.limits, stores, Program).expect("the limit fits");
        log.0.lock().clear();
        Self {
            store,
            layer: RateLimitLayer::new(limiter),
            log: log.clone(),
        }
    }

    /// Sends a request each second, and returns everything logged since the beginning.
    async fn logged_after(&self, requests: u32) -> Vec<String> {
        for _ in 0..requests {
            let service =
                tower::service_fn(async |_: Request<Bytes>| Ok(Response::new(Body::full("hello"))));
            let mut request = Request::new(Bytes::new());
            let peer = SocketAddr::from(([192, 0, 2, 7], 4711));
            let host = HeaderValue::from_static("shop.example");
            let trusted = TrustedProxies::new([]);
            let client = Client::of(peer, Scheme::Http, host, request.headers(), &trusted);
            request.extensions_mut().insert(RequestContext::new(client));
            let response = self.layer.layer(service).oneshot(request).await;
            response.unwrap();
            advance(Duration::from_secs(1)).await;
        }
        self.log.0.lock().clone()
    }
}

/// Checks two outages, each logged once when it begins and once when it ends.
async fn check_outages(kind: Kind, on_store_failure: &str, log: &Log) {
    let site = Site::new(kind, on_store_failure, log);
    let hint = format!("{kind:?} {on_store_failure}");
    assert_eq!(site.logged_after(3).await, [""; 0], "{hint}");
    site.store.is_away.store(true, Relaxed);
    assert_eq!(site.logged_after(30).await, [GONE], "{hint}");
    site.store.is_away.store(false, Relaxed);
    assert_eq!(site.logged_after(9).await, [GONE], "{hint}: too early");
    assert_eq!(site.logged_after(30).await, [GONE, BACK], "{hint}");
    site.store.is_away.store(true, Relaxed);
    assert_eq!(site.logged_after(30).await, [GONE, BACK, GONE], "{hint}");
    site.store.is_away.store(false, Relaxed);
    assert_eq!(
        site.logged_after(30).await,
        [GONE, BACK, GONE, BACK],
        "{hint}"
    );
}

/// Checks that decisions from leases do not count as a recovery.
async fn check_leases_meanwhile(log: &Log) {
    let site = Site::new(Kind::Local, "bounded", log);
    site.store.is_away.store(true, Relaxed);
    assert_eq!(site.logged_after(1).await, [GONE]);
    site.store.has_leases.store(true, Relaxed);
    assert_eq!(site.logged_after(30).await, [GONE]);
    site.store.is_away.store(false, Relaxed);
    assert_eq!(site.logged_after(1).await, [GONE, BACK]);
}

#[tokio::test(start_paused = true)]
async fn an_outage_is_logged_once_at_its_beginning_and_end() {
    let log = Log::default();
    let _listening = tracing::subscriber::set_default(log.clone());
    for kind in [Kind::Remote, Kind::Local] {
        for on_store_failure in ["bounded", "open", "closed", "local"] {
            check_outages(kind, on_store_failure, &log).await;
        }
    }
    check_leases_meanwhile(&log).await;
}
