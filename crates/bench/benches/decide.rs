//! What deciding costs in process, with one room and with a thousand: time, and allocations.
//!
//! `cargo bench -p anteroom-bench --bench decide`. A visitor's cookie is opened and checked and the
//! verdict given, or a newcomer gets a ticket, as for a front door; HTTP and the search for the
//! room are not part of it.

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

/// A node with rooms where there is place for everybody.
struct Bench {
    rooms: Vec<Arc<RoomHandle>>,
    runtime: Runtime,
    _node: Arc<Node>,
    _folder: TempDir,
}

impl Bench {
    fn with(rooms: usize) -> Self {
        let bench = Self::start(rooms, "");
        // Every room has lent something before the clock runs.
        for room in &bench.rooms {
            bench.admit(room);
        }
        bench
    }

    /// Rooms with more settings.
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

    /// Sends newcomers until one goes in, and returns its ticket.
    fn admit(&self, room: &RoomHandle) -> String {
        self.runtime.block_on(async {
            loop {
                if let Outcome::Pass(pass) = room.decide(arrival(&[])).await {
                    return pass.new_ticket.expect("whoever comes in gets one");
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
    let identity = Identity(deployment.birth.0);
    let store = Embedded::new(dir, identity, Arc::clone(&clock) as Arc<dyn Clock>);
    let settings = NodeSettings {
        folder: None,
        ticket_keys: vec![[1; 32]],
        birth: deployment.birth,
        lottery_key: deployment.lottery_key,
        data_center: "local".to_owned(),
        rooms: config.rooms,
    };
    let stores = Stores::Alone(Arc::new(store));
    Node::start(settings, stores, clock as Arc<dyn NodeClock>).expect("it starts")
}

const fn arrival<'a>(tickets: &'a [&'a str]) -> Arrival<'a> {
    Arrival {
        tickets,
        is_navigation: true,
        intent: Intent::Enter,
    }
}

/// Somebody who is inside comes back: its ticket is opened, checked, and it passes. Each time in
/// the next room.
#[divan::bench(args = ROOMS, sample_count = 500, sample_size = 500)]
fn accepted_visitor(bencher: Bencher<'_, '_>, rooms: usize) {
    pass(bencher, rooms, rooms);
}

/// The same, always in one room; the others only exist. What is left of the difference between one
/// and a thousand is what their loops cost; the rest is that memory is cold.
#[divan::bench(args = ROOMS, sample_count = 500, sample_size = 500)]
fn accepted_visitor_of_one_room(bencher: Bencher<'_, '_>, rooms: usize) {
    pass(bencher, rooms, 1);
}

/// Somebody passes, in turn in so many of the rooms.
fn pass(bencher: Bencher<'_, '_>, rooms: usize, asked: usize) {
    let bench = Bench::with(rooms);
    let _runtime = bench.runtime.enter();
    let asked = &bench.rooms[..asked];
    let tickets: Vec<String> = asked.iter().map(|room| bench.admit(room)).collect();
    let next = RefCell::new((0..tickets.len()).cycle());
    bencher.bench_local(|| {
        let index = next.borrow_mut().next().unwrap_or_default();
        let tickets = [tickets[index].as_str()];
        let outcome = bench.rooms[index].decide(arrival(&tickets)).now_or_never();
        assert!(matches!(outcome, Some(Outcome::Pass(_))));
        outcome
    });
}

/// Somebody comes and goes in. What the ledger lends is used up faster than it is lent anew, so
/// every sample waits, untimed, until there is some.
#[divan::bench(args = ROOMS, sample_count = 500, sample_size = 10)]
fn newcomer_who_goes_in(bencher: Bencher<'_, '_>, rooms: usize) {
    let bench = Bench::with(rooms);
    let _runtime = bench.runtime.enter();
    let next = RefCell::new((0..rooms).cycle());
    let [went_in, came] = [const { Cell::new(0_u32) }; 2];
    bencher
        .with_inputs(|| {
            let index = next.borrow_mut().next().unwrap_or_default();
            bench.admit(&bench.rooms[index]);
            index
        })
        .bench_local_values(|index| {
            let outcome = bench.rooms[index].decide(arrival(&[])).now_or_never();
            came.set(came.get() + 1);
            went_in.set(went_in.get() + u32::from(matches!(outcome, Some(Outcome::Pass(_)))));
            outcome
        });
    let (went_in, came) = (went_in.get(), came.get());
    assert!(
        u64::from(went_in) * 100 >= u64::from(came) * 99,
        "only {went_in} of {came} went in: it is not them that was measured"
    );
}

/// Somebody comes and is told to wait, with a ticket that keeps the place.
#[divan::bench(args = ROOMS, sample_count = 500, sample_size = 100)]
fn newcomer_who_waits(bencher: Bencher<'_, '_>, rooms: usize) {
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
