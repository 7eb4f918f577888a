//! Custom pages beside the record.

use super::*;
use crate::api_rooms::pages::page_name;

fn with_page(name: &str, path: &str, page: &str) -> ApiRoom {
    let mut room = room(name, path, "");
    room.values
        .insert("custom_page_html".to_owned(), json!(page));
    room
}

fn page_key(text: &str) -> RecordKey {
    RecordKey(format!("(rooms)/{:016x}/page/{}", 7, page_name(text)))
}

fn shown(node: &TestNode) -> Option<String> {
    node.machine.shown.lock().get("sale").cloned()
}

struct Bench {
    clock: Arc<HandClock>,
    store: Memory,
    one: TestNode,
    other: TestNode,
}

impl Bench {
    fn new() -> Self {
        let clock = Arc::new(HandClock::new(Timestamp(1_700_000_000_000)));
        let store = Memory::new(Arc::clone(&clock) as Arc<dyn Clock>);
        let [one, other] = [(); 2].map(|()| TestNode::start(&store, None, &clock));
        Self {
            clock,
            store,
            one,
            other,
        }
    }

    async fn write(&self, page: &str) {
        let content = with_page("sale", "/", page);
        write(&self.one.rooms, "a", Some(content), true)
            .await
            .unwrap();
    }

