//! Rooms of the API beside those of a file, and merges of their records.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{Checks, Config};

fn config(rooms: &str) -> Config {
    let text = format!(
        "[[site]]\nname = \"shop\"\nhosts = [\"shop.example\", \"www.example\"]\n\
         origin = \"http://127.0.0.1:3000\"\n{rooms}"
    );
    Config::parse("anteroom.toml", &text).unwrap().config
}

fn api_room(created_at: u64, values: Value) -> ApiRoom {
    let Value::Object(mut values) = values else {
        panic!("an object");
    };
    for key in ["total_active_users", "new_users_per_minute"] {
        values.entry(key).or_insert_with(|| json!(10));
    }
    ApiRoom {
        created_at,
        values,
        ..ApiRoom::default()
    }
}

fn record(rooms: &[(&str, ApiRoom)]) -> ApiRooms {
    let mut record = ApiRooms::default();
    for (id, room) in rooms {
        let at = record.time_of_change(Timestamp(room.created_at));
        record = record.with(&RoomId::new(id).unwrap(), Some(room.clone()), at);
    }
    record
}

fn names(placed: &PlacedRooms) -> Vec<&str> {
    placed.rooms.iter().map(|room| room.name.as_str()).collect()
}

fn why(placed: &PlacedRooms, id: &str) -> Vec<String> {
    let left_out = &placed.left_out[&RoomId::new(id).unwrap()];
    left_out.problems.iter().map(ToString::to_string).collect()
}

#[test]
fn a_room_of_the_api_is_read_by_the_rules_of_the_file() {
    let values = json!({
        "name": "sale", "host": "shop.example", "path": "/sale", "session_duration": "10m",
        "additional_routes": [{"host": "www.example", "path": "/sale"}],
        "cookie_attributes": {"samesite": "none", "secure": "always"},
    });
    let event = json!({
        "name": "x", "event_start_time": "2030-01-01T10:00:00Z",
        "steps": [{"after": "1m", "new_users_per_minute": 20}],
    });
    let rule = |expression: &str, enabled| ApiRule {
        expression: expression.to_owned(),
        enabled,
        ..ApiRule::default()
    };
    let room = ApiRoom {
        events: vec![ApiEvent {
            values: event.as_object().cloned().unwrap(),
            ..ApiEvent::default()
        }],
        rules: vec![rule("path == \"/a\"", true), rule("path == \"/b\"", false)],
        ..api_room(1, values)
    };
    let placed = record(&[("a1", room)]).beside(&config(""), &Pages::new(), Checks::default());
    assert_eq!(placed.left_out, BTreeMap::new());
    let [room] = &placed.rooms[..] else {
        panic!("one room")
    };
    assert_eq!((room.id.as_str(), room.name.as_str()), ("a1", "sale"));
    assert_eq!(room.origin_owner().name(), "shop");
    let counts = (room.routes.len(), room.events.len(), room.bypass.len());
    assert_eq!(counts, (2, 1, 1));
    assert_eq!(room.rules.session_duration.0, 600_000);
}

