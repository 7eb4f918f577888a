//! Visitors who leave an origin that hangs, before any timeout. They use HTTP/2, where an aborted
//! request ends at once. (Over HTTP/1.1 it continues: a client may close its side after a request.)

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use anteroom::gateway::Gateway;
use anteroom_config::{BypassRule, TlsConfig};
use anteroom_e2e::eventually;
use anteroom_room::time::DurationMs;
use anteroom_testkit::http2::connect;
use http::Request;
use http_body_util::Empty;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use tokio::task::JoinSet;

use crate::proxy::whole_gateway::{Origin, Site, config};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn admissions_stop_at_a_hanging_origin_before_any_timeout() {
    let origin = Origin::start("one").await;
    let folder = tempfile::tempdir().unwrap();
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let files = TlsConfig {
        number: 0,
        line: 0,
        certificate: folder.path().join("cert.pem"),
        key: folder.path().join("key.pem"),
    };
    std::fs::write(&files.certificate, cert.pem()).unwrap();
    std::fs::write(&files.key, signing_key.serialize_pem()).unwrap();
    let mut config = config(&folder, &[origin.address], "");
    config.server.tls = vec![files];
    // The bypass rule lets them reach the origin without an admission.
    config.rooms[0].bypass = vec![BypassRule {
        expression: "path == \"/held\"".to_owned(),
        line: 0,
    }];
    let wait = Duration::from_secs(4);
    config.server.timeouts.origin_response = DurationMs(4_000);
    let gateway = Gateway::start(&config).await.unwrap();
    let sender = connect(gateway.address(), cert.der().clone()).await;
    let site = Site { gateway, folder };
    let mut visitors = JoinSet::new();
    for _ in 0..3 {
        let mut sender = sender.clone();
        let request = Request::get("https://localhost/held").body(Empty::new());
        visitors.spawn(async move { sender.send_request(request.unwrap()).await });
    }
    eventually("all three have arrived", async || {
        origin.seen.holds.load(Relaxed) == 3
    })
    .await;
    // Long for a visitor; the timeout is longer still.
    let held_since = tokio::time::Instant::now();
    eventually("they have waited long", async || {
        held_since.elapsed() >= wait / 4
    })
    .await;
    visitors.shutdown().await;
    eventually("the room learns of it", async || {
        site.state().await["degraded"] == "origin_down"
    })
    .await;
    let metrics = site.operators("/metrics").await;
    let sample = "anteroom_origin_outcomes_total{room=\"shop\",class=\"abandoned\"} 3\n";
    assert!(metrics.contains(sample), "{metrics}");
}
