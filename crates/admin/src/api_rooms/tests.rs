//! Several nodes change rooms at once, on a store that forgets, is cut off, or writes and does not
//! say so. In the end all nodes agree, and nothing that a node has confirmed is lost.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU32, AtomicU64};

use anteroom_config::api_rooms::ApiEvent;
use anteroom_config::overrides::Change;
use anteroom_config::{PageTemplate, RoomConfig};
use anteroom_node::HandClock;
use anteroom_room::time::DurationMs;
use anteroom_store::memory::Memory;
use anteroom_store::{
    BoxFuture, Clock, CounterName, Expected, Loaded, Note, Record as StoredRecord, RecordKey,
    Store, Swap,
};

use serde_json::json;

use super::*;

mod nodes;
mod pages;
mod transfer;

/// Node's connection to a store.
struct Link {
    store: Memory,
    is_cut: AtomicBool,
    /// Number of writes whose replies are lost.
    lost_replies: AtomicU32,
}

impl Link {
    fn to(store: &Memory) -> Arc<Self> {
        Arc::new(Self {
            store: store.clone(),
            is_cut: AtomicBool::new(false),
            lost_replies: AtomicU32::new(0),
        })
    }

    fn check(&self) -> Result<(), StoreError> {
        if self.is_cut.load(Ordering::Relaxed) {
            return Err(failure());
        }
        Ok(())
    }
}

fn failure() -> StoreError {
    StoreError::Unavailable {
        doing: "reach",
        store_name: "the store".to_owned(),
        source: "cut off by the test".into(),
    }
}

impl Store for Link {
    fn load<'a>(&'a self, key: &'a RecordKey) -> BoxFuture<'a, Result<Loaded, StoreError>> {
        Box::pin(async move {
            self.check()?;
            self.store.load(key).await
        })
    }

    fn compare_and_swap<'a>(
        &'a self,
        key: &'a RecordKey,
        expected: Expected,
        value: Vec<u8>,
    ) -> BoxFuture<'a, Result<Swap, StoreError>> {
        Box::pin(async move {
            self.check()?;
            let swap = self.store.compare_and_swap(key, expected, value).await?;
            let lost = self.lost_replies.load(Ordering::Relaxed);
            if lost > 0 {
                self.lost_replies.store(lost - 1, Ordering::Relaxed);
                return Err(failure());
            }
            Ok(swap)
        })
    }

    fn load_changed<'a>(
        &'a self,
        key: &'a RecordKey,
        known: Expected,
        note: Option<&'a Note>,
    ) -> BoxFuture<'a, Result<Option<Loaded>, StoreError>> {
        Box::pin(async move {
            self.check()?;
            self.store.load_changed(key, known, note).await
        })
    }

    fn notes<'a>(&'a self, key: &'a RecordKey) -> BoxFuture<'a, Result<Vec<Note>, StoreError>> {
        Box::pin(async move {
            self.check()?;
            self.store.notes(key).await
        })
    }

    fn keep_for<'a>(
        &'a self,
        key: &'a RecordKey,
        value: Option<&'a [u8]>,
        lifetime: DurationMs,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move {
            self.check()?;
            self.store.keep_for(key, value, lifetime).await
        })
    }

    fn take_number<'a>(&'a self, name: &'a CounterName) -> BoxFuture<'a, Result<u64, StoreError>> {
        self.store.take_number(name)
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

/// Clock of a store, which may step back.
struct StoreClock(AtomicU64);

impl Clock for StoreClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::Relaxed))
    }

    fn never_before(&self, _: Timestamp) {}
}

/// Data folder and route table of a node.
#[derive(Default)]
struct Machine {
    name: String,
    starts: AtomicU32,
    copy: Mutex<Option<String>>,
    /// Custom pages in the data folder.
    pages: Mutex<BTreeMap<String, String>>,
    served: Mutex<Vec<String>>,
    /// Custom pages of served rooms, by name of the room.
    shown: Mutex<BTreeMap<String, String>>,
    /// Rooms whose ledgers end.
    ended: Mutex<Vec<String>>,
    is_known: AtomicBool,
    is_disk_full: AtomicBool,
}

