//! Store of rate limits that is killed and comes back: each value of `on_store_failure`, on the
//! real program, with its metrics and log.

use anteroom_e2e::binary;
use anteroom_e2e::eventually;
use anteroom_e2e::node::Node;
use anteroom_testkit::load::NodeAddress;
use anteroom_testkit::redis_server::RedisServer;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const WORDS: [&str; 4] = ["open", "closed", "local", "bounded"];

/// Returns a limit of two requests for each value, on its own path. There is no origin: an allowed
/// request gets 404.
fn config(port: u16) -> String {
    let limit = |word: &str| {
        format!(
            "[[limit]]\nname = \"{word}\"\nlimit = \"2/h\"\nroutes = [{{ path = \"/{word}\" }}]\n\
             store = \"valkey\"\non_store_failure = \"{word}\"\n"
        )
    };
    format!(
        "[server]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\ndata_dir = \"data\"\n\
         [store]\nkind = \"valkey\"\nlocal = \"redis://127.0.0.1:{port}\"\n\
         [[room]]\nname = \"shop\"\nhost = \"shop.example\"\norigin = \"http://127.0.0.1:9\"\n\
         total_active_users = 10\nnew_users_per_minute = 10\nbypass = []\n{}",
        WORDS.map(limit).concat()
    )
}

/// Sends a request on its own connection and returns the response, for a host by its address.
async fn get(address: &NodeAddress, path: &str) -> String {
    let address = address.get().unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    response
}

/// Returns the statuses of three requests, one after the other.
async fn three(node: &Node, word: &str) -> [u16; 3] {
    let mut statuses = [0; 3];
    for status in &mut statuses {
        let response = get(node.address(), &format!("/{word}")).await;
        *status = response[9..12].parse().unwrap();
        if *status == 503 {
            assert!(response.contains("\r\nretry-after: "), "{response}");
        }
    }
    statuses
}

/// Returns a metric of a limit.
async fn metric(node: &Node, name: &str, labels: &str) -> u64 {
    let metrics = get(node.admin(), "/metrics").await;
    let begin = format!("{name}{{{labels}}} ");
    let line = metrics.lines().find_map(|line| line.strip_prefix(&begin));
    let line = line.unwrap_or_else(|| panic!("no {begin}in {metrics}"));
    line.parse().unwrap()
}

/// Returns how often the log has this message for a limit.
fn log_count(node: &Node, what: &str, limit: &str) -> usize {
    let log = node.log();
    let lines = log.lines().filter(|line| line.contains(what));
    let named = [
        format!("limit=\"{limit}\""),
        format!("\"limit\":\"{limit}\""),
    ];
    lines
        .filter(|line| named.iter().any(|named| line.contains(named)))
        .count()
}

#[tokio::test]
async fn each_limit_follows_its_outage_setting_and_counts_again_after() {
    let temp = tempfile::tempdir().unwrap();
    let mut redis = RedisServer::start().await;
    let folder = temp.path().join("node");
    let mut node = Node::new("only", &binary::path(), folder, &config(redis.port()));
    node.spawn();
    node.serves().await;
    for word in WORDS {
        assert_eq!(three(&node, word).await, [404, 404, 429], "{word}");
    }
    redis.kill();
    for (word, expected) in [
        ("open", [404, 404, 404]),
        ("closed", [503, 503, 503]),
        // Starts again: this node has counted nothing alone until now.
        ("local", [404, 404, 429]),
        // Without leases the server counts each request.
        ("bounded", [503, 503, 503]),
    ] {
        assert_eq!(three(&node, word).await, expected, "{word}");
        let failures = "anteroom_limit_store_failures_total";
        let failures = metric(&node, failures, &format!("limit=\"{word}\"")).await;
        assert_eq!(failures, 3, "{word}");
        // The log is written by its own thread.
        eventually("the log says that requests cannot be counted", async || {
            log_count(&node, "requests cannot be counted", word) == 1
        })
        .await;
        assert_eq!(log_count(&node, "requests are counted again", word), 0);
    }
    redis.restart().await;
    eventually("requests are counted again", async || {
        let response = get(node.address(), "/closed").await;
        !response.starts_with("HTTP/1.1 503")
    })
    .await;
    redis.send_ok(&["FLUSHALL"]).await;
    for word in WORDS {
        assert_eq!(three(&node, word).await, [404, 404, 429], "{word}");
    }
    for word in WORDS {
        // Once the store has not failed for a while.
        eventually("the log reports the recovery", async || {
            get(node.address(), &format!("/{word}")).await;
            log_count(&node, "requests are counted again", word) > 0
        })
        .await;
    }
    for word in WORDS {
        for what in ["requests cannot be counted", "requests are counted again"] {
            assert_eq!(log_count(&node, what, word), 1, "{}", node.log());
        }
    }
}
