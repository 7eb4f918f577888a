//! What does the log say of a store that is away? Once that calls cannot be counted, and once that
//! they are again, whatever becomes of them meanwhile and however the store is asked.
//!
//! All in one test, and in a program of its own: who listens to the log is asked for in the whole
//! process when something is said for the first time.

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
use anteroom_limit_http::{CountStores, Limiter, RateLimitLayer, Surroundings};
use anteroom_limit_store::CallKey;
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
const GONE: &str = "calls cannot be counted";
const BACK: &str = "calls are counted again";

/// What this crate has said.
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

impl Surroundings for Program {
    fn now(&self) -> TimestampUs {
        NOW
    }

    fn wall_seconds(&self) -> u64 {
        1_700_000_000
    }
}

/// How a store is asked.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Manner {
    /// Over a network, whenever a call comes.
    Asked,
    /// It decides by itself, and knows whether it is away.
    Decides,
}

/// A store in memory that can be away.
#[derive(Debug)]
struct Store {
    manner: Manner,
    is_away: AtomicBool,
    /// It goes on while it is away, from what it has lent.
    lends: AtomicBool,
}

impl Store {
    fn decide(&self, charges: &[SharedAcquire<'_>]) -> Result<Vec<Verdict>, CountsError> {
        if self.is_away.load(Relaxed) && !self.lends.load(Relaxed) {
            return Err(CountsError::Unreachable {
                place: "far".to_owned(),
                source: "it is away".into(),
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

    fn is_away(&self, _: &str, _: CallKey) -> bool {
        self.manner == Manner::Decides && self.is_away.load(Relaxed)
    }

    fn charge<'a>(
        &'a self,
        charges: &'a [SharedAcquire<'a>],
    ) -> BoxFuture<'a, Result<Vec<Verdict>, CountsError>> {
        Box::pin(std::future::ready(self.decide(charges)))
    }

    fn charge_now(
        &self,
        charges: &[SharedAcquire<'_>],
        verdicts: &mut Vec<Verdict>,
    ) -> Option<Result<(), CountsError>> {
        if self.manner == Manner::Asked {
            return None;
        }
        Some(self.decide(charges).map(|told| verdicts.extend(told)))
    }
}

/// A service behind a limit of a store.
struct Site {
    store: Arc<Store>,
    layer: RateLimitLayer,
    log: Log,
}

impl Site {
    fn new(manner: Manner, on_store_failure: &str, log: &Log) -> Self {
        let text = format!(
            "[store]\nkind = \"valkey\"\nlocal = \"redis://127.0.0.1\"\n\
             [[room]]\nname = \"none\"\nhost = \"none.example\"\norigin = \"http://127.0.0.1:9\"\n\
             total_active_users = 1\nnew_users_per_minute = 1\n\
             [[limit]]\nname = \"api\"\nlimit = \"100/min\"\nstore = \"valkey\"\n\
             on_store_failure = \"{on_store_failure}\"\n"
        );
        let config = Config::parse("limits.toml", &text);
        let config = config.expect("the config is right").config;
        let store = Arc::new(Store {
            manner,
            is_away: AtomicBool::new(false),
            lends: AtomicBool::new(false),
        });
        let stores = CountStores::from_iter([(
            LimitStore::Valkey,
            Arc::clone(&store) as Arc<dyn SharedCounts>,
        )]);
        let meter = Limiter::new(&config.limits, stores, Program).expect("the limit fits");
        log.0.lock().clear();
        Self {
            store,
            layer: RateLimitLayer::new(meter),
            log: log.clone(),
        }
    }

    /// Calls once a second, and returns all that the log has said since the beginning.
    async fn said_after(&self, calls: u32) -> Vec<String> {
        for _ in 0..calls {
            let service =
                tower::service_fn(async |_: Request<Bytes>| Ok(Response::new(Body::full("hello"))));
            let mut request = Request::new(Bytes::new());
            let peer = SocketAddr::from(([192, 0, 2, 7], 4711));
            let host = HeaderValue::from_static("shop.example");
            let trusted = TrustedProxies::new([]);
            let client = Client::of(peer, Scheme::Http, host, request.headers(), &trusted);
            request.extensions_mut().insert(RequestContext::new(client));
            let answered = self.layer.layer(service).oneshot(request).await;
            answered.unwrap();
            advance(Duration::from_secs(1)).await;
        }
        self.log.0.lock().clone()
    }
}

/// Two outages, each told once when it begins and once when it ends.
async fn check_outages(manner: Manner, on_store_failure: &str, log: &Log) {
    let site = Site::new(manner, on_store_failure, log);
    let hint = format!("{manner:?} {on_store_failure}");
    assert_eq!(site.said_after(3).await, [""; 0], "{hint}");
    site.store.is_away.store(true, Relaxed);
    assert_eq!(site.said_after(30).await, [GONE], "{hint}");
    site.store.is_away.store(false, Relaxed);
    assert_eq!(site.said_after(9).await, [GONE], "{hint}: too early");
    assert_eq!(site.said_after(30).await, [GONE, BACK], "{hint}");
    site.store.is_away.store(true, Relaxed);
    assert_eq!(site.said_after(30).await, [GONE, BACK, GONE], "{hint}");
    site.store.is_away.store(false, Relaxed);
    assert_eq!(
        site.said_after(30).await,
        [GONE, BACK, GONE, BACK],
        "{hint}"
    );
}

/// What is decided from what was lent does not say that the store is back.
async fn check_lent_meanwhile(log: &Log) {
    let site = Site::new(Manner::Decides, "bounded", log);
    site.store.is_away.store(true, Relaxed);
    assert_eq!(site.said_after(1).await, [GONE]);
    site.store.lends.store(true, Relaxed);
    assert_eq!(site.said_after(30).await, [GONE]);
    site.store.is_away.store(false, Relaxed);
    assert_eq!(site.said_after(1).await, [GONE, BACK]);
}

#[tokio::test(start_paused = true)]
async fn an_outage_is_reported_once_at_its_beginning_and_end() {
    let log = Log::default();
    let _listening = tracing::subscriber::set_default(log.clone());
    for manner in [Manner::Asked, Manner::Decides] {
        for on_store_failure in ["bounded", "open", "closed", "local"] {
            check_outages(manner, on_store_failure, &log).await;
        }
    }
    check_lent_meanwhile(&log).await;
}
