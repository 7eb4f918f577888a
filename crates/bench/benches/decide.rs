//! Cost of a room's decision in process, with one room and with a thousand: time and allocations.
//!
//! `cargo bench -p anteroom-bench --bench decide`. It opens and checks a visitor's cookie and
//! returns the verdict, or gives a new visitor a ticket, as a listener would. HTTP and the lookup
//! of the room are excluded.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::Duration;

use anteroom_config::Config;
use anteroom_embedded::{DataDir, Embedded};
use anteroom_node::{
    Arrival, Intent, Node, NodeClock, NodeSettings, Outcome, RoomClock, RoomHandle, Stores,
};
use anteroom_store::{Clock, Identity};
use divan::{AllocProfiler, Bencher};
use futures_util::FutureExt as _;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::time::sleep;

#[global_allocator]
static ALLOCATOR: AllocProfiler = AllocProfiler::system();

const ROOMS: [usize; 3] = [1, 30, 1_000];

fn main() {
    divan::main();
}

/// Node with rooms that never fill.
struct Bench {
    rooms: Vec<Arc<RoomHandle>>,
    runtime: Runtime,
    _node: Arc<Node>,
    _folder: TempDir,
}

impl Bench {
    fn with(rooms: usize) -> Self {
        let bench = Self::start(rooms, "");
        // Every room has a lease before the measurement.
        for room in &bench.rooms {
            bench.admit(room);
        }
        bench
    }

    /// Starts rooms with further settings.
    fn start(rooms: usize, settings: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let folder = tempfile::tempdir().expect("a folder");
        let node = runtime.block_on(async { node(rooms, settings, &folder) });
        let rooms = node.rooms();
        Self {
            rooms,
            runtime,
            _node: node,
            _folder: folder,
        }
    }

    /// Sends new visitors until one is admitted, and returns its ticket.
    fn admit(&self, room: &RoomHandle) -> String {
        self.runtime.block_on(async {
            loop {
                if let Outcome::Pass(pass) = room.decide(arrival(&[])).await {
                    return pass.new_ticket.expect("an admitted visitor gets a ticket");
                }
                sleep(Duration::from_millis(5)).await; // tidy: time passes
            }
        })
    }
}

fn node(rooms: usize, settings: &str, folder: &TempDir) -> Arc<Node> {
    let mut text = String::new();
    for room in 0..rooms {
        text.push_str(&format!(
            "[[room]]\nname = \"room-{room}\"\nhost = \"{room}.example\"\n\
             origin = \"http://127.0.0.1:9\"\n\
             bypass = []\ntotal_active_users = 500000000\nnew_users_per_minute = 500000000\n\
             session_duration = \"1h\"\n{settings}"
        ));
    }
    let config = Config::parse("bench.toml", &text)
        .expect("it is legal")
        .config;
    let dir = DataDir::open(folder.path()).expect("a data folder");
    let clock = Arc::new(RoomClock::start(dir.clock()));
    let deployment = dir.deployment().expect("it is drawn");
    let identity = Identity(deployment.deployment_id.0);
    let store = Embedded::new(dir, identity, Arc::clone(&clock) as Arc<dyn Clock>);
    let settings = NodeSettings {
        folder: None,
        ticket_keys: vec![[1; 32]],
        deployment_id: deployment.deployment_id,
        lottery_key: deployment.lottery_key,
        data_center: "local".to_owned(),
        history_bytes: 1 << 20,
        rooms: config.rooms,
    };
    let stores = Stores::Alone(Arc::new(store));
    Node::start(settings, stores, clock as Arc<dyn NodeClock>).expect("it starts")
}

const fn arrival<'a>(tickets: &'a [&'a str]) -> Arrival<'a> {
    Arrival {
        tickets,
        is_navigation: true,
        gets_page: true,
        intent: Intent::Enter,
    }
}

/// Requests of active visitors: the ticket is opened and checked, and the request passes. Each one
/// is in the next room.
#[divan::bench(args = ROOMS, sample_count = 500, sample_size = 500)]
fn accepted_visitor(bencher: Bencher<'_, '_>, rooms: usize) {
    pass(bencher, rooms, rooms);
}

/// Requests of active visitors in one room, while the others only exist. What remains of the
/// difference between one and a thousand rooms is the cost of their loops; the rest is cold memory.
#[divan::bench(args = ROOMS, sample_count = 500, sample_size = 500)]
fn accepted_visitor_of_one_room(bencher: Bencher<'_, '_>, rooms: usize) {
    pass(bencher, rooms, 1);
}

/// Measures requests of active visitors, in turn in the first rooms.
fn pass(bencher: Bencher<'_, '_>, rooms: usize, visited: usize) {
    let bench = Bench::with(rooms);
    let _runtime = bench.runtime.enter();
    let visited = &bench.rooms[..visited];
    let tickets: Vec<String> = visited.iter().map(|room| bench.admit(room)).collect();
    let next = RefCell::new((0..tickets.len()).cycle());
    bencher.bench_local(|| {
        let index = next.borrow_mut().next().unwrap_or_default();
        let tickets = [tickets[index].as_str()];
        let outcome = bench.rooms[index].decide(arrival(&tickets)).now_or_never();
        assert!(matches!(outcome, Some(Outcome::Pass(_))));
        outcome
    });
}

/// New visitors that are admitted. They use up leases faster than new ones come, so every sample
/// waits, untimed, until there is one.
#[divan::bench(args = ROOMS, sample_count = 500, sample_size = 10)]
fn admitted_newcomer(bencher: Bencher<'_, '_>, rooms: usize) {
    let bench = Bench::with(rooms);
    let _runtime = bench.runtime.enter();
    let next = RefCell::new((0..rooms).cycle());
    let [admitted, arrived] = [const { Cell::new(0_u32) }; 2];
    bencher
        .with_inputs(|| {
            let index = next.borrow_mut().next().unwrap_or_default();
            bench.admit(&bench.rooms[index]);
            index
        })
        .bench_local_values(|index| {
            let outcome = bench.rooms[index].decide(arrival(&[])).now_or_never();
            arrived.set(arrived.get() + 1);
            admitted.set(admitted.get() + u32::from(matches!(outcome, Some(Outcome::Pass(_)))));
            outcome
        });
    let (admitted, arrived) = (admitted.get(), arrived.get());
    assert!(
        u64::from(admitted) * 100 >= u64::from(arrived) * 99,
        "only {admitted} of {arrived} were admitted: the measurement is invalid"
    );
}

/// New visitors that are queued, with a ticket that keeps the position.
#[divan::bench(args = ROOMS, sample_count = 500, sample_size = 100)]
fn queued_newcomer(bencher: Bencher<'_, '_>, rooms: usize) {
    let bench = Bench::start(rooms, "queue_all = true\n");
    let _runtime = bench.runtime.enter();
    for room in &bench.rooms {
        bench.runtime.block_on(room.decide(arrival(&[])));
    }
    let next = RefCell::new((0..rooms).cycle());
    bencher.bench_local(|| {
        let index = next.borrow_mut().next().unwrap_or_default();
        let outcome = bench.rooms[index].decide(arrival(&[])).now_or_never();
        assert!(matches!(
            outcome,
            Some(Outcome::Queue {
                ticket: Some(_),
                ..
            })
        ));
        outcome
    });
}