impl RoomsHost for Machine {
    fn name(&self) -> String {
        // Each process has another name.
        let starts = self.starts.fetch_add(1, Ordering::Relaxed);
        format!("{}-{starts}", self.name)
    }

    fn serve(
        &self,
        config: &Config,
        deleted: &[RoomId],
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        let names = config.rooms.iter().map(|room| room.name.to_string());
        *self.served.lock() = names.collect();
        let page = |room: &RoomConfig| match &room.page.template {
            Some(PageTemplate::Html(html)) => Some((room.name.to_string(), html.clone())),
            _ => None,
        };
        *self.shown.lock() = config.rooms.iter().filter_map(page).collect();
        self.ended
            .lock()
            .extend(deleted.iter().map(ToString::to_string));
        Ok(())
    }

    fn preview(
        &self,
        html: &str,
        _: &BTreeMap<String, String>,
    ) -> Result<Option<String>, Vec<String>> {
        Ok(Some(html.to_owned()))
    }

    fn set_known(&self, is_known: bool) {
        self.is_known.store(is_known, Ordering::Relaxed);
    }

    fn read_copy(&self) -> Result<Option<String>, Box<dyn Error + Send + Sync>> {
        Ok(self.copy.lock().clone())
    }

    fn write_copy(&self, text: &str) -> Result<(), Box<dyn Error + Send + Sync>> {
        if self.is_disk_full.load(Ordering::Relaxed) {
            return Err("disk full".into());
        }
        *self.copy.lock() = Some(text.to_owned());
        Ok(())
    }

    fn read_page(&self, name: &str) -> Result<Option<String>, Box<dyn Error + Send + Sync>> {
        Ok(self.pages.lock().get(name).cloned())
    }

    fn write_page(&self, name: &str, text: &str) -> Result<(), Box<dyn Error + Send + Sync>> {
        if self.is_disk_full.load(Ordering::Relaxed) {
            return Err("disk full".into());
        }
        self.pages.lock().insert(name.to_owned(), text.to_owned());
        Ok(())
    }

    fn remove_other_pages(&self, names: &BTreeSet<&str>) {
        self.pages
            .lock()
            .retain(|name, _| names.contains(name.as_str()));
    }
}

fn file() -> Config {
    let text = "[[site]]\nname = \"shop\"\nhost = \"shop.example\"\n\
                origin = \"http://127.0.0.1:3000\"\n";
    Config::parse("anteroom.toml", text).unwrap().config
}

struct TestNode {
    machine: Arc<Machine>,
    global: Arc<Link>,
    stores: Stores,
    rooms: Arc<LiveApiRooms>,
}

impl TestNode {
    fn start(store: &Memory, local: Option<&Memory>, clock: &Arc<HandClock>) -> Self {
        let global = Link::to(store);
        let stores = match local {
            None => Stores::Shared(Arc::clone(&global) as Arc<dyn Store>),
            Some(local) => Stores::TwoLevels {
                local: Link::to(local),
                global: Arc::clone(&global) as Arc<dyn Store>,
            },
        };
        // Nodes of a test have different addresses.
        let machine = Arc::new(Machine {
            name: format!("{:p}", Arc::as_ptr(&global)),
            ..Machine::default()
        });
        let rooms = live(&machine, &stores, clock);
        Self {
            machine,
            global,
            stores,
            rooms,
        }
    }

    /// Ends the process and starts another one in the same data folder.
    async fn restart(&mut self, clock: &Arc<HandClock>) {
        self.rooms = live(&self.machine, &self.stores, clock);
        self.rooms.learn().await;
    }
}