#[test]
fn a_room_with_mistakes_is_left_out_and_the_others_are_served() {
    let check = |values: Value, expected: &[&str]| {
        let rooms = [
            (
                "good",
                api_room(1, json!({"name": "good", "host": "shop.example"})),
            ),
            ("bad", api_room(2, values)),
        ];
        let placed = record(&rooms).beside(&config(""), &Pages::new(), Checks::default());
        assert_eq!(names(&placed), ["good"]);
        assert_eq!(why(&placed, "bad"), expected);
    };
    check(
        json!({"name": "bad", "host": "other.example"}),
        &[
            "room \"bad\": host: no [[site]] serves other.example; a room of the API needs a \
             [[site]] of the file",
        ],
    );
    check(
        json!({"name": "bad", "host": "www.example", "origin": "http://10.0.0.1"}),
        &["room \"bad\": origin: a room of the API has the origins of its site"],
    );
    check(
        json!({"name": "bad", "host": "www.example", "custom_page_file": "/etc/passwd"}),
        &["room \"bad\": custom_page_file: only the configuration file sets this"],
    );
    check(
        json!({"name": "bad", "host": "www.example", "page": {"logo": "logo.svg"}}),
        &["room \"bad\": page.logo: only the configuration file sets this"],
    );
    check(
        json!({"name": "bad", "host": "www.example", "event": [], "bypass": ["true"]}),
        &[
            "room \"bad\": event: a room of the API has its events in \"events\"",
            "room \"bad\": bypass: a room of the API has its rules in \"rules\"",
        ],
    );
    check(
        json!({"name": "bad", "host": "www.example", "total_active_users": 0}),
        &[
            "room \"bad\": total_active_users: found 0, allowed: an integer from 1 to \
           2147483647",
        ],
    );
    check(
        json!({"name": "good", "host": "www.example"}),
        &["room \"good\": name: the room \"good\" has this name"],
    );
    check(
        json!({"name": "bad", "host": "www.example",
               "additional_routes": [{"host": "shop.example"}]}),
        &[
            "room \"bad\": additional_routes[1].path: the room \"good\" covers shop.example / \
           already",
        ],
    );
}

#[test]
fn a_room_of_the_file_wins_over_one_of_the_api() {
    let file = config(
        "[[room]]\nname = \"sale\"\nhost = \"shop.example\"\ntotal_active_users = 1\n\
         new_users_per_minute = 1\nbypass = []\n",
    );
    let rooms = [
        (
            "a1",
            api_room(1, json!({"name": "sale", "host": "www.example"})),
        ),
        (
            "a2",
            api_room(2, json!({"name": "later", "host": "www.example"})),
        ),
        (
            "sale",
            api_room(
                3,
                json!({"name": "same-id", "host": "www.example", "path": "/x"}),
            ),
        ),
    ];
    let placed = record(&rooms).beside(&file, &Pages::new(), Checks::default());
    // A room that is left out claims nothing.
    assert_eq!(names(&placed), ["later"]);
    assert!(
        placed
            .left_out
            .values()
            .all(|left_out| left_out.is_shadowed)
    );
    assert_eq!(
        why(&placed, "a1"),
        ["room \"sale\": name: the room \"sale\" of the file has this name"]
    );
    assert_eq!(
        why(&placed, "sale"),
        ["room \"same-id\": name: the room \"sale\" of the file has this room's id"]
    );
}

#[test]
fn marks_of_deleted_rooms_stay_for_31_days() {
    let room = |name: &str| api_room(1, json!({"name": name, "host": "shop.example"}));
    let record = record(&[("a", room("a")), ("b", room("b"))]);
    let id = |text: &str| RoomId::new(text).unwrap();
    let deleted = record.with(&id("a"), None, 1_000);
    assert!(deleted.room(&id("a")).is_none());
    assert_eq!(deleted.rooms["a"].tag(), "2-1000");
    // The older record does not bring it back, in any order.
    assert_eq!(record.merged(&deleted), deleted);
    assert_eq!(deleted.merged(&record), deleted);
    let day_31 = 1_000 + DELETED_FOR.0;
    let later = deleted.with(&id("c"), Some(room("c")), day_31 - 1);
    assert!(later.rooms.contains_key("a"));
    let later = deleted.with(&id("c"), Some(room("c")), day_31);
    assert!(!later.rooms.contains_key("a"));
}