    /// Lets a node do for some seconds what it does beside requests.
    async fn watch(&self, node: &TestNode, secs: u64) {
        let watching = tokio::spawn(Arc::clone(&node.rooms).watch());
        tokio::time::sleep(Duration::from_secs(secs)).await; // tidy: paused time
        watching.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn a_page_lies_beside_the_record_and_is_shown_at_all_nodes() {
    let bench = Bench::new();
    let page = "<p>ticket sale</p>".repeat(50_000);
    bench.write(&page).await;
    bench.other.rooms.read().await;
    for node in [&bench.one, &bench.other] {
        assert_eq!(shown(node).as_deref(), Some(&*page));
    }
    let records = bench.store.records();
    assert_eq!(records[&page_key(&page)].value, page.as_bytes());
    for (key, record) in &records {
        assert!(
            *key == page_key(&page) || record.value.len() < 2_000,
            "{key:?}"
        );
    }
    // An edit that leaves the page alone needs not send it again.
    let known = bench.other.rooms.record().rooms["a"].room.clone().unwrap();
    let edited = ApiRoom {
        description: "For friends".to_owned(),
        ..known
    };
    let edited = write(&bench.other.rooms, "a", Some(edited), false).await;
    edited.unwrap();
    assert_eq!(shown(&bench.other).as_deref(), Some(&*page));
}

#[tokio::test(start_paused = true)]
async fn a_refused_change_writes_no_page() {
    let bench = Bench::new();
    bench.write("<p>1</p>").await;
    let clash = with_page("other", "/", "<p>2</p>");
    let refused = write(&bench.one.rooms, "b", Some(clash), true).await;
    assert!(
        matches!(refused, Err(ChangeError::Rejected(_))),
        "{refused:?}"
    );
    assert!(!bench.store.records().contains_key(&page_key("<p>2</p>")));
}

#[tokio::test(start_paused = true)]
async fn a_reference_to_a_page_that_nobody_has_is_refused() {
    let bench = Bench::new();
    let mut content = room("sale", "/", "");
    let reference = json!({ "sha256": "00" });
    content
        .values
        .insert("custom_page_html".to_owned(), reference);
    let refused = write(&bench.one.rooms, "a", Some(content), true).await;
    let Err(ChangeError::Rejected(RoomRefusal::NotAllowed(problems))) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(
        problems[0].to_string(),
        "room \"a\": custom_page_html: there is no page with the digest 00"
    );
}

#[tokio::test(start_paused = true)]
async fn a_node_that_cannot_read_a_page_keeps_the_one_before() {
    let bench = Bench::new();
    bench.write("<p>1</p>").await;
    bench.other.rooms.read().await;
    bench.write("<p>2</p>").await;
    let lost = bench.store.take(&page_key("<p>2</p>")).unwrap();
    bench.other.rooms.read().await;
    assert_eq!(shown(&bench.other).as_deref(), Some("<p>1</p>"));
    let id = RoomId::new("a").unwrap();
    assert!(bench.other.rooms.lacks_page(&id));
    assert!(bench.other.machine.is_known.load(Ordering::Relaxed));
    // It does not count as serving the change.
    let content = with_page("sale", "/", "<p>2</p>");
    let written = write(&bench.one.rooms, "a", Some(content), false).await;
    let applied = written.unwrap().applied;
    assert_eq!(applied, Some(Applied { nodes: 1, of: 2 }));
    bench.store.put(page_key("<p>2</p>"), lost);
    tokio::time::sleep(Duration::from_secs(1)).await; // tidy: paused time
    bench.other.rooms.read().await;
    assert_eq!(shown(&bench.other).as_deref(), Some("<p>2</p>"));
    assert!(!bench.other.rooms.lacks_page(&id));
}

#[tokio::test(start_paused = true)]
async fn a_node_without_any_page_of_a_room_shows_the_built_in_one() {
    let bench = Bench::new();
    bench.write("<p>1</p>").await;
    bench.store.take(&page_key("<p>1</p>")).unwrap();
    bench.other.rooms.learn().await;
    assert_eq!(*bench.other.machine.served.lock(), ["sale"]);
    assert_eq!(shown(&bench.other), None);
    assert!(bench.other.machine.is_known.load(Ordering::Relaxed));
}

#[tokio::test(start_paused = true)]
async fn a_store_that_lost_everything_gets_the_pages_back() {
    let bench = Bench::new();
    bench.write("<p>1</p>").await;
    bench.watch(&bench.one, 2).await;
    bench.store.wipe();
    bench.watch(&bench.one, 2).await;
    assert!(bench.store.records().contains_key(&page_key("<p>1</p>")));
    bench.other.rooms.learn().await;
    assert_eq!(shown(&bench.other).as_deref(), Some("<p>1</p>"));
}

#[tokio::test(start_paused = true)]
async fn a_restart_without_the_store_has_the_pages_of_the_data_folder() {
    let mut bench = Bench::new();
    bench.write("<p>1</p>").await;
    bench.one.global.is_cut.store(true, Ordering::Relaxed);
    bench.one.restart(&bench.clock).await;
    assert_eq!(shown(&bench.one).as_deref(), Some("<p>1</p>"));
    // A damaged one is not shown.
    for page in bench.one.machine.pages.lock().values_mut() {
        page.push('x');
    }
    bench.one.restart(&bench.clock).await;
    assert_eq!(shown(&bench.one), None);
    bench.one.global.is_cut.store(false, Ordering::Relaxed);
    bench.watch(&bench.one, 2).await;
    assert_eq!(shown(&bench.one).as_deref(), Some("<p>1</p>"));
}

#[tokio::test(start_paused = true)]
async fn a_page_ends_31_days_after_the_last_reference() {
    let bench = Bench::new();
    bench.write("<p>1</p>").await;
    let is_there = || bench.store.records().contains_key(&page_key("<p>1</p>"));
    for _ in 0..3 {
        bench.clock.advance(DurationMs(DELETED_FOR.0 - 1));
        bench.watch(&bench.one, 3_601).await;
        assert!(is_there(), "a room refers to it");
    }
    write(&bench.one.rooms, "a", None, false).await.unwrap();
    bench.clock.advance(DurationMs(DELETED_FOR.0 - 1));
    bench.watch(&bench.one, 3_601).await;
    assert!(is_there());
    bench.clock.advance(DurationMs(1));
    bench.watch(&bench.one, 2).await;
    assert!(!is_there());
    assert_eq!(bench.one.machine.pages.lock().len(), 0);
}