fn live(machine: &Arc<Machine>, stores: &Stores, clock: &Arc<HandClock>) -> Arc<LiveApiRooms> {
    LiveApiRooms::new(
        Arc::clone(machine) as Arc<dyn RoomsHost>,
        &file(),
        (stores, DeploymentId(7)),
        Arc::clone(clock) as Arc<dyn NodeClock>,
        Checks::default(),
    )
}

fn room(name: &str, path: &str, description: &str) -> ApiRoom {
    let values = json!({
        "name": name, "host": "shop.example", "path": path,
        "total_active_users": 10, "new_users_per_minute": 10,
    });
    ApiRoom {
        values: values.as_object().cloned().unwrap(),
        description: description.to_owned(),
        site: "shop".to_owned(),
        ..ApiRoom::default()
    }
}

fn who() -> Actor {
    Actor::default()
}

async fn write(
    rooms: &Arc<LiveApiRooms>,
    id: &str,
    content: Option<ApiRoom>,
    is_new: bool,
) -> Result<Written, RoomChangeError> {
    let id = RoomId::new(id).unwrap();
    let edit = |record: &ApiRooms, _: u64| {
        if !is_new && record.room(&id).is_none() {
            return Err(RoomRefusal::NotFound);
        }
        Ok(Edit::Write(id.clone(), content.clone().map(Box::new)))
    };
    rooms.change(&who(), "edit", edit).await
}

/// Lets tasks in the background finish.
async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

/// Random numbers of a run.
struct Draw(u64);

impl Draw {
    fn below(&mut self, most: usize) -> usize {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        usize::try_from(mixed % most as u64).unwrap()
    }
}

/// Rooms as nodes have confirmed them; `None` is a deleted one.
type Confirmed = BTreeMap<String, Option<ApiRoom>>;

struct World {
    clock: Arc<HandClock>,
    store_clock: Arc<StoreClock>,
    store: Memory,
    nodes: Vec<TestNode>,
    confirmed: Confirmed,
    /// Rooms with a newer change that nobody confirmed.
    unconfirmed: BTreeSet<String>,
    /// Whether the store's clock steps. If not, the store loses data. A writer that does not know
    /// the newest change cannot be later than it by a clock that steps back.
    has_steps: bool,
    older: Vec<BTreeMap<RecordKey, StoredRecord>>,
    made: usize,
}

impl World {
    fn new(seed: u64) -> Self {
        let clock = Arc::new(HandClock::new(Timestamp(1_700_000_000_000)));
        let store_clock = Arc::new(StoreClock(AtomicU64::new(clock.now().0)));
        let memory = || Memory::new(Arc::clone(&store_clock) as Arc<dyn Clock>);
        let (store, locals) = (memory(), [memory(), memory()]);
        let local = |node: usize| seed.is_multiple_of(2).then(|| &locals[node % 2]);
        let nodes = (0..3).map(|node| TestNode::start(&store, local(node), &clock));
        Self {
            nodes: nodes.collect(),
            store,
            clock,
            store_clock,
            confirmed: Confirmed::new(),
            unconfirmed: BTreeSet::new(),
            has_steps: seed % 4 > 1,
            older: Vec::new(),
            made: 0,
        }
    }

    /// Writes a room while other nodes read the record now and then, and notes what the node has
    /// confirmed.
    async fn write(
        &mut self,
        (at, draw): (usize, &mut Draw),
        id: &str,
        content: Option<ApiRoom>,
        is_new: bool,
    ) {
        let rooms = Arc::clone(&self.nodes[at].rooms);
        let reads: Vec<(u64, usize)> = (0..draw.below(5))
            .map(|_| (draw.below(700) as u64, draw.below(self.nodes.len())))
            .collect();
        let reading = async {
            for (after_ms, at) in reads {
                tokio::time::sleep(Duration::from_millis(after_ms)).await; // tidy: paused time
                self.nodes[at].rooms.read().await;
            }
        };
        let (written, ()) = tokio::join!(write(&rooms, id, content, is_new), reading);
        match written {
            Ok(written) => {
                self.check_applied(&written);
                let room = written.record.rooms[id].room.clone();
                self.confirmed.insert(id.to_owned(), room);
                self.unconfirmed.remove(id);
            }
            Err(ChangeError::Rejected(_)) => {}
            // It may have been written.
            Err(_) => {
                self.unconfirmed.insert(id.to_owned());
            }
        }
    }

