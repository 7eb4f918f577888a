//! Rooms of the API: in force at all nodes, back after a loss of the store, never half changed.

use anteroom_testkit::redis_server::Reply as RedisReply;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::{Nodes, TOKEN, VIEWER, room};
use crate::support::client::Client;
use crate::support::eventually;

/// Returns the room that queued or admitted a request, by the name of the cookie's room.
async fn status_at(nodes: &Nodes, node: usize, path: &str) -> StatusCode {
    let mut client = Client::new(nodes.gateways[node].address);
    let headers = [("host", "shop.example"), ("accept", "text/html")];
    client.send(Method::GET, path, &headers, "").await.status
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_room_is_in_force_at_all_nodes_and_survives_its_store() {
    let mut nodes = Nodes::start().await;
    let rooms = nodes.rooms().await;
    let closed = json!({ "queueing_method": "reject", "queueing_status_code": 503 });
    let mut body = room("sale", "/sale");
    body.as_object_mut()
        .unwrap()
        .extend(closed.as_object().unwrap().clone());
    let made = nodes.call(0, Method::POST, &rooms, body).await;
    assert_eq!(made.status, StatusCode::OK, "{}", made.body);
    eventually("the room is in force at the other node", || async {
        status_at(&nodes, 1, "/sale").await == StatusCode::SERVICE_UNAVAILABLE
    })
    .await;
    assert_eq!(
        status_at(&nodes, 0, "/sale/x").await,
        StatusCode::SERVICE_UNAVAILABLE
    );
    assert_eq!(status_at(&nodes, 0, "/other").await, StatusCode::OK);

    // The store loses everything: the nodes restore the room.
    assert_eq!(
        nodes.redis.send(&["FLUSHALL"]).await,
        RedisReply::Simple("OK".to_owned())
    );
    eventually("the room is in the store again", || async {
        let keys = nodes.redis.send(&["KEYS", "*(rooms)*/settings*"]).await;
        matches!(keys, RedisReply::Array(keys) if !keys.is_empty())
    })
    .await;
    // A node that starts without its store has a copy.
    let second = nodes.gateways.remove(1);
    second.kill().await;
    nodes.redis.kill();
    let second = nodes.start_node(1).await;
    nodes.gateways.push(second);
    assert_eq!(
        status_at(&nodes, 1, "/sale").await,
        StatusCode::SERVICE_UNAVAILABLE
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writers_do_not_overwrite_each_other_and_mistakes_change_nothing() {
    let nodes = Nodes::start().await;
    let rooms = nodes.rooms().await;
    let made = nodes
        .call(0, Method::POST, &rooms, room("sale", "/sale"))
        .await;
    let path = format!("{rooms}/{}", made.id());
    let seen = nodes.call(1, Method::GET, &path, Value::Null).await;
    let tag = seen.tag.unwrap();
    let edit = |users: u32| json!({ "total_active_users": users }).to_string();
    let with_tag = [
        ("authorization", format!("Bearer {TOKEN}")),
        ("if-match", tag),
    ];
    let first = nodes.call_with(0, Method::PATCH, &path, &with_tag, edit(300));
    assert_eq!(first.await.status, StatusCode::OK);
    let second = nodes.call_with(1, Method::PATCH, &path, &with_tag, edit(400));
    let second = second.await;
    assert_eq!(
        second.status,
        StatusCode::PRECONDITION_FAILED,
        "{}",
        second.body
    );
    assert_eq!(second.body["success"], false);
    // Two writers that make a room at once get one each, or one of them a refusal.
    let (left, right) = tokio::join!(
        nodes.call(0, Method::POST, &rooms, room("left", "/same")),
        nodes.call(1, Method::POST, &rooms, room("right", "/same")),
    );
    let mut statuses = [left.status, right.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [StatusCode::OK, StatusCode::BAD_REQUEST]);
    let wrong = json!({ "total_active_users": 0, "session_duration": "soon", "nonsense": 1 });
    let refused = nodes.call(0, Method::PATCH, &path, wrong).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    let errors = refused.body["errors"].as_array().unwrap();
    let pointers: Vec<_> = errors
        .iter()
        .map(|error| &error["source"]["pointer"])
        .collect();
    assert_eq!(pointers, ["/total_active_users", "/session_duration"]);
    let found = nodes.call(1, Method::GET, &path, Value::Null).await;
    assert_eq!(found.body["result"]["total_active_users"], 300);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_are_bounded_and_need_a_role() {
    let nodes = Nodes::start().await;
    let rooms = nodes.rooms().await;
    let viewer = [("authorization", format!("Bearer {VIEWER}"))];
    let read = nodes.call_with(0, Method::GET, &rooms, &viewer, String::new());
    assert_eq!(read.await.status, StatusCode::OK);
    let body = room("sale", "/sale").to_string();
    let refused = nodes
        .call_with(0, Method::POST, &rooms, &viewer, body)
        .await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    assert_eq!(refused.body["errors"][0]["code"], 10_000);
    let nobody = nodes
        .call_with(0, Method::GET, &rooms, &[], String::new())
        .await;
    assert_eq!(nobody.status, StatusCode::UNAUTHORIZED);
    let admin = [("authorization", format!("Bearer {TOKEN}"))];
    let large = format!("{{\"description\": \"{}\"}}", "x".repeat(2 * 1024 * 1024));
    let refused = nodes
        .call_with(0, Method::POST, &rooms, &admin, large)
        .await;
    assert_eq!(refused.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(refused.body["success"], false);
    for body in ["", "[]", "{", "nothing"] {
        let refused = nodes
            .call_with(0, Method::POST, &rooms, &admin, body.to_owned())
            .await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{body}");
        assert_eq!(refused.body["errors"][0]["code"], 1_002);
    }
    let unknown = nodes
        .call(0, Method::GET, "/zones/x/nothing", Value::Null)
        .await;
    assert_eq!(
        (unknown.status, &unknown.body["errors"][0]["code"]),
        (StatusCode::NOT_FOUND, &json!(7_003))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_room_with_waiting_visitors_is_suspended_before_it_is_deleted() {
    let nodes = Nodes::start().await;
    let rooms = nodes.rooms().await;
    let mut body = room("sale", "/sale");
    body["queue_all"] = json!(true);
    let made = nodes.call(0, Method::POST, &rooms, body).await;
    let path = format!("{rooms}/{}", made.id());
    let visitor = Mutex::new(Client::new(nodes.gateways[0].address));
    eventually("a visitor waits", || async {
        let headers = [("host", "shop.example"), ("accept", "text/html")];
        let mut visitor = visitor.lock().await;
        visitor.send(Method::GET, "/sale", &headers, "").await;
        let status = nodes
            .call(0, Method::GET, &format!("{path}/status"), Value::Null)
            .await;
        status.body["result"]["estimated_queued_users"].as_u64() > Some(0)
    })
    .await;
    let refused = nodes.call(0, Method::DELETE, &path, Value::Null).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.body);
    let message = refused.body["errors"][0]["message"].as_str().unwrap();
    assert!(
        message.ends_with("people wait: suspend the room first"),
        "{message}"
    );
    // A new name keeps the room: its visitors, its ledger.
    let renamed = nodes
        .call(0, Method::PATCH, &path, json!({ "name": "sale-2" }))
        .await;
    assert_eq!(renamed.status, StatusCode::OK);
    let status = nodes
        .call(0, Method::GET, &format!("{path}/status"), Value::Null)
        .await;
    assert!(status.body["result"]["estimated_queued_users"].as_u64() > Some(0));
    nodes
        .call(0, Method::PATCH, &path, json!({ "suspended": true }))
        .await;
    let deleted = nodes.call(0, Method::DELETE, &path, Value::Null).await;
    assert_eq!(deleted.status, StatusCode::OK, "{}", deleted.body);
    assert_eq!(status_at(&nodes, 0, "/sale").await, StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_would_harm_other_rooms_is_refused() {
    let nodes = Nodes::start().await;
    let rooms = nodes.rooms().await;
    let old = nodes
        .call(0, Method::POST, &rooms, room("old", "/old"))
        .await;
    let new = nodes
        .call(0, Method::POST, &rooms, room("new", "/new"))
        .await;
    let old_path = format!("{rooms}/{}", old.id());
    // An older room cannot take what a newer one has, and a path has to match some request.
    for (change, pointer) in [
        (json!({ "name": "new" }), "/name"),
        (json!({ "path": "/new" }), "/path"),
        (json!({ "path": "/a%c0%af" }), "/path"),
        (json!({ "host": "blog.example" }), "/host"),
    ] {
        let refused = nodes.call(1, Method::PATCH, &old_path, change).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{}", refused.body);
        assert_eq!(refused.body["errors"][0]["source"]["pointer"], pointer);
    }
    let rules = format!("{old_path}/rules");
    let deep = format!("{}true{}", "(".repeat(1_000), ")".repeat(1_000));
    let rule = json!({ "action": "bypass_waiting_room", "expression": deep });
    let refused = nodes.call(1, Method::POST, &rules, rule).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{}", refused.body);
    assert_eq!(
        refused.body["errors"][0]["source"]["pointer"],
        "/expression"
    );
    let viewer = [("authorization", format!("Bearer {VIEWER}"))];
    let refused = nodes.call_with(0, Method::GET, &rules, &viewer, String::new());
    assert_eq!(refused.await.status, StatusCode::FORBIDDEN);
    // The same request twice at once makes one room, at one node or two.
    let (left, right) = tokio::join!(
        nodes.call(0, Method::POST, &rooms, room("twice", "/twice")),
        nodes.call(1, Method::POST, &rooms, room("twice", "/twice")),
    );
    assert_eq!(
        (left.status, right.status),
        (StatusCode::OK, StatusCode::OK)
    );
    assert_eq!(left.id(), right.id());
    let path = format!("{rooms}/{}", new.id());
    let found = nodes.call(1, Method::GET, &path, Value::Null).await;
    assert_eq!(found.body["messages"], json!([]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_file_takes_precedence_and_gives_back() {
    let nodes = Nodes::start().await;
    let rooms = nodes.rooms().await;
    let mut closed = room("sale", "/sale");
    closed["queueing_method"] = json!("reject");
    closed["queueing_status_code"] = json!(503);
    let made = nodes.call(0, Method::POST, &rooms, closed).await;
    let path = format!("{rooms}/{}", made.id());
    let file = nodes.file(0);
    let text = std::fs::read_to_string(&file).unwrap();
    let reload = async |text: &str, status: StatusCode| {
        std::fs::write(&file, text).unwrap();
        nodes.gateways[0].signal("HUP");
        eventually("the file is in force", || async {
            status_at(&nodes, 0, "/sale").await == status
        })
        .await;
    };
    let taken = format!(
        "{text}[[room]]\nname = \"of-the-file\"\nhost = \"shop.example\"\npath = \"/sale\"\n\
         total_active_users = 50\nnew_users_per_minute = 30\nbypass = []\n"
    );
    reload(&taken, StatusCode::OK).await;
    let found = nodes.call(0, Method::GET, &path, Value::Null).await;
    let message = found.body["messages"][0]["message"].as_str().unwrap();
    assert!(message.contains("\"of-the-file\" of the file"), "{message}");
    reload(&text, StatusCode::SERVICE_UNAVAILABLE).await;
    // A site with another name has the same rooms.
    let renamed = text.replace("name = \"shop\"", "name = \"store\"");
    reload(&renamed, StatusCode::SERVICE_UNAVAILABLE).await;
    eventually(
        "the room is in the zone of the site that serves it",
        || async {
            let zones = nodes
                .call(0, Method::GET, "/zones?name=store", Value::Null)
                .await;
            let Some(zone) = zones.body["result"][0]["id"].as_str() else {
                return false;
            };
            let path = format!("/zones/{zone}/waiting_rooms/{}", made.id());
            let found = nodes.call(0, Method::PATCH, &path, json!({ "description": "x" }));
            found.await.status == StatusCode::OK
        },
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_without_store_and_copy_lets_nothing_pass_and_says_so() {
    let mut nodes = Nodes::start().await;
    let rooms = nodes.rooms().await;
    nodes
        .call(0, Method::POST, &rooms, room("sale", "/sale"))
        .await;
    nodes.gateways.remove(1).kill().await;
    let folder = nodes.temp.path().join("data-1");
    eventually("the copy is there", || async {
        folder.join("api-rooms").exists()
    })
    .await;
    std::fs::remove_file(folder.join("api-rooms")).unwrap();
    nodes.redis.kill();
    let second = nodes.start_node(1).await;
    nodes.gateways.push(second);
    for path in ["/", "/sale", "/.anteroom/position?room=sale"] {
        let status = status_at(&nodes, 1, path).await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{path}");
    }
    let list = nodes.call(1, Method::GET, &rooms, Value::Null).await;
    assert_eq!(list.status, StatusCode::SERVICE_UNAVAILABLE);
    let mut client = Client::new(nodes.gateways[1].admin);
    let ready = client.get("/readyz").await;
    assert_eq!(
        ready.status,
        StatusCode::SERVICE_UNAVAILABLE,
        "{}",
        ready.text()
    );
    nodes.redis.restart().await;
    eventually("the node knows its rooms", || async {
        status_at(&nodes, 1, "/").await == StatusCode::OK
    })
    .await;
}
