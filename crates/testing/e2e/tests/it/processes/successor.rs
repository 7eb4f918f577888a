//! Gateway that is replaced by another process of the same program, without a lost visitor.

use std::net::SocketAddr;
use std::time::Duration;

use anteroom_e2e::eventually;
use anteroom_e2e::node::Node;
use anteroom_e2e::origin;
use anteroom_room::rules::Limits;
use anteroom_testkit::load::{Habits, NodeRoutes, VisitorLoad};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

use crate::processes::{config, node};

const LIMITS: Limits = Limits {
    total_active_users: 20,
    new_users_per_minute: 100_000,
};

/// Process that no test has started itself; ended when dropped.
pub(crate) struct Successor(pub(crate) Pid);

impl Successor {
    /// Returns the newest successor in the log.
    pub(crate) fn of(node: &Node) -> Self {
        let log = node.log();
        let line = log.lines().rfind(|line| line.contains(SERVES)).unwrap();
        let line: Value = serde_json::from_str(line).unwrap();
        let id = i32::try_from(line["successor"].as_i64().unwrap()).unwrap();
        Self(Pid::from_raw(id).unwrap())
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.0, signal).unwrap();
    }

    /// Whether it has ended; its new parent may not have noticed yet.
    pub(crate) fn has_ended(&self) -> bool {
        let state = std::fs::read_to_string(format!("/proc/{}/stat", self.0.as_raw_nonzero()));
        state.map_or(true, |state| state.contains(") Z "))
    }
}

impl Drop for Successor {
    fn drop(&mut self) {
        if !self.has_ended() {
            self.signal(Signal::KILL);
        }
    }
}

const GOES_ON: &str = "no successor; this process goes on";
pub(crate) const SERVES: &str = "the successor serves";

pub(crate) fn count(node: &Node, words: &str) -> usize {
    node.log()
        .lines()
        .filter(|line| line.contains(words))
        .count()
}

/// Connects again for each request, for ever; returns the first failure.
async fn connect_again_and_again(address: SocketAddr) -> String {
    loop {
        let mut response = String::new();
        let result = async {
            let mut stream = TcpStream::connect(address).await?;
            let request =
                b"GET /new HTTP/1.1\r\nHost: a\r\nAccept: text/html\r\nConnection: close\r\n\r\n";
            stream.write_all(request).await?;
            stream.read_to_string(&mut response).await
        };
        match result.await {
            Ok(_) if response.starts_with("HTTP/1.1 200 ") => {}
            Ok(_) => return response,
            Err(error) => return error.to_string(),
        }
    }
}

fn load(node: &Node, visitors: u32, seed: u64) -> VisitorLoad {
    let habits = Habits {
        think: Duration::from_millis(50)..=Duration::from_millis(300),
        refresh_interval: Duration::from_millis(200)..=Duration::from_millis(600),
        log_out_percent: 100,
        ..Habits::default()
    };
    VisitorLoad::at_once(
        &NodeRoutes::to_one(node.name(), node.address()),
        visitors,
        &habits,
        seed,
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_replacements_under_load_lose_no_visitor_and_keep_the_limits() {
    let temp = tempfile::tempdir().unwrap();
    let origin = origin::start(LIMITS, Duration::from_secs(30)).await;
    let mut node = node(
        &temp,
        &config(origin.address(), LIMITS.total_active_users, ""),
    )
    .await;
    let load = load(&node, 60, 7);
    let anew = tokio::spawn(connect_again_and_again(node.address().get().unwrap()));
    let mut newest: Option<Successor> = None;
    for times in 1..=2 {
        let entered = load.counters().entered;
        eventually("visitors are admitted", async || {
            load.counters().entered >= entered + 20
        })
        .await;
        match &newest {
            None => node.replace(),
            Some(successor) => successor.signal(Signal::USR2),
        }
        eventually("there is a successor", async || {
            count(&node, SERVES) == times
        })
        .await;
        let (since, admitted) = (Instant::now(), origin.admissions());
        eventually("it admits", async || origin.admissions() > admitted).await;
        println!("admitted a new visitor after {:?}", since.elapsed());
        let before = newest.replace(Successor::of(&node));
        match before {
            None => assert!(node.ends().await, "{}", node.log()),
            Some(before) => eventually("the one before ends", async || before.has_ended()).await,
        }
    }
    let entered = load.counters().entered;
    eventually("visitors are still admitted", async || {
        load.counters().entered >= entered + 20
    })
    .await;
    assert!(!anew.is_finished(), "{}", anew.await.unwrap());
    anew.abort();
    let counters = load.stop().await;
    let lost = (
        counters.queued_with_ticket,
        counters.ran_out,
        counters.unanswered,
        counters.failed.len(),
    );
    assert_eq!(lost, (0, 0, 0, 0), "{counters} {}", node.log());
    let verdict = origin.verdict();
    assert!(
        verdict.is_within_limits(),
        "{verdict:?} {:?}",
        origin.evidence()
    );
    assert!(verdict.admissions >= 60, "{verdict:?}");
    let last = newest.expect("it was replaced");
    last.signal(Signal::TERM);
    eventually("the last one ends", async || last.has_ended()).await;
}

/// Starts an origin that says yes to everything.
async fn start_plain_origin() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut head = [0; 4_096];
                if stream.read(&mut head).await.is_ok_and(|length| length > 0) {
                    let yes = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok";
                    let _ = stream.write_all(yes.as_bytes()).await;
                }
            });
        }
    });
    address
}