    /// Checks that no node counts as serving a change which it does not serve.
    fn check_applied(&self, written: &Written) {
        let Some(applied) = written.applied else {
            return;
        };
        let id = written.id.as_str();
        let wanted = &written.record.rooms[id];
        let serves = |node: &&TestNode| {
            let record = node.rooms.record();
            let known = record.rooms.get(id);
            known.is_some_and(|known| (known.at, known.rev) >= (wanted.at, wanted.rev))
        };
        let serving = self.nodes.iter().filter(serves).count();
        assert!(
            applied.nodes <= serving,
            "{applied:?}, and {serving} serve it"
        );
        assert!(applied.nodes <= applied.of, "{applied:?}");
    }

    async fn step(&mut self, draw: &mut Draw) {
        let at = draw.below(self.nodes.len());
        let ids: Vec<String> = self.confirmed.keys().cloned().collect();
        let any = (!ids.is_empty()).then(|| ids[draw.below(ids.len().max(1))].clone());
        let rooms = Arc::clone(&self.nodes[at].rooms);
        match draw.below(17) {
            0..=3 => {
                self.made += 1;
                let id = format!("{:032x}", self.made);
                // Some want the same path.
                let path = format!("/p{}", draw.below(6));
                let content = room(&format!("n{}", self.made), &path, "new");
                self.write((at, draw), &id, Some(content), true).await;
            }
            4..=6 => {
                if let Some(id) = any {
                    let content = self.confirmed[&id].clone();
                    let content = content.map(|content| ApiRoom {
                        description: format!("step {}", draw.below(1_000)),
                        ..content
                    });
                    if content.is_some() {
                        self.write((at, draw), &id, content, false).await;
                    }
                }
            }
            7 => {
                if let Some(id) = any {
                    self.write((at, draw), &id, None, false).await;
                }
            }
            8 | 9 => rooms.read().await,
            10 => {
                let clock = Arc::clone(&self.clock);
                self.nodes[at].restart(&clock).await;
            }
            11 => {
                let link = &self.nodes[at].global;
                let is_cut = link.is_cut.load(Ordering::Relaxed);
                link.is_cut.store(!is_cut, Ordering::Relaxed);
            }
            12 => self.older.push(self.store.records()),
            13 if self.has_steps => {}
            13 => match self.older.pop() {
                Some(older) => self.store.lose_since(older),
                None => self.store.wipe(),
            },
            14 => {
                let link = &self.nodes[at].global;
                link.lost_replies.store(1, Ordering::Relaxed);
            }
            // Somebody deletes the record alone.
            15 if !self.has_steps => self.store.forget("(rooms)"),
            _ => settle().await,
        }
        self.let_time_pass(draw).await;
    }

    async fn let_time_pass(&mut self, draw: &mut Draw) {
        // Now and then, marks of deleted rooms expire; copies as well, and all nodes are there.
        let is_long = draw.below(60) == 0;
        let by = if is_long { DELETED_FOR.0 + 1 } else { 0 };
        if is_long {
            self.older.clear();
            self.reach_the_store().await;
            // A deletion that was not confirmed may have been made.
            let record = self.nodes[0].rooms.record();
            let is_present = |id: &String| {
                record
                    .rooms
                    .get(id)
                    .is_some_and(|entry| entry.room.is_some())
            };
            self.confirmed.retain(|id, _| is_present(id));
        }
        self.clock
            .advance(DurationMs(by + draw.below(2_000) as u64));
        // The store's clock may be behind by up to five seconds.
        let behind = if self.has_steps { 5_000 } else { 1 };
        let now = self.clock.now().0 - draw.below(behind) as u64;
        self.store_clock.0.store(now, Ordering::Relaxed);
    }