#[test]
fn fields_of_later_programs_are_kept() {
    let bytes = br#"{"form":1,"version":1,"news":[1],"rooms":{"a":{"rev":1,"at":5,"more":"x",
        "room":{"createdAt":5,"values":{"name":"a"},"seasons":[]}}}}"#;
    let record = ApiRooms::decode(bytes).unwrap();
    let text = String::from_utf8(record.encode()).unwrap();
    for kept in ["\"news\":[1]", "\"more\":\"x\"", "\"seasons\":[]"] {
        assert!(text.contains(kept), "{text}");
    }
    assert!(ApiRooms::decode(br#"{"form":2,"version":1}"#).is_err());
}

/// Change of a test: the room, the time, and whether the room is deleted.
type Made = (u8, u64, bool);

fn record_of(changes: &[Made]) -> ApiRooms {
    let mut record = ApiRooms::default();
    for (room, at, is_deleted) in changes {
        let id = RoomId::new(&format!("room-{}", room % 4)).unwrap();
        let values = json!({"name": format!("n{at}")});
        let room = (!is_deleted).then(|| api_room(*at, values));
        let at = record.time_of_change(Timestamp(*at));
        record = record.with(&id, room, at);
        record.version += 1;
    }
    record
}

proptest! {
    #[test]
    fn merges_agree_in_any_order(
        one: Vec<Made>, two: Vec<Made>, three: Vec<Made>,
    ) {
        let [one, two, three] = [one, two, three].map(|changes| {
            let changes: Vec<Made> =
                changes.into_iter().map(|(room, at, gone)| (room, at % 1_000, gone)).collect();
            record_of(&changes)
        });
        // Two writers never make one revision at one time: the store's clock and its swap order
        // them. Where a test does, neither is newer.
        let is_tie = |one: &ApiRooms, two: &ApiRooms| one.rooms.iter().any(|(id, entry)| {
            two.rooms.get(id).is_some_and(|other| {
                entry.recency() == other.recency() && entry != other
            })
        });
        prop_assume!(!is_tie(&one, &two) && !is_tie(&two, &three) && !is_tie(&one, &three));
        let merged = one.merged(&two);
        prop_assert_eq!(&merged.rooms, &two.merged(&one).rooms);
        prop_assert_eq!(&merged.merged(&three).rooms, &one.merged(&two.merged(&three)).rooms);
        prop_assert_eq!(&merged.merged(&merged), &merged);
        // A merge has everything, and nothing has more.
        for part in [&one, &two] {
            prop_assert!(!part.is_newer_than(&merged));
        }
        let adds_nothing = !one.is_newer_than(&two);
        prop_assert_eq!(adds_nothing, one.merged(&two).rooms == two.rooms);
    }
}

#[test]
fn pages_of_rooms_and_events_are_taken_out_and_put_back() {
    let event = |id: &str, page: &str| ApiEvent {
        id: id.to_owned(),
        values: json!({ "custom_page_html": page })
            .as_object()
            .cloned()
            .unwrap(),
        ..ApiEvent::default()
    };
    let with = |own: &str, of_event: &str| ApiRoom {
        events: vec![event("e", of_event)],
        ..api_room(1, json!({ "name": "sale", "custom_page_html": own }))
    };
    let name_of = |text: &str| format!("digest of {text}");
    let mut before = with("own 1", "event 1");
    let mut next = with("own 2", "event 2");
    let mut pages = before.take_pages(name_of);
    pages.extend(next.take_pages(name_of));
    let names: Vec<&str> = next.page_names().collect();
    assert_eq!(names, ["digest of own 2", "digest of event 2"]);
    assert_eq!(next.with_pages(&pages), with("own 2", "event 2"));
    // A page that cannot be read: each place keeps the page that it had.
    pages.remove("digest of event 2");
    let shown = next.with_readable_pages(Some(&before), &pages);
    assert_eq!(shown.with_pages(&pages), with("own 2", "event 1"));
    let without = next.with_readable_pages(None, &pages).with_pages(&pages);
    assert_eq!(without.events[0].values, Map::new());
    assert_eq!(next.with_known_pages(&pages).page_names().count(), 1);
    // An empty text is no page, but a mistake of its sender.
    let mut empty = with("", "event 1");
    assert_eq!(empty.take_pages(name_of).len(), 1);
    assert_eq!(empty.values["custom_page_html"], json!(""));
}
