//! Cost of very many waiting visitors at one node: memory, and their poll requests.
//!
//! This runs in process and on the embedded store; the cost of HTTP is measured separately.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use anteroom_config::Config;
use anteroom_embedded::{DataDir, Embedded};
use anteroom_node::{
    Arrival, Intent, Node, NodeClock, NodeSettings, Outcome, RoomClock, RoomHandle, Stores,
};
use anteroom_store::{Clock, Identity};
use anyhow::Context as _;
use serde::Serialize;
use tokio::time::{Instant, sleep, sleep_until};

/// Room that admits no visitors during the measurement.
const ROOM: &str = "[[room]]\nname = \"sale\"\norigin = \"http://127.0.0.1:9\"\nbypass = []\n\
     total_active_users = 10\nnew_users_per_minute = 100\nsession_duration = \"1h\"\n";
/// Longest ticket of a waiting visitor; its memory is reserved before the measurement.
const TICKET_BYTES_MAX: usize = 256;
const MIB: u64 = 1 << 20;

/// Plan of the arrivals and of the measurement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) count: u32,
    /// Time within which they arrive, one after the other.
    pub(crate) come: Duration,
    /// Time until the poll interval is steady.
    pub(crate) settle: Duration,
    /// Time of the measurement.
    pub(crate) watch: Duration,
}

impl Plan {
    /// Creates a plan of `count` arrivals within half a minute. The measurement starts once all
    /// visitors have polled after the last arrival.
    pub(crate) const fn of(count: u32) -> Self {
        Self {
            count,
            come: Duration::from_secs(30),
            settle: Duration::from_secs(70),
            watch: Duration::from_secs(30),
        }
    }
}

/// Cost of waiting visitors.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Waiting {
    pub(crate) came: u32,
    /// Waiting visitors that the node counts, once it is steady.
    pub(crate) said_waiting: u32,
    /// Memory of the process without visitors. What this program keeps per visitor is included here
    /// and in `bytes`.
    pub(crate) idle_bytes: u64,
    pub(crate) bytes: u64,
    /// Poll requests per second, during the measurement.
    pub(crate) asked_per_s: f64,
    /// Most requests in any second since the first arrival, including arrivals.
    pub(crate) most_per_s: u32,
}

/// Waiting visitors and the times of their next polls.
struct Visitors {
    tickets: Vec<([u8; TICKET_BYTES_MAX], usize)>,
    next: BinaryHeap<Reverse<(Instant, u32)>>,
    began: Instant,
    /// Requests in each second.
    requests: Vec<u32>,
}

impl Visitors {
    fn with_capacity(count: u32) -> Self {
        let capacity = count as usize;
        let began = Instant::now();
        let mut visitors = Self {
            // Written, so that it is resident before the measurement.
            tickets: vec![([1; TICKET_BYTES_MAX], 0); capacity],
            next: (0..count)
                .map(|visitor| Reverse((began, visitor)))
                .collect(),
            began,
            requests: Vec::with_capacity(1_024),
        };
        visitors.next.clear();
        visitors
    }

    /// Sends a poll of a visitor, or its first request.
    async fn send(&mut self, room: &RoomHandle, visitor: u32) -> anyhow::Result<()> {
        let now = Instant::now();
        let second = usize::try_from((now - self.began).as_secs())?;
        if self.requests.len() <= second {
            self.requests.resize(second + 1, 0);
        }
        self.requests[second] += 1;
        let (bytes, length) = &mut self.tickets[visitor as usize];
        let ticket = std::str::from_utf8(&bytes[..*length])?;
        let tickets: &[&str] = if *length == 0 { &[] } else { &[ticket] };
        // Few visitors are admitted: the queue does not move.
        if let Outcome::Queue {
            ticket, position, ..
        } = room.decide(arrival(tickets)).await
        {
            if let Some(ticket) = ticket {
                let target = bytes.get_mut(..ticket.len());
                target
                    .context("a ticket is longer than expected")?
                    .copy_from_slice(ticket.as_bytes());
                *length = ticket.len();
            }
            let after = position
                .refresh_after
                .context("a waiting visitor gets a poll interval")?;
            let at = now + Duration::from_millis(after.0);
            self.next.push(Reverse((at, visitor)));
        }
        Ok(())
    }

