//! Nodes that serve a change, and nodes that can read it.

use super::*;

fn two_nodes() -> (Arc<HandClock>, Memory, [TestNode; 2]) {
    let clock = Arc::new(HandClock::new(Timestamp(1_700_000_000_000)));
    let store = Memory::new(Arc::clone(&clock) as Arc<dyn Clock>);
    let nodes = [(); 2].map(|()| TestNode::start(&store, None, &clock));
    (clock, store, nodes)
}

async fn applied(node: &TestNode, id: &str, path: &str) -> Option<Applied> {
    let written = write(&node.rooms, id, Some(room(id, path, "")), true).await;
    written.unwrap().applied
}

fn of(nodes: usize, of: usize) -> Option<Applied> {
    Some(Applied { nodes, of })
}

#[tokio::test(start_paused = true)]
async fn a_writer_waits_until_all_live_nodes_serve_its_change() {
    let (_, _, [one, other]) = two_nodes();
    let watching = tokio::spawn(Arc::clone(&other.rooms).watch());
    tokio::time::sleep(Duration::from_millis(1_500)).await; // tidy: paused time
    let began = tokio::time::Instant::now();
    assert_eq!(applied(&one, "a", "/a").await, of(2, 2));
    assert_eq!(*other.machine.served.lock(), ["a"]);
    // The other one reads every second, and tells at once.
    let took = began.elapsed();
    assert!((400..=700).contains(&took.as_millis()), "{took:?}");
    watching.abort();
}