    /// Lets all nodes reach the store until they know the same.
    async fn reach_the_store(&self) {
        for node in &self.nodes {
            node.global.is_cut.store(false, Ordering::Relaxed);
            node.global.lost_replies.store(0, Ordering::Relaxed);
        }
        // A record that was deleted alone may by chance have a version again that a node knows: it
        // reads the whole record once a minute.
        tokio::time::sleep(Duration::from_secs(61)).await; // tidy: paused time
        for _ in 0..4 {
            for node in &self.nodes {
                node.rooms.read().await;
                settle().await;
            }
        }
    }

    /// Lets all nodes reach the store, and checks what they know.
    async fn check(&mut self, seed: u64) {
        self.reach_the_store().await;
        let first = self.nodes[0].rooms.record();
        for node in &self.nodes {
            assert_eq!(node.rooms.record().rooms, first.rooms, "seed {seed}");
            assert!(node.machine.is_known.load(Ordering::Relaxed));
            let served = node.machine.served.lock().clone();
            let expected = self.nodes[0].machine.served.lock().clone();
            assert_eq!(served, expected, "seed {seed}");
        }
        for (id, room) in &self.confirmed {
            let entry = first.rooms.get(id);
            let entry = entry.unwrap_or_else(|| panic!("seed {seed}: {id} is gone"));
            // Without a reply, a later change may have been made.
            if !self.unconfirmed.contains(id) {
                assert_eq!(&entry.room, room, "seed {seed}: {id}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn confirmed_changes_survive_any_schedule() {
    for seed in 0..150 {
        let mut draw = Draw(seed);
        let mut world = World::new(seed);
        for _ in 0..60 {
            world.step(&mut draw).await;
        }
        world.check(seed).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_is_in_force_at_other_nodes_within_two_seconds() {
    let clock = Arc::new(HandClock::new(Timestamp(1_700_000_000_000)));
    let store = Memory::new(Arc::clone(&clock) as Arc<dyn Clock>);
    let [one, other] = [(); 2].map(|()| TestNode::start(&store, None, &clock));
    let watching = tokio::spawn(Arc::clone(&other.rooms).watch());
    tokio::time::sleep(Duration::from_secs(5)).await; // tidy: paused time
    let calls = store.requests();
    tokio::time::sleep(Duration::from_secs(10)).await; // tidy: paused time
    // One call a second while nothing changes.
    assert!(
        store.requests() - calls <= 11,
        "{}",
        store.requests() - calls
    );
    write(&one.rooms, "a", Some(room("sale", "/", "")), true)
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await; // tidy: paused time
    assert_eq!(*other.machine.served.lock(), ["sale"]);
    watching.abort();
}

#[tokio::test(start_paused = true)]
async fn a_node_that_has_read_neither_record_nor_copy_knows_no_rooms() {
    let clock = Arc::new(HandClock::new(Timestamp(1_700_000_000_000)));
    let store = Memory::new(Arc::clone(&clock) as Arc<dyn Clock>);
    let mut node = TestNode::start(&store, None, &clock);
    node.global.is_cut.store(true, Ordering::Relaxed);
    node.rooms.learn().await;
    assert!(!node.rooms.are_known());
    assert!(!node.machine.is_known.load(Ordering::Relaxed));
    node.global.is_cut.store(false, Ordering::Relaxed);
    node.rooms.read().await;
    assert!(node.machine.is_known.load(Ordering::Relaxed));
    let made = write(&node.rooms, "a", Some(room("sale", "/", "")), true).await;
    assert_eq!(made.unwrap().id.as_str(), "a");
    // With a copy, the next process serves the room while the store is away.
    node.global.is_cut.store(true, Ordering::Relaxed);
    node.restart(&clock).await;
    assert!(node.machine.is_known.load(Ordering::Relaxed));
    assert_eq!(*node.machine.served.lock(), ["sale"]);
}

#[tokio::test(start_paused = true)]
async fn a_copy_older_than_the_marks_of_deleted_rooms_is_dropped() {
    let clock = Arc::new(HandClock::new(Timestamp(1_700_000_000_000)));
    let store = Memory::new(Arc::clone(&clock) as Arc<dyn Clock>);
    let mut node = TestNode::start(&store, None, &clock);
    node.rooms.learn().await;
    write(&node.rooms, "a", Some(room("sale", "/", "")), true)
        .await
        .unwrap();
    node.global.is_cut.store(true, Ordering::Relaxed);
    clock.advance(DurationMs(DELETED_FOR.0 - 1));
    node.restart(&clock).await;
    assert!(node.rooms.are_known());
    clock.advance(DurationMs(1));
    node.restart(&clock).await;
    assert!(!node.rooms.are_known());
    assert_eq!(node.rooms.record().rooms.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_change_is_checked_beside_all_other_rooms_and_written_to_the_log() {
    let clock = Arc::new(HandClock::new(Timestamp(1_700_000_000_000)));
    let store = Memory::new(Arc::clone(&clock) as Arc<dyn Clock>);
    let node = TestNode::start(&store, None, &clock);
    let made = write(&node.rooms, "a", Some(room("sale", "/x", "")), true).await;
    let tag = made.unwrap().record.rooms["a"].tag();
    assert_eq!(tag, "1-1700000000000");
    let refused = write(&node.rooms, "b", Some(room("other", "/x", "")), true).await;
    let Err(ChangeError::Rejected(RoomRefusal::NotAllowed(problems))) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(
        problems[0].to_string(),
        "room \"other\": path: the room \"sale\" covers shop.example /x already"
    );
    // Nor may an older room take what a newer one has.
    write(&node.rooms, "b", Some(room("other", "/y", "")), true)
        .await
        .unwrap();
    let refused = write(&node.rooms, "a", Some(room("sale", "/y", "")), false).await;
    let Err(ChangeError::Rejected(RoomRefusal::NotAllowed(problems))) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(
        problems[0].to_string(),
        "room \"sale\": path: the room \"other\" covers shop.example /y already"
    );
    write(
        &node.rooms,
        "a",
        Some(room("sale", "/x", "For friends")),
        false,
    )
    .await
    .unwrap();
    let entries = node.rooms.log().await.unwrap().entries;
    let whats: Vec<&str> = entries.iter().map(|entry| entry.what.as_str()).collect();
    assert_eq!(
        whats,
        ["room edit sale", "room edit other", "room edit sale"]
    );
    let changes = &entries[2].changes;
    let expected = Change::new("description", json!(""), json!("For friends"));
    assert_eq!(changes, &[expected]);
}

#[tokio::test(start_paused = true)]
async fn a_change_is_undone_as_far_as_the_log_has_its_values() {
    let clock = Arc::new(HandClock::new(Timestamp(1_700_000_000_000)));
    let store = Memory::new(Arc::clone(&clock) as Arc<dyn Clock>);
    let node = TestNode::start(&store, None, &clock);
    let texts = ["", &"a".repeat(9_000), "short", "shorter"];
    for text in texts {
        let room = Some(room("sale", "/x", text));
        write(&node.rooms, "a", room, text.is_empty())
            .await
            .unwrap();
    }
    let new_id = RoomId::new("b").unwrap();
    let undo = async |version| node.rooms.undo(&Actor::default(), version, &new_id).await;
    let description = || {
        let record = node.rooms.record();
        let (_, room) = record.room(&RoomId::new("a").unwrap()).unwrap();
        room.description.clone()
    };
    undo(4).await.unwrap();
    assert_eq!(description(), "short");
    let refused = async |version, expected: &str| match undo(version).await {
        Err(ChangeError::Rejected(RoomRefusal::NotAllowed(problems))) => {
            let text = problems[0].to_string();
            assert!(text.contains(expected), "{version}: {text}");
        }
        other => panic!("{version}: {other:?}"),
    };
    refused(1, "change 1 created the room: delete it instead").await;
    refused(2, "description: change 2 has only the length of this value").await;
    refused(3, "has only the length").await;
    refused(4, "change 4 is not the newest change of this value").await;
    refused(6, "no change has version 6; the log has 1 to 5").await;
    // An undo can be undone.
    undo(5).await.unwrap();
    assert_eq!(description(), "shorter");
    write(&node.rooms, "a", None, false).await.unwrap();
    let restored = undo(7).await.unwrap();
    assert_eq!(restored.id, new_id);
    let (_, room) = restored.record.room(&new_id).unwrap();
    assert_eq!(room.description, "shorter");
    assert_eq!(room.values["name"], "sale");
    let gone = undo(6).await.unwrap_err();
    assert!(matches!(gone, ChangeError::Rejected(RoomRefusal::NotFound)));
}

#[tokio::test(start_paused = true)]
async fn the_start_of_an_event_that_has_started_stays() {
    let clock = Arc::new(HandClock::new(Timestamp(1_700_000_000_000)));
    let store = Memory::new(Arc::clone(&clock) as Arc<dyn Clock>);
    let node = TestNode::start(&store, None, &clock);
    let with_event = |start: &str, end: &str| {
        let values = json!({
            "name": "doors", "event_start_time": start, "event_end_time": end,
        });
        ApiRoom {
            events: vec![ApiEvent {
                id: "e".to_owned(),
                values: values.as_object().cloned().unwrap(),
                ..ApiEvent::default()
            }],
            ..room("sale", "/", "")
        }
    };
    // The clock stands at 2023-11-14T22:13:20Z.
    let started = with_event("2023-11-14T22:00:00Z", "2023-11-14T23:00:00Z");
    write(&node.rooms, "a", Some(started), true).await.unwrap();
    let moved = with_event("2023-11-14T22:30:00Z", "2023-11-14T23:00:00Z");
    let refused = write(&node.rooms, "a", Some(moved), false).await;
    let Err(ChangeError::Rejected(RoomRefusal::NotAllowed(problems))) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(
        problems[0].to_string(),
        "room \"a\": event[1].event_start_time: the event has started: its start stays"
    );
    let longer = with_event("2023-11-14T22:00:00Z", "2023-11-15T23:00:00Z");
    write(&node.rooms, "a", Some(longer), false).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_record_of_a_later_program_is_not_written() {
    let clock = Arc::new(HandClock::new(Timestamp(1_700_000_000_000)));
    let store = Memory::new(Arc::clone(&clock) as Arc<dyn Clock>);
    let node = TestNode::start(&store, None, &clock);
    write(&node.rooms, "a", Some(room("sale", "/", "")), true)
        .await
        .unwrap();
    let mut records = store.records();
    let (key, _) = records
        .iter()
        .find(|(key, _)| key.0.ends_with("/settings"))
        .unwrap();
    let key = key.clone();
    let later = br#"{"form":2,"version":9}"#.to_vec();
    records.get_mut(&key).unwrap().value.clone_from(&later);
    store.lose_since(records);
    let refused = write(&node.rooms, "b", Some(room("b", "/b", "")), true).await;
    assert!(matches!(refused, Err(ChangeError::Store(_))), "{refused:?}");
    node.rooms.read().await;
    settle().await;
    assert_eq!(store.records()[&key].value, later);
    // Its rooms stay in force here.
    assert_eq!(*node.machine.served.lock(), ["sale"]);
}
