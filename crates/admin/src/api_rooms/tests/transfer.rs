//! Export and import.

use super::*;

fn one_node() -> (Arc<HandClock>, TestNode) {
    let clock = Arc::new(HandClock::new(Timestamp(1_700_000_000_000)));
    let store = Memory::new(Arc::clone(&clock) as Arc<dyn Clock>);
    let node = TestNode::start(&store, None, &clock);
    (clock, node)
}

fn with_page(name: &str, path: &str) -> ApiRoom {
    let mut room = room(name, path, "");
    let page = json!(format!("<p>{name}</p>"));
    room.values.insert("custom_page_html".to_owned(), page);
    room
}

async fn import(
    node: &TestNode,
    document: &RoomsDocument,
    mode: ImportMode,
) -> Result<Imported, ImportError> {
    node.rooms.import(&who(), document.clone(), mode).await
}

fn kinds(imported: &Imported) -> Vec<(&str, ImportKind)> {
    let rooms = imported.rooms.iter();
    rooms.map(|room| (room.name.as_str(), room.kind)).collect()
}

#[tokio::test(start_paused = true)]
async fn what_was_exported_can_be_imported_elsewhere() {
    let (_, node) = one_node();
    for (id, path) in [("a", "/a"), ("b", "/b")] {
        write(&node.rooms, id, Some(with_page(id, path)), true)
            .await
            .unwrap();
    }
    let document = node.rooms.export().await.unwrap();
    // As a file has it.
    let text = serde_json::to_string(&document).unwrap();
    let document: RoomsDocument = serde_json::from_str(&text).unwrap();
    assert_eq!(document.pages.len(), 2);
    let (_, other) = one_node();
    let previewed = import(&other, &document, ImportMode::Preview)
        .await
        .unwrap();
    let created = [("a", ImportKind::Created), ("b", ImportKind::Created)];
    assert_eq!(kinds(&previewed), created);
    assert_eq!(
        other.rooms.record().rooms.len(),
        0,
        "a preview writes nothing"
    );
    let imported = import(&other, &document, ImportMode::Write).await.unwrap();
    assert_eq!(kinds(&imported), created);
    assert_eq!(imported.applied, Some(Applied { nodes: 1, of: 1 }));
    assert_eq!(*other.machine.shown.lock(), *node.machine.shown.lock());
    assert_eq!(other.rooms.export().await.unwrap(), document);
    let entries = other.rooms.log().await.unwrap().entries;
    let whats: Vec<&str> = entries.iter().map(|entry| &*entry.what).collect();
    assert_eq!(whats, ["rooms import"], "one change");
    let again = import(&other, &document, ImportMode::Write).await.unwrap();
    let unchanged = [("a", ImportKind::Unchanged), ("b", ImportKind::Unchanged)];
    assert_eq!(kinds(&again), unchanged);
    assert_eq!(other.rooms.record().version, 1);
}

#[tokio::test(start_paused = true)]
async fn an_import_replaces_rooms_of_the_same_id_and_leaves_others() {
    let (_, node) = one_node();
    for (id, path) in [("a", "/a"), ("b", "/b"), ("c", "/c")] {
        write(&node.rooms, id, Some(room(id, path, "")), true)
            .await
            .unwrap();
    }
    let mut document = node.rooms.export().await.unwrap();
    document.rooms.remove("c");
    // Two rooms may change places.
    document.rooms.insert("a".to_owned(), room("b", "/b", ""));
    document.rooms.insert("b".to_owned(), with_page("a", "/a"));
    let imported = import(&node, &document, ImportMode::Write).await.unwrap();
    assert_eq!(
        kinds(&imported),
        [("b", ImportKind::Replaced), ("a", ImportKind::Replaced)]
    );
    let keys: Vec<&str> = imported.rooms[0]
        .changes
        .iter()
        .map(|change| &*change.key)
        .collect();
    assert_eq!(keys, ["name", "path"]);
    assert_eq!(node.rooms.record().present().len(), 3);
    assert_eq!(node.machine.shown.lock()["a"], "<p>a</p>");
}

#[tokio::test(start_paused = true)]
async fn an_import_is_checked_like_every_change_and_is_all_or_nothing() {
    let (_, node) = one_node();
    write(&node.rooms, "a", Some(room("sale", "/x", "")), true)
        .await
        .unwrap();
    let document = RoomsDocument {
        form: 1,
        rooms: [("b", room("b", "/b", "")), ("c", room("c", "/x", ""))]
            .map(|(id, room)| (id.to_owned(), room))
            .into(),
        pages: BTreeMap::new(),
    };
    for mode in [ImportMode::Preview, ImportMode::Write] {
        let refused = import(&node, &document, mode).await;
        let Err(ImportError::Change(ChangeError::Rejected(RoomRefusal::NotAllowed(problems)))) =
            refused
        else {
            panic!("{refused:?}");
        };
        assert_eq!(
            problems[0].to_string(),
            "room \"c\": path: the room \"sale\" covers shop.example /x already"
        );
    }
    assert_eq!(node.rooms.record().rooms.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_document_is_refused_with_its_mistake() {
    let (_, node) = one_node();
    let check = async |change: fn(&mut RoomsDocument), expected: &str| {
        let mut document = RoomsDocument {
            form: 1,
            rooms: BTreeMap::new(),
            pages: BTreeMap::new(),
        };
        change(&mut document);
        let refused = import(&node, &document, ImportMode::Write).await;
        assert_eq!(refused.unwrap_err().to_string(), expected);
    };
    check(
        |document| document.form = 2,
        "the document has form 2, and this program reads form 1",
    )
    .await;
    check(
        |document| {
            document.pages.insert("00".to_owned(), "<p>".to_owned());
        },
        "the page 00 has another digest: the document is damaged, or was edited there",
    )
    .await;
    check(
        |document| {
            document.rooms.insert("a/b".to_owned(), room("a", "/a", ""));
        },
        "\"a/b\" cannot be the id of a room",
    )
    .await;
    check(
        |document| {
            let mut room = room("a", "/a", "");
            let reference = json!({ "sha256": "00" });
            room.values.insert("custom_page_html".to_owned(), reference);
            document.rooms.insert("a".to_owned(), room);
        },
        "the rooms were not imported",
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_does_not_know_the_rooms_exports_nothing() {
    let (_, node) = one_node();
    node.global.is_cut.store(true, Ordering::Relaxed);
    assert_eq!(node.rooms.export().await, Err(ExportError::NotKnown));
}
