//! Node with two rooms and its admin address, on a manual clock.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anteroom_admin::api_rooms::{LiveApiRooms, RoomsHost};
use anteroom_admin::overrides::LiveLimits;
use anteroom_admin::{Control, ExtraStats, Extras, Reloader, Role, Token, Tokens, serve};
use anteroom_config::{Checks, Config, RoomId, RoomName};
use anteroom_embedded::{DataDir, Embedded, faults::Faults};
use anteroom_limit::time::TimestampUs;
use anteroom_limit_http::{Limiter, LimiterContext};
use anteroom_node::{
    Arrival, HandClock, Intent, Node, NodeClock, NodeSettings, Outcome, RoomHandle, Stores,
};
use anteroom_room::hash::LotteryKey;
use anteroom_room::id::DeploymentId;
use anteroom_room::time::{DurationMs, Timestamp};
use anteroom_store::memory::Memory;
use anteroom_store::{Clock, Identity};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::control::client::{Response, request};

/// 2023-09-11T11:45:54Z.
pub(crate) const NOW: Timestamp = Timestamp(1_694_432_754_000);

const CONFIG: &str = r#"
[[room]]
name = "shop"
host = "shop.example"
origin = "http://127.0.0.1:9000"
total_active_users = 200
new_users_per_minute = 300
session_duration = "5m"
bypass = []

[[room]]
name = "tickets"
host = "tickets.example"
origin = "http://127.0.0.1:9001"
total_active_users = 200
new_users_per_minute = 200
session_duration = "5m"
queue_all = true
bypass = []

[[limit]]
name = "api"
limit = "100/min"
key = "header:X-Api-Key"
overrides = [{ key = "gold", limit = "900/min" }]

[[limit]]
name = "login"
limit = "5/m"
algorithm = "gcra"
burst = 2
"#;

/// Surroundings of limits with the clock of the node.
struct Around(Arc<HandClock>);

impl LimiterContext for Around {
    fn now(&self) -> TimestampUs {
        TimestampUs(Clock::now(&*self.0).0 * 1_000)
    }

    fn wall_seconds(&self) -> u64 {
        self.0.wall().0 / 1_000
    }
}

/// Valid token.
pub(crate) const TOKEN: &str = "a token of the tests";

/// Returns a token with this role alone.
pub(crate) fn token_of(role: Role) -> String {
    format!("token-of-a-{}", role.word())
}

pub(crate) struct Bench {
    pub(crate) clock: Arc<HandClock>,
    pub(crate) faults: Faults,
    pub(crate) node: Arc<Node>,
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    done: JoinHandle<()>,
    _temp: tempfile::TempDir,
}

struct Fixed(ExtraStats);

impl Extras for Fixed {
    fn read(&self) -> ExtraStats {
        self.0.clone()
    }
}

/// Process without rooms of the API.
struct NoRooms;

impl RoomsHost for NoRooms {
    fn name(&self) -> String {
        "node".to_owned()
    }

    fn serve(&self, _: &Config, _: &[RoomId]) -> Result<(), Box<dyn Error + Send + Sync>> {
        Ok(())
    }

    fn preview(
        &self,
        _: &str,
        _: &BTreeMap<String, String>,
    ) -> Result<Option<String>, Vec<String>> {
        Ok(None)
    }

    fn set_known(&self, _: bool) {}

    fn read_copy(&self) -> Result<Option<String>, Box<dyn Error + Send + Sync>> {
        Ok(None)
    }

    fn write_copy(&self, _: &str) -> Result<(), Box<dyn Error + Send + Sync>> {
        Ok(())
    }

    fn read_page(&self, _: &str) -> Result<Option<String>, Box<dyn Error + Send + Sync>> {
        Ok(None)
    }

    fn write_page(&self, _: &str, _: &str) -> Result<(), Box<dyn Error + Send + Sync>> {
        Ok(())
    }

    fn remove_other_pages(&self, _: &BTreeSet<&str>) {}
}

pub(crate) fn room_name(name: &str) -> RoomName {
    RoomName::new(name).unwrap()
}

impl Bench {
    /// Starts a node whose store has replied.
    pub(crate) async fn new() -> Self {
        Self::with_extras(ExtraStats::default()).await
    }

    pub(crate) async fn with_extras(extras: ExtraStats) -> Self {
        let bench = Self::start(Faults::default(), extras).await;
        bench.until_healthy(true).await;
        bench
    }

    /// Starts a node whose store may not have replied yet.
    pub(crate) async fn start(faults: Faults, extras: ExtraStats) -> Self {
        let temp = tempfile::tempdir().unwrap();
        let dir = DataDir::open(&temp.path().join("data")).unwrap();
        let clock = Arc::new(HandClock::new(NOW));
        let store_clock = Arc::clone(&clock) as Arc<dyn Clock>;
        let store = Embedded::with_faults(dir, Identity(1), store_clock, &faults);
        let stores = Stores::Alone(Arc::new(store));
        Self::start_on(stores, CONFIG, (clock, faults, temp), extras).await
    }