    /// Sends all polls that are due until `end`.
    async fn until(&mut self, end: Instant, room: &RoomHandle) -> anyhow::Result<()> {
        while let Some(&Reverse((at, visitor))) = self.next.peek() {
            if at > end {
                break;
            }
            if at > Instant::now() {
                sleep_until(at).await;
            }
            self.next.pop();
            self.send(room, visitor).await?;
        }
        sleep_until(end).await;
        Ok(())
    }
}

/// Sends visitors to one room and lets them poll as instructed.
pub(crate) async fn run(plan: Plan) -> anyhow::Result<Waiting> {
    let folder = tempfile::tempdir()?;
    let node = start(&folder)?;
    let room = Arc::clone(node.rooms().first().context("there is one room")?);
    while !matches!(room.decide(arrival(&[])).await, Outcome::Pass(_)) {
        sleep(Duration::from_millis(10)).await;
    }
    let mut visitors = Visitors::with_capacity(plan.count);
    let idle_bytes = resident_bytes()?;
    for visitor in 0..plan.count {
        let arrives_at = visitors.began
            + plan
                .come
                .mul_f64(f64::from(visitor) / f64::from(plan.count));
        visitors.until(arrives_at, &room).await?;
        visitors.send(&room, visitor).await?;
        // The node has periodic work of its own.
        tokio::task::consume_budget().await;
    }
    visitors
        .until(visitors.began + plan.come + plan.settle, &room)
        .await?;
    let requests_total = |visitors: &Visitors| {
        visitors
            .requests
            .iter()
            .map(|count| f64::from(*count))
            .sum::<f64>()
    };
    let before = requests_total(&visitors);
    visitors
        .until(visitors.began + plan.come + plan.settle + plan.watch, &room)
        .await?;
    let waiting = Waiting {
        came: plan.count,
        said_waiting: room.stats().people_waiting,
        idle_bytes,
        bytes: resident_bytes()?,
        asked_per_s: (requests_total(&visitors) - before) / plan.watch.as_secs_f64(),
        most_per_s: visitors.requests.iter().copied().max().unwrap_or_default(),
    };
    eprintln!(
        "{:.1} MiB above idle",
        (waiting.bytes.saturating_sub(idle_bytes)) as f64 / MIB as f64
    );
    node.stop().await;
    Ok(waiting)
}

fn start(folder: &tempfile::TempDir) -> anyhow::Result<Arc<Node>> {
    let config =
        Config::parse("bench.toml", ROOM).map_err(|problems| anyhow::anyhow!("{problems}"))?;
    let dir = DataDir::open(folder.path())?;
    let clock = Arc::new(RoomClock::start(dir.clock()));
    let deployment = dir.deployment()?;
    let identity = Identity(deployment.deployment_id.0);
    let store = Embedded::new(dir, identity, Arc::clone(&clock) as Arc<dyn Clock>);
    let settings = NodeSettings {
        folder: None,
        ticket_keys: vec![[1; 32]],
        deployment_id: deployment.deployment_id,
        lottery_key: deployment.lottery_key,
        data_center: "local".to_owned(),
        history_bytes: 1 << 20,
        rooms: config.config.rooms,
    };
    let stores = Stores::Alone(Arc::new(store));
    Ok(Node::start(settings, stores, clock as Arc<dyn NodeClock>)?)
}

const fn arrival<'a>(tickets: &'a [&'a str]) -> Arrival<'a> {
    Arrival {
        tickets,
        is_navigation: false,
        gets_page: false,
        intent: Intent::Enter,
    }
}

/// Returns the resident memory of this process.
fn resident_bytes() -> anyhow::Result<u64> {
    let status = fs::read_to_string("/proc/self/status").context("reading /proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_ascii_whitespace().next()?.parse::<u64>().ok());
    Ok(1_024 * kib.context("/proc/self/status has no VmRSS")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn waiting_visitors_are_counted_and_poll_as_instructed() {
        let second = Duration::from_secs(1);
        let waiting = run(Plan {
            count: 300,
            come: second,
            settle: second * 4,
            watch: second * 4,
        });
        let waiting = waiting.await.unwrap();
        assert!((200..=300).contains(&waiting.said_waiting), "{waiting:?}");
        // Each polls once in two seconds at the front, and in forty at the end.
        assert!((8.0..=200.0).contains(&waiting.asked_per_s), "{waiting:?}");
    }
}
