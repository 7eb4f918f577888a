//! `/api/v1` and the commands on it, at two gateways on one Redis.

use std::fs;

use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::{Nodes, TOKEN};
use crate::support::client::Client;
use crate::support::command::{Ended, run};

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

impl Nodes {
    /// Imports the room that was deleted, after a preview.
    async fn import(&self, export: &str) {
        let file = self.temp.path().join("rooms.json").display().to_string();
        fs::write(&file, export).unwrap();
        let preview = ["room", "import", &file, "--dry-run"];
        let preview = self.succeed(0, &preview).await;
        assert!(preview.contains("room sale: would be created"), "{preview}");
        let listed = self.succeed(0, &words("room list")).await;
        assert!(!listed.contains("sale"), "{listed}");
        let done = self.succeed(0, &["room", "import", &file]).await;
        assert!(done.contains("room sale: created"), "{done}");
        let again = self.succeed(1, &["room", "import", &file]).await;
        assert!(again.contains("room sale: as it is already"), "{again}");
    }

    /// Runs a command at one node with the token of an admin.
    pub(super) async fn command(&self, node: usize, words: &[&str]) -> Ended {
        let admin = self.gateways[node].admin.to_string();
        let tokens = self.temp.path().join("tokens").display().to_string();
        let more = ["--admin", &admin, "--token-file", &tokens];
        run(&[words, &more].concat()).await
    }

    /// Runs a command that must succeed.
    pub(super) async fn succeed(&self, node: usize, words: &[&str]) -> String {
        let ended = self.command(node, words).await;
        assert_eq!(ended.code, Some(0), "{words:?}: {}{}", ended.out, ended.err);
        ended.out
    }

    /// Runs a command that is not allowed.
    pub(super) async fn refuse(&self, node: usize, words: &[&str], parts: &[&str]) {
        let ended = self.command(node, words).await;
        assert_eq!(ended.code, Some(2), "{words:?}: {}{}", ended.out, ended.err);
        for part in parts {
            assert!(ended.err.contains(part), "{words:?}: {part}: {}", ended.err);
        }
    }