#[tokio::test(start_paused = true)]
async fn each_node_lists_all_live_nodes() {
    let (clock, _, [one, other]) = two_nodes();
    other.rooms.read().await;
    write(&one.rooms, "a", Some(room("a", "/a", "")), true)
        .await
        .unwrap();
    let found = one.rooms.nodes().await.unwrap();
    let facts: Vec<_> = found
        .iter()
        .map(|node| (node.is_this, node.serves_newest))
        .collect();
    assert_eq!(facts, [(true, true), (false, false)]);
    other.rooms.read().await;
    let found = one.rooms.nodes().await.unwrap();
    assert!(found.iter().all(|node| node.serves_newest), "{found:?}");
    assert_eq!(found[1].data_center.as_deref(), Some("local"));
    clock.advance(DurationMs(15_000));
    assert_eq!(one.rooms.nodes().await.unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_silent_for_15_s_is_no_live_node() {
    let (clock, _, [one, other]) = two_nodes();
    other.rooms.read().await;
    let began = tokio::time::Instant::now();
    assert_eq!(applied(&one, "a", "/a").await, of(1, 2));
    let took = began.elapsed();
    assert!((2_000..2_200).contains(&took.as_millis()), "{took:?}");
    clock.advance(DurationMs(14_999));
    assert_eq!(applied(&one, "b", "/b").await, of(1, 2));
    clock.advance(DurationMs(1));
    assert_eq!(applied(&one, "c", "/c").await, of(1, 1));
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_a_node_that_has_left() {
    let (_, _, [one, other]) = two_nodes();
    other.rooms.read().await;
    other.rooms.leave().await;
    let began = tokio::time::Instant::now();
    assert_eq!(applied(&one, "a", "/a").await, of(1, 1));
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_node_whose_file_takes_the_room_does_not_serve_it() {
    let (_, _, [one, other]) = two_nodes();
    let text = "[[site]]\nname = \"shop\"\nhost = \"shop.example\"\n\
                origin = \"http://127.0.0.1:3000\"\n\
                [[room]]\nname = \"own\"\nhost = \"shop.example\"\npath = \"/a\"\n\
                total_active_users = 1\nnew_users_per_minute = 1\n";
    let file = Config::parse("anteroom.toml", text).unwrap().config;
    other.rooms.replace_file(&file).unwrap();
    let watching = tokio::spawn(Arc::clone(&other.rooms).watch());
    tokio::time::sleep(Duration::from_millis(1_500)).await; // tidy: paused time
    assert_eq!(applied(&one, "a", "/a").await, of(1, 2));
    assert_eq!(applied(&one, "b", "/b").await, of(2, 2));
    watching.abort();
}

#[tokio::test(start_paused = true)]
async fn an_unchanged_note_is_left_every_five_seconds() {
    let (_, store, [one, _]) = two_nodes();
    let key = RecordKey(format!("(rooms)/{:016x}/settings", 7));
    one.rooms.read().await;
    let mut left = 0;
    for _ in 0..20 {
        // Gone by itself, so that a note is a new one.
        let known = store.load(&key).await.unwrap().expected();
        for mut note in store.notes(&key).await.unwrap() {
            left += 1;
            note.value.clear();
            store.load_changed(&key, known, Some(&note)).await.unwrap();
        }
        tokio::time::sleep(Duration::from_secs(1)).await; // tidy: paused time
        one.rooms.read().await;
    }
    assert_eq!(left, 4);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_that_a_live_node_cannot_read() {
    let (clock, store, [one, _]) = two_nodes();
    let key = RecordKey(format!("(rooms)/{:016x}/settings", 7));
    let known = store.load(&key).await.unwrap().expected();
    for (name, value) in [
        ("berlin/2", &br#"{"form":0}"#[..]),
        ("berlin/1", br#"{"form":0,"serves":null}"#),
        ("paris/1", br#"{"form":7,"later":true}"#),
        ("rome/1", b"unreadable"),
    ] {
        let note = Note {
            name: name.to_owned(),
            value: value.to_vec(),
        };
        store.load_changed(&key, known, Some(&note)).await.unwrap();
    }
    let refused = write(&one.rooms, "a", Some(room("a", "/a", "")), true).await;
    let Err(ChangeError::Rejected(refused)) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(
        refused.to_string(),
        "these nodes cannot read rooms of form 1: berlin/1, berlin/2; update them, or stop them \
         and wait 15 s"
    );
    assert_eq!(store.load(&key).await.unwrap().record, None);
    clock.advance(DurationMs::from_secs(15));
    assert_eq!(applied(&one, "a", "/a").await, of(1, 1));
}

#[tokio::test(start_paused = true)]
async fn the_ledgers_of_deleted_rooms_end() {
    let (clock, store, [mut one, other]) = two_nodes();
    applied(&one, "a", "/a").await;
    applied(&one, "b", "/b").await;
    other.rooms.read().await;
    write(&one.rooms, "a", None, false).await.unwrap();
    other.rooms.read().await;
    other.rooms.read().await;
    for node in [&one, &other] {
        assert_eq!(*node.machine.ended.lock(), ["a"]);
    }
    // A process that begins later does it once more: nobody may have been there.
    one.restart(&clock).await;
    assert_eq!(*one.machine.ended.lock(), ["a", "a"]);
    drop(store);
}

#[tokio::test(start_paused = true)]
async fn a_damaged_copy_and_an_empty_store_are_not_taken_for_no_rooms() {
    let (clock, store, [mut one, other]) = two_nodes();
    applied(&one, "a", "/a").await;
    let copy = one.machine.copy.lock().clone();
    *one.machine.copy.lock() = Some("{}".to_owned());
    let kept = store.records();
    store.wipe();
    one.restart(&clock).await;
    assert!(!one.machine.is_known.load(Ordering::Relaxed));
    let watching = tokio::spawn(Arc::clone(&one.rooms).watch());
    tokio::time::sleep(Duration::from_secs(3)).await; // tidy: paused time
    assert_eq!(
        one.machine.copy.lock().as_deref(),
        Some("{}"),
        "it stays for its owner"
    );
    assert!(!one.machine.is_known.load(Ordering::Relaxed));
    // Another node, which knows the rooms, gives them back to the store.
    store.lose_since(kept);
    drop(other);
    tokio::time::sleep(Duration::from_secs(2)).await; // tidy: paused time
    assert!(one.machine.is_known.load(Ordering::Relaxed));
    assert_eq!(*one.machine.served.lock(), ["a"]);
    assert_ne!(one.machine.copy.lock().as_deref(), Some("{}"));
    watching.abort();
    // A whole copy is enough.
    *one.machine.copy.lock() = copy;
    store.wipe();
    one.restart(&clock).await;
    assert_eq!(*one.machine.served.lock(), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn the_copy_of_a_data_center_ends_31_days_after_it_was_confirmed() {
    let clock = Arc::new(HandClock::new(Timestamp(1_700_000_000_000)));
    let memory = || Memory::new(Arc::clone(&clock) as Arc<dyn Clock>);
    let (store, local) = (memory(), memory());
    let node = TestNode::start(&store, Some(&local), &clock);
    let watching = tokio::spawn(Arc::clone(&node.rooms).watch());
    settle().await;
    applied(&node, "a", "/a").await;
    settle().await;
    assert_eq!(local.records().len(), 1);
    clock.advance(DurationMs(DELETED_FOR.0 - 1));
    tokio::time::sleep(Duration::from_secs(3_601)).await; // tidy: paused time
    clock.advance(DurationMs(DELETED_FOR.0 - 1));
    assert!(
        local
            .load(&RecordKey("any".to_owned()))
            .await
            .unwrap()
            .record
            .is_none()
    );
    assert_eq!(local.records().len(), 1, "it was confirmed in between");
    node.global.is_cut.store(true, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(7_202)).await; // tidy: paused time
    clock.advance(DurationMs(2));
    local.load(&RecordKey("any".to_owned())).await.unwrap();
    assert_eq!(local.records().len(), 0);
    watching.abort();
}
