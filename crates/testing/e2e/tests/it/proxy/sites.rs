//! Sites: hosts with origins, rooms that use those of a site, and sites without any room.

use std::net::SocketAddr;

use anteroom::gateway::Gateway;
use anteroom_config::Config;
use anteroom_e2e::eventually;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::proxy::support::Wire;
use crate::proxy::whole_gateway::Origin;

fn config(folder: &TempDir, fast_path: bool, text: &str) -> Config {
    let data = folder.path().join("data");
    let text = format!(
        "[server]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\ndata_dir = {data:?}\n\
         fast_path = {fast_path}\n{text}"
    );
    Config::parse("test.toml", &text).unwrap().config
}

fn site(name: &str, host: &str, origin: SocketAddr) -> String {
    format!("[[site]]\nname = \"{name}\"\n{host}\norigin = \"http://{origin}\"\n")
}

fn room(name: &str, lines: &str) -> String {
    format!(
        "[[room]]\nname = \"{name}\"\ntotal_active_users = 100\nnew_users_per_minute = 100000\n\
         bypass = []\n{lines}\n"
    )
}

/// Sends a request on a connection of its own. Returns the status and the body.
async fn ask(address: SocketAddr, host: &str, path: &str) -> (u16, String) {
    let mut wire = Wire::connect(address).await;
    wire.send(&format!(
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nAccept: text/html\r\n\
         Sec-Fetch-Mode: navigate\r\nConnection: close\r\n\r\n"
    ))
    .await;
    let head = wire.read_until("\r\n\r\n").await;
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, wire.rest().await)
}

async fn admin(gateway: &Gateway, path: &str) -> String {
    let mut wire = Wire::connect(gateway.admin()).await;
    wire.send(&format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"))
        .await;
    wire.head().await;
    wire.rest().await
}

async fn each_host_has_its_origins(fast_path: bool) {
    let (shop, news) = (Origin::start("shop").await, Origin::start("news").await);
    let folder = tempfile::tempdir().unwrap();
    let text = [
        site(
            "shop",
            "hosts = [\"a.example\", \"b.example\"]",
            shop.address,
        ),
        site("news", "host = \"news.example\"", news.address),
        room("sale", "host = \"b.example\"\npath = \"/sale\""),
        room(
            "own",
            &format!(
                "host = \"news.example\"\npath = \"/x\"\norigin = \"http://{}\"",
                shop.address
            ),
        ),
    ]
    .concat();
    let gateway = Gateway::start(&config(&folder, fast_path, &text))
        .await
        .unwrap();
    let address = gateway.address();
    let check = async |host: &str, path: &str, expected: &str| {
        let (status, body) = ask(address, host, path).await;
        assert_eq!(status, 200, "{host}{path}: {body}");
        assert!(body.ends_with(expected), "{host}{path}: {body}");
    };
    eventually("the rooms admit visitors", async || {
        let (_, sale) = ask(address, "b.example", "/sale").await;
        let (_, own) = ask(address, "news.example", "/x").await;
        sale.ends_with("this is shop") && own.ends_with("this is shop")
    })
    .await;
    // Without a room.
    check("a.example", "/sale", "this is shop").await;
    check("b.example", "/", "this is shop").await;
    check("News.Example:8080", "/", "this is news").await;
    let (status, _) = ask(address, "other.example", "/").await;
    assert_eq!(status, 404, "no site serves this host");

    let states: Value = serde_json::from_str(&admin(&gateway, "/api/v1/state").await).unwrap();
    let names: Vec<_> = states["sites"]
        .as_array()
        .unwrap()
        .iter()
        .map(|site| &site["site"])
        .collect();
    assert_eq!(names, ["news", "shop"]);
    let url = json!(format!("http://{}", shop.address));
    assert_eq!(states["sites"][1]["origins"][0]["url"], url);
    let sale = states["rooms"]
        .as_array()
        .unwrap()
        .iter()
        .find(|room| room["room"] == "sale");
    assert_eq!(sale.unwrap()["origins"][0]["url"], url, "those of its site");
    let metrics = admin(&gateway, "/metrics").await;
    let up = format!(
        "anteroom_origin_up{{site=\"shop\",origin=\"http://{}\"}} 1",
        shop.address
    );
    assert!(metrics.contains(&up), "{metrics}");
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_host_has_its_origins_on_the_fast_path() {
    each_host_has_its_origins(true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_host_has_its_origins_in_the_layers() {
    each_host_has_its_origins(false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_site_without_a_room_stands_behind_its_limits() {
    for fast_path in [true, false] {
        let origin = Origin::start("the site").await;
        let folder = tempfile::tempdir().unwrap();
        let limit = "[[limit]]\nname = \"all\"\nlimit = \"3/h\"\n\
                     algorithm = \"fixed-window\"\n";
        let text = [&*site("shop", "", origin.address), limit].concat();
        let gateway = Gateway::start(&config(&folder, fast_path, &text))
            .await
            .unwrap();
        for _ in 0..3 {
            let (status, body) = ask(gateway.address(), "any.example", "/").await;
            assert_eq!((status, &*body), (200, "this is the site"));
        }
        let (status, _) = ask(gateway.address(), "any.example", "/").await;
        assert_eq!(status, 429);
        let health = admin(&gateway, "/healthz").await;
        assert!(health.contains("\"healthy\":true"), "{health}");
        let ready = admin(&gateway, "/readyz").await;
        assert!(ready.contains("\"ready\":true"), "{ready}");
        gateway.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reload_changes_sites_and_what_rooms_belong_to_them() {
    let (first, second) = (Origin::start("one").await, Origin::start("two").await);
    let folder = tempfile::tempdir().unwrap();
    let text = |origin| [site("shop", "", origin), room("sale", "path = \"/sale\"")].concat();
    let gateway = Gateway::start(&config(&folder, true, &text(first.address)))
        .await
        .unwrap();
    let body = async |path: &str| ask(gateway.address(), "any.example", path).await.1;
    eventually("the room admits visitors", async || {
        body("/sale").await == "this is one"
    })
    .await;
    gateway
        .reload(&config(&folder, true, &text(second.address)))
        .unwrap();
    assert_eq!(body("/").await, "this is two");
    assert_eq!(body("/sale").await, "this is two");
    // From the site to an origin of the room's own, and without any room.
    let own = room(
        "sale",
        &format!("path = \"/sale\"\norigin = \"http://{}\"", first.address),
    );
    let changed = [site("shop", "", second.address), own].concat();
    gateway.reload(&config(&folder, true, &changed)).unwrap();
    assert_eq!(body("/").await, "this is two");
    assert_eq!(body("/sale").await, "this is one");
    gateway
        .reload(&config(&folder, true, &site("shop", "", first.address)))
        .unwrap();
    assert_eq!(body("/sale").await, "this is one");
    gateway.stop().await;
}