/// A successor cannot read the journal before its predecessor ends. All the same it knows that the
/// API has made no room.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replacement_lets_no_request_to_a_site_fail() {
    let temp = tempfile::tempdir().unwrap();
    let origin = start_plain_origin().await;
    let config = format!(
        "[server]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\ndata_dir = \"data\"\n\
         [[site]]\nname = \"shop\"\norigin = \"http://{origin}\"\n"
    );
    let mut node = node(&temp, &config).await;
    let anew = tokio::spawn(connect_again_and_again(node.address().get().unwrap()));
    node.replace();
    eventually("there is a successor", async || count(&node, SERVES) == 1).await;
    let successor = Successor::of(&node);
    assert!(node.ends().await, "{}", node.log());
    assert!(!anew.is_finished(), "{}", anew.await.unwrap());
    anew.abort();
    successor.signal(Signal::TERM);
    eventually("it ends", async || successor.has_ended()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_successor_that_cannot_start_changes_nothing() {
    let temp = tempfile::tempdir().unwrap();
    let origin = origin::start(LIMITS, Duration::from_secs(30)).await;
    let node = node(
        &temp,
        &config(origin.address(), LIMITS.total_active_users, ""),
    )
    .await;
    let load = load(&node, 5, 8);
    eventually("visitors are admitted", async || {
        load.counters().entered >= 5
    })
    .await;
    let file = temp.path().join("node/anteroom.toml");
    std::fs::write(file, "not toml [").unwrap();
    for times in 1..=2 {
        node.replace();
        eventually("the log reports it", async || {
            count(&node, GOES_ON) == times
        })
        .await;
    }
    let entered = load.counters().entered;
    eventually("it still admits", async || {
        load.counters().entered > entered
    })
    .await;
    let counters = load.stop().await;
    assert_eq!(
        (counters.unanswered, counters.failed.len()),
        (0, 0),
        "{counters}"
    );
}

#[tokio::test]
async fn a_successor_without_read_access_changes_nothing_and_the_next_serves() {
    let temp = tempfile::tempdir().unwrap();
    let origin = origin::start(LIMITS, Duration::from_secs(30)).await;
    let folder = temp.path().join("node");
    std::fs::create_dir(&folder).unwrap();
    let tokens = folder.join("tokens");
    let good = "me 0123456789abcdef0123456789abcdef\n";
    std::fs::write(&tokens, good).unwrap();
    let server = "admin_token_file = \"tokens\"";
    let mut node = node(
        &temp,
        &config(origin.address(), LIMITS.total_active_users, server),
    )
    .await;
    let address = node.address().get().unwrap();
    // The successor reads it only after it has the sockets.
    std::fs::write(&tokens, "short\n").unwrap();
    node.replace();
    eventually("the log reports it", async || count(&node, GOES_ON) == 1).await;
    let anew = tokio::spawn(connect_again_and_again(address));
    let admitted = origin.admissions();
    eventually("it still admits", async || origin.admissions() > admitted).await;
    assert!(!anew.is_finished(), "{}", anew.await.unwrap());

    std::fs::write(&tokens, good).unwrap();
    node.replace();
    eventually("there is a successor", async || count(&node, SERVES) == 1).await;
    let successor = Successor::of(&node);
    assert!(node.ends().await, "{}", node.log());
    assert!(!anew.is_finished(), "{}", anew.await.unwrap());
    anew.abort();
    successor.signal(Signal::TERM);
    eventually("it ends", async || successor.has_ended()).await;
}
