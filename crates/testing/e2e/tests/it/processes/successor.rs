//! A gateway is replaced by another process of the same program, and nobody is lost.

use std::net::SocketAddr;
use std::time::Duration;

use anteroom_e2e::crowd::{Crowd, Doors, Habits};
use anteroom_e2e::eventually;
use anteroom_e2e::judge;
use anteroom_e2e::node::Node;
use anteroom_room::rules::Limits;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::processes::{config, node};

const LIMITS: Limits = Limits {
    total_active_users: 20,
    new_users_per_minute: 100_000,
};

/// A process that no test has started itself; ended when dropped.
pub(crate) struct Successor(pub(crate) Pid);

impl Successor {
    /// The newest that the log tells of.
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

    /// Whether it has ended; whoever adopted it may not have noticed yet.
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

/// Connects anew for each request, for ever; says what went wrong.
async fn connect_again_and_again(door: SocketAddr) -> String {
    loop {
        let mut answer = String::new();
        let asked = async {
            let mut stream = TcpStream::connect(door).await?;
            let request =
                b"GET /new HTTP/1.1\r\nHost: a\r\nAccept: text/html\r\nConnection: close\r\n\r\n";
            stream.write_all(request).await?;
            stream.read_to_string(&mut answer).await
        };
        match asked.await {
            Ok(_) if answer.starts_with("HTTP/1.1 200 ") => {}
            Ok(_) => return answer,
            Err(error) => return error.to_string(),
        }
    }
}

fn crowd(node: &Node, visitors: u32, seed: u64) -> Crowd {
    let habits = Habits {
        think: Duration::from_millis(50)..=Duration::from_millis(300),
        refresh_interval: Duration::from_millis(200)..=Duration::from_millis(600),
        log_out_percent: 100,
        ..Habits::default()
    };
    Crowd::at_once(&Doors::of(node), visitors, &habits, seed)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replaced_twice_under_a_crowd_nobody_is_lost_and_the_limits_hold() {
    let temp = tempfile::tempdir().unwrap();
    let origin = judge::start(LIMITS, Duration::from_secs(30)).await;
    let mut node = node(
        &temp,
        &config(origin.address(), LIMITS.total_active_users, ""),
    )
    .await;
    let crowd = crowd(&node, 60, 7);
    let anew = tokio::spawn(connect_again_and_again(node.door().address().unwrap()));
    let mut newest: Option<Successor> = None;
    for times in 1..=2 {
        let entered = crowd.counters().entered;
        eventually("visitors come in", async || {
            crowd.counters().entered >= entered + 20
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
        println!("admitted somebody new after {:?}", since.elapsed());
        let before = newest.replace(Successor::of(&node));
        match before {
            None => assert!(node.ends().await, "{}", node.log()),
            Some(before) => eventually("the one before ends", async || before.has_ended()).await,
        }
    }
    let entered = crowd.counters().entered;
    eventually("visitors still come in", async || {
        crowd.counters().entered >= entered + 20
    })
    .await;
    assert!(!anew.is_finished(), "{}", anew.await.unwrap());
    anew.abort();
    let counters = crowd.go_home().await;
    let lost = (
        counters.thrown_out.len(),
        counters.ran_out,
        counters.unanswered,
        counters.failed.len(),
    );
    assert_eq!(
        lost,
        (0, 0, 0, 0),
        "{counters} {:?} {}",
        counters.thrown_out,
        node.log()
    );
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_successor_that_cannot_start_changes_nothing() {
    let temp = tempfile::tempdir().unwrap();
    let origin = judge::start(LIMITS, Duration::from_secs(30)).await;
    let node = node(
        &temp,
        &config(origin.address(), LIMITS.total_active_users, ""),
    )
    .await;
    let crowd = crowd(&node, 5, 8);
    eventually("visitors come in", async || crowd.counters().entered >= 5).await;
    let file = temp.path().join("node/anteroom.toml");
    std::fs::write(file, "not toml [").unwrap();
    for times in 1..=2 {
        node.replace();
        eventually("it is told", async || count(&node, GOES_ON) == times).await;
    }
    let entered = crowd.counters().entered;
    eventually("it still admits", async || {
        crowd.counters().entered > entered
    })
    .await;
    let counters = crowd.go_home().await;
    assert_eq!(
        (counters.unanswered, counters.failed.len()),
        (0, 0),
        "{counters}"
    );
}

#[tokio::test]
async fn a_successor_without_read_access_changes_nothing_and_the_next_serves() {
    let temp = tempfile::tempdir().unwrap();
    let origin = judge::start(LIMITS, Duration::from_secs(30)).await;
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
    let door = node.door().address().unwrap();
    // Read by the successor when it has the sockets already.
    std::fs::write(&tokens, "short\n").unwrap();
    node.replace();
    eventually("it is told", async || count(&node, GOES_ON) == 1).await;
    let anew = tokio::spawn(connect_again_and_again(door));
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