    /// Starts a node with these rooms on a shared store, which has replied.
    pub(crate) async fn on_shared(store: Memory, clock: Arc<HandClock>, config: &str) -> Self {
        let around = (clock, Faults::default(), tempfile::tempdir().unwrap());
        let stores = Stores::Shared(Arc::new(store));
        let bench = Self::start_on(stores, config, around, ExtraStats::default()).await;
        bench.until_healthy(true).await;
        bench
    }

    async fn start_on(
        stores: Stores,
        config: &str,
        (clock, faults, temp): (Arc<HandClock>, Faults, tempfile::TempDir),
        extras: ExtraStats,
    ) -> Self {
        let config = Config::parse("test.toml", config).unwrap().config;
        let file = config.clone();
        let settings = NodeSettings {
            folder: None,
            ticket_keys: vec![[7; 32]],
            deployment_id: DeploymentId(1),
            lottery_key: LotteryKey([1; 16]),
            data_center: "San Jose".to_owned(),
            history_bytes: 1 << 20,
            rooms: config.rooms,
        };
        let node = Node::start(settings, stores.clone(), Arc::clone(&clock) as _).unwrap();
        let limiter = Limiter::new(
            &config.limits,
            anteroom_limit_http::CountStores::default(),
            Around(Arc::clone(&clock)),
        )
        .unwrap();
        let limits = LiveLimits::new(
            limiter,
            &config.limits,
            (&stores, DeploymentId(1)),
            Arc::clone(&clock) as _,
        );
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let shutdown = async {
            let _ = stopped.await;
        };
        let role = |role| Token::with_role("role", &token_of(role), role);
        let mut tokens = vec![Token::new("test", TOKEN)];
        tokens.extend(Role::ALL.map(role));
        let tokens = Arc::new(Tokens::new(tokens));
        let api_rooms = LiveApiRooms::new(
            Arc::new(NoRooms),
            &file,
            (&stores, DeploymentId(1)),
            Arc::clone(&clock) as _,
            Checks::default(),
        );
        let control = Control::new(
            Arc::clone(&node),
            (limits, api_rooms),
            Arc::new(Fixed(extras)),
            (tokens, Reloader::new().0),
        );
        let done = tokio::spawn(serve(
            listener,
            (Vec::new(), None),
            control.router(),
            shutdown,
        ));
        Self {
            clock,
            faults,
            node,
            address,
            stop,
            done,
            _temp: temp,
        }
    }

    pub(crate) fn room(&self, name: &str) -> Arc<RoomHandle> {
        self.node.room(&room_name(name)).unwrap()
    }

    /// Sends one request of a new visitor.
    pub(crate) async fn visit(&self, room: &str) -> Outcome {
        let arrival = Arrival {
            intent: Intent::Enter,
            tickets: &[],
            is_navigation: true,
            gets_page: true,
        };
        self.room(room).decide(arrival).await
    }

    /// Waits until a condition is true for every room.
    pub(crate) async fn until(&self, condition: impl Fn(&RoomHandle) -> bool) {
        let wait = async {
            while !self.node.rooms().iter().all(|room| condition(room)) {
                tokio::task::yield_now().await;
            }
        };
        // Without a timeout, a failure would hang.
        tokio::time::timeout(Duration::from_secs(60), wait)
            .await
            .expect("the condition becomes true");
    }

    pub(crate) async fn until_healthy(&self, is_healthy: bool) {
        self.until(|room| room.stats().has_live_lease == is_healthy)
            .await;
    }

    /// Fails all writes and lets all leases expire.
    pub(crate) fn lose_leases(&self) {
        self.faults.set_full(true);
        self.clock.advance(DurationMs(11_000));
    }

    /// Sends a raw request.
    pub(crate) async fn send(&self, text: &str) -> Response {
        request(self.address, text).await
    }

    pub(crate) async fn get(&self, path: &str) -> Response {
        self.send(&format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n"))
            .await
    }

    /// Reads a path with the valid token.
    pub(crate) async fn get_as_operator(&self, path: &str) -> Response {
        let token = format!("Bearer {TOKEN}");
        self.get_with(path, &[("authorization", &token)]).await
    }

    /// Reads a path with these headers.
    pub(crate) async fn get_with(&self, path: &str, headers: &[(&str, &str)]) -> Response {
        let headers = headers
            .iter()
            .map(|(name, value)| format!("{name}: {value}\r\n"));
        let headers: String = headers.collect();
        self.send(&format!(
            "GET {path} HTTP/1.1\r\nhost: localhost\r\n{headers}\r\n"
        ))
        .await
    }

    /// Sends a command with the valid token.
    pub(crate) async fn post(&self, path: &str, body: &str) -> Response {
        self.post_with(path, body, &[("authorization", &format!("Bearer {TOKEN}"))])
            .await
    }

    /// Sends a command with these headers.
    pub(crate) async fn post_with(
        &self,
        path: &str,
        body: &str,
        headers: &[(&str, &str)],
    ) -> Response {
        let headers = headers
            .iter()
            .map(|(name, value)| format!("{name}: {value}\r\n"));
        let headers: String = headers.collect();
        let length = body.len();
        self.send(&format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n{headers}\r\n\
             {body}"
        ))
        .await
    }

    /// Stops the server and the node.
    pub(crate) async fn stop(self) {
        self.stop.send(()).unwrap();
        self.done.await.unwrap();
        self.node.stop().await;
    }
}