    async fn v1(
        &self,
        node: usize,
        method: Method,
        path: &str,
        body: &Value,
    ) -> (StatusCode, Value) {
        let path = format!("/api/v1/{path}");
        let token = format!("Bearer {TOKEN}");
        let headers = [("authorization", &*token)];
        let mut client = Client::new(self.gateways[node].admin);
        let body = match body {
            Value::Null => String::new(),
            body => body.to_string(),
        };
        let response = client.send(method, &path, &headers, &body).await;
        let body = serde_json::from_slice(&response.body).unwrap_or(Value::Null);
        (response.status, body)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_room_lives_by_commands_alone() {
    let nodes = Nodes::start().await;
    let create = "room create sale host=shop.example path=/sale total_active_users=200 \
                  new_users_per_minute=200 --description Friday --rule path.startsWith(\"/x\")";
    let made = nodes.succeed(0, &words(create)).await;
    let expected = "room sale at shop.example/sale of site shop";
    assert!(made.contains(expected), "{made}");
    assert!(made.contains("in force at 2 of 2 live nodes"), "{made}");
    let listed = nodes.succeed(1, &words("room list")).await;
    assert!(
        listed.contains("checkout") && listed.contains("sale"),
        "{listed}"
    );
    let event = "room event create sale friday event_start_time=2031-01-31T10:00:00Z \
                 event_end_time=2031-01-31T12:00:00Z total_active_users=900 \
                 new_users_per_minute=600";
    let planned = nodes.succeed(1, &words(event)).await;
    let expected = "event friday: 2031-01-31T10:00:00Z";
    assert!(planned.contains(expected), "{planned}");
    // What will be in force then.
    let then = words("room show sale --at 2031-01-31T11:00:00Z --json");
    let shown: Value = serde_json::from_str(&nodes.succeed(0, &then).await).unwrap();
    let limit = &shown["values"]["total_active_users"];
    assert_eq!(
        (&limit["value"], &limit["from"]),
        (&json!(900), &json!("event"))
    );
    let page = nodes.temp.path().join("page.html").display().to_string();
    let html = "{{#waitTimeKnown}}{{waitTime}} min{{/waitTimeKnown}}";
    fs::write(&page, html).unwrap();
    let edit = ["room", "edit", "sale", "--page", &page];
    nodes.succeed(0, &edit).await;
    let edit = "room event edit sale friday total_active_users=800";
    nodes.succeed(0, &words(edit)).await;
    let listed = nodes.succeed(0, &words("room list --json")).await;
    let rooms: Value = serde_json::from_str(&listed).unwrap();
    let sale = rooms["rooms"].as_array().unwrap().last().unwrap();
    assert_eq!(sale["values"]["name"], "sale");
    assert_eq!(sale["description"], "Friday");
    assert_eq!(sale["events"][0]["total_active_users"], 800);
    assert_eq!(sale["rules"][0]["expression"], "path.startsWith(\"/x\")");
    assert_eq!(sale["values"]["custom_page_html"], html);
    nodes
        .succeed(1, &words("room event delete sale friday"))
        .await;
    let export = nodes.succeed(1, &words("room export")).await;
    nodes.succeed(1, &words("room delete sale")).await;
    let listed = nodes.succeed(0, &words("room list")).await;
    assert!(!listed.contains("sale"), "{listed}");
    nodes.import(&export).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_operator_sets_has_the_end_that_the_command_states() {
    let nodes = Nodes::start().await;
    let set = "room set checkout total_active_users=7 --until";
    let with_end = |end| [set, end].join(" ");
    for (end, parts) in [
        ("yesterday", ["until = \"yesterday\"", "event_end"]),
        ("2020-01-01T00:00:00Z", ["which is over", "event_end"]),
        ("event_end", ["event_end", "no event ahead"]),
    ] {
        nodes.refuse(0, &words(&with_end(end)), &parts).await;
    }
    let shown = nodes.succeed(1, &words("room show checkout")).await;
    assert!(!shown.contains("operator"), "{shown}");
    let end = "2031-01-31T11:00:00+01:00";
    let done = nodes.succeed(0, &words(&with_end(end))).await;
    let expected = "total_active_users=7 until 2031-01-31T10:00:00.000Z";
    assert!(done.contains(expected), "{done}");
    let then = |at| format!("room show checkout --at {at} --json");
    for (at, is_set) in [
        ("2031-01-31T09:59:59Z", true),
        ("2031-01-31T10:00:00Z", false),
    ] {
        let shown = nodes.succeed(0, &words(&then(at))).await;
        let shown: Value = serde_json::from_str(&shown).unwrap();
        let value = &shown["values"]["total_active_users"];
        assert_eq!(value["from"] == json!("operator"), is_set, "{at}: {value}");
    }
    let done = nodes.succeed(0, &words(&with_end("none"))).await;
    assert!(done.contains("total_active_users=7 (file:"), "{done}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mistakes_are_named_together_and_change_nothing() {
    let nodes = Nodes::start().await;
    let wrong = [
        "room",
        "create",
        "sale",
        "host=shop.example",
        "path=/sale",
        "sesion=1",
    ];
    let wrong = [
        &wrong[..],
        &["total_active_users=0", "new_users_per_minute=5"],
    ]
    .concat();
    let parts = ["sesion", "total_active_users", "nothing was changed"];
    nodes.refuse(0, &wrong, &parts).await;
    nodes
        .refuse(
            0,
            &["room", "edit", "checkout", "path=/x"],
            &["configuration file"],
        )
        .await;
    let both = [&nodes.gateways[0], &nodes.gateways[1]].map(|node| node.admin.to_string());
    let twice = run(&["room", "list", "--admin", &both[0], "--admin", &both[1]]).await;
    assert_eq!(twice.code, Some(1));
    assert!(twice.err.contains("name one of them"), "{}", twice.err);

    let body = json!({
        "values": {
            "name": "sale", "host": "shop.example", "path": "/sale",
            "total_active_users": 5, "new_users_per_minute": 5, "custom_page_file": "/etc/passwd",
        },
        "events": [{ "name": "friday", "event_start_time": "soon" }],
        "rules": [{ "expression": "1 +" }],
    });
    let (status, refused) = nodes.v1(0, Method::POST, "rooms", &body).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{refused}");
    let problems = refused["problems"].as_array().unwrap().iter();
    let pointers: Vec<&str> = problems
        .filter_map(|problem| problem["pointer"].as_str())
        .collect();
    for expected in [
        "/values/custom_page_file",
        "/events/0/event_start_time",
        "/rules/0",
    ] {
        assert!(pointers.contains(&expected), "{expected}: {refused}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_mistake_of_a_request_has_its_place() {
    let nodes = Nodes::start().await;
    let odd = json!({ "values": {}, "valuse": {} });
    let (status, refused) = nodes.v1(0, Method::POST, "rooms", &odd).await;
    assert_eq!(
        (status, &refused["error"]),
        (StatusCode::BAD_REQUEST, &json!("not_understood"))
    );
    let problem = &refused["problems"][0];
    assert_eq!(problem["pointer"], "/valuse");
    assert!(problem["message"].as_str().unwrap().contains("valuse"));
    let odd = json!({ "values": [1] });
    let (_, refused) = nodes.v1(0, Method::POST, "rooms", &odd).await;
    assert_eq!(refused["problems"][0]["pointer"], "/values");
    let path = "rooms/checkout/settings?at=soon";
    let (_, refused) = nodes.v1(0, Method::GET, path, &Value::Null).await;
    assert_eq!(refused["problems"][0]["pointer"], "/at");
    let body = json!({ "until": "soon", "total_active_users": 0 });
    let (_, refused) = nodes.v1(0, Method::POST, "rooms/checkout/set", &body).await;
    let pointers = [0, 1].map(|number| &refused["problems"][number]["pointer"]);
    assert_eq!(pointers, ["/until", "/total_active_users"], "{refused}");
    let body = json!({ "key": "zzz" });
    let (_, refused) = nodes
        .v1(0, Method::POST, "rooms/checkout/reset", &body)
        .await;
    assert_eq!(refused["problems"][0]["pointer"], "/key");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_of_rooms_of_the_api_are_undone() {
    let nodes = Nodes::start().await;
    let line = |node, line: &'static str| {
        let nodes = &nodes;
        async move { nodes.succeed(node, &words(line)).await }
    };
    line(
        0,
        "room create sale host=shop.example path=/sale total_active_users=200 \
         new_users_per_minute=200 --rule path.startsWith(\"/x\")",
    )
    .await;
    line(1, "room edit sale total_active_users=300 pacing=false").await;
    let listed = line(0, "room changes").await;
    for part in ["room edit sale", "total_active_users: 200 -> 300"] {
        assert!(listed.contains(part), "{part}: {listed}");
    }
    line(0, "room undo-change 2").await;
    let shown = line(1, "room list --json").await;
    let rooms: Value = serde_json::from_str(&shown).unwrap();
    let values = &rooms["rooms"].as_array().unwrap().last().unwrap()["values"];
    assert_eq!(values["total_active_users"], 200);
    assert_eq!(values["pacing"], Value::Null);
    let again = words("room undo-change 2");
    let is_not = "change 2 is not the newest change of this value";
    let later = "changed it: version 3, room undo 2 sale";
    nodes
        .refuse(1, &again, &["total_active_users", is_not, later])
        .await;
    let created = words("room undo-change 1");
    nodes.refuse(1, &created, &["created the room"]).await;
    let unknown = words("room undo-change 99");
    nodes
        .refuse(
            1,
            &unknown,
            &["no change has version 99; the log has 1 to 3"],
        )
        .await;

    line(1, "room delete sale").await;
    let restored = line(0, "room undo-change 4").await;
    assert!(
        restored.contains("room sale at shop.example/sale"),
        "{restored}"
    );
    let shown = line(1, "room list --json").await;
    let rooms: Value = serde_json::from_str(&shown).unwrap();
    let room = rooms["rooms"].as_array().unwrap().last().unwrap();
    assert_eq!(room["rules"][0]["expression"], "path.startsWith(\"/x\")");
    assert_eq!(room["values"]["new_users_per_minute"], 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_is_undone_unless_it_was_changed_again() {
    let nodes = Nodes::start().await;
    nodes
        .succeed(0, &["room", "set", "checkout", "total_active_users=70"])
        .await;
    nodes
        .succeed(0, &["room", "pause", "checkout", "--message", "Back soon"])
        .await;
    nodes.succeed(0, &["room", "undo", "checkout", "2"]).await;
    let (_, shown) = nodes
        .v1(0, Method::GET, "rooms/checkout/settings", &Value::Null)
        .await;
    assert_eq!(shown["paused"], Value::Null);
    nodes
        .succeed(0, &["room", "set", "checkout", "total_active_users=90"])
        .await;
    let again = [
        "total_active_users",
        "it is now 90",
        "version 4",
        "nothing was changed",
    ];
    nodes
        .refuse(0, &["room", "undo", "checkout", "1"], &again)
        .await;
    nodes.succeed(0, &["room", "undo", "checkout", "4"]).await;
    nodes.succeed(0, &["room", "undo", "checkout", "1"]).await;
    let (_, shown) = nodes
        .v1(0, Method::GET, "rooms/checkout/settings", &Value::Null)
        .await;
    let limit = &shown["values"]["total_active_users"];
    assert_eq!(
        (&limit["value"], &limit["from"]),
        (&json!(50), &json!("file"))
    );
    nodes
        .refuse(
            0,
            &["room", "undo", "checkout", "99"],
            &["no change has version 99", "1 to 6"],
        )
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reload_reports_every_mistake_of_the_file() {
    let nodes = Nodes::start().await;
    let file = nodes.file(0);
    let text = fs::read_to_string(&file).unwrap();
    fs::write(
        &file,
        text.replace("total_active_users = 50", "total_active_users = 60"),
    )
    .unwrap();
    let done = nodes.succeed(0, &["reload"]).await;
    assert!(done.contains("the file is in force"), "{done}");
    let (_, state) = nodes
        .v1(0, Method::GET, "rooms/checkout/state", &Value::Null)
        .await;
    assert_eq!(state["totalActiveUsers"], 60, "{state}");
    let wrong = text.replace("= 50", "= 0").replace("= 30", "= \"x\"");
    fs::write(&file, wrong).unwrap();
    let parts = [
        "total_active_users",
        "new_users_per_minute",
        "stays in force",
    ];
    nodes.refuse(0, &["reload"], &parts).await;
    let (_, state) = nodes
        .v1(0, Method::GET, "rooms/checkout/state", &Value::Null)
        .await;
    assert_eq!(state["totalActiveUsers"], 60, "{state}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_ends_a_session_by_its_code() {
    let nodes = Nodes::start().await;
    let mut visitor = Client::new(nodes.gateways[0].address);
    let headers = [("host", "shop.example"), ("accept", "text/html")];
    let first = visitor.send(Method::GET, "/checkout", &headers, "").await;
    assert_eq!(first.status, StatusCode::OK);
    let id = nodes.origin.last().header("anteroom-visitor").unwrap();
    let code = format!("{}-{}", &id[..4], &id[4..8]).to_uppercase();
    let found = nodes.succeed(0, &["room", "find", "checkout", &code]).await;
    assert!(found.contains("active"), "{found}");
    let elsewhere = ["room", "revoke", "checkout", &code];
    nodes.refuse(1, &elsewhere, &["ask the other nodes"]).await;
    let ended = nodes.succeed(0, &elsewhere).await;
    assert!(
        ended.contains("revoked") || ended.contains("ended"),
        "{ended}"
    );
    let again = visitor.send(Method::GET, "/checkout", &headers, "").await;
    assert_eq!(again.status, StatusCode::OK, "a slot is free");
    assert_ne!(nodes.origin.last().header("anteroom-visitor").unwrap(), id);
    nodes.refuse(0, &elsewhere, &["no active visitor"]).await;
}
