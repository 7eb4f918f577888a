//! What do very many cost who wait at one node: memory, and how often do they ask as they are told?
//!
//! In process and on the embedded store: what HTTP costs is measured elsewhere.

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

/// Nobody goes in while it is measured.
const ROOM: &str = "[[room]]\nname = \"sale\"\norigin = \"http://127.0.0.1:9\"\nbypass = []\n\
     total_active_users = 10\nnew_users_per_minute = 100\nsession_duration = \"1h\"\n";
/// Longest ticket of one who waits: there is place for it before the memory is measured.
const TICKET_BYTES_MAX: usize = 256;
const MIB: u64 = 1 << 20;

/// How they come, and how long they are watched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) count: u32,
    /// They come one after the other within this time,
    pub(crate) come: Duration,
    /// settle down,
    pub(crate) settle: Duration,
    /// and are counted.
    pub(crate) watch: Duration,
}

impl Plan {
    /// So many in half a minute; and watched when everybody has asked with all others in view.
    pub(crate) const fn of(count: u32) -> Self {
        Self {
            count,
            come: Duration::from_secs(30),
            settle: Duration::from_secs(70),
            watch: Duration::from_secs(30),
        }
    }
}

/// What they cost.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Waiting {
    pub(crate) came: u32,
    /// How many the node says are waiting, when all have settled down.
    pub(crate) said_waiting: u32,
    /// Memory of the process, with nobody and with everybody; what this program keeps of each
    /// visitor is in both.
    pub(crate) idle_bytes: u64,
    pub(crate) bytes: u64,
    /// Questions a second, while they were counted.
    pub(crate) asked_per_s: f64,
    /// The most questions in any second since the first came, newcomers included.
    pub(crate) most_per_s: u32,
}

/// Everybody who waits, and when they ask next.
struct Line {
    tickets: Vec<([u8; TICKET_BYTES_MAX], usize)>,
    next: BinaryHeap<Reverse<(Instant, u32)>>,
    began: Instant,
    /// Questions in each second.
    asked: Vec<u32>,
}

impl Line {
    fn with_place_for(count: u32) -> Self {
        let places = count as usize;
        let began = Instant::now();
        let mut line = Self {
            // Written, so that it is in memory before that is measured.
            tickets: vec![([1; TICKET_BYTES_MAX], 0); places],
            next: (0..count)
                .map(|visitor| Reverse((began, visitor)))
                .collect(),
            began,
            asked: Vec::with_capacity(1_024),
        };
        line.next.clear();
        line
    }

    /// One asks, or comes for the first time.
    async fn ask(&mut self, room: &RoomHandle, visitor: u32) -> anyhow::Result<()> {
        let now = Instant::now();
        let second = usize::try_from((now - self.began).as_secs())?;
        if self.asked.len() <= second {
            self.asked.resize(second + 1, 0);
        }
        self.asked[second] += 1;
        let (bytes, length) = &mut self.tickets[visitor as usize];
        let ticket = std::str::from_utf8(&bytes[..*length])?;
        let tickets: &[&str] = if *length == 0 { &[] } else { &[ticket] };
        // Whoever goes in is one of a few: the line does not move.
        if let Outcome::Queue { ticket, place } = room.decide(arrival(tickets)).await {
            if let Some(ticket) = ticket {
                let place = bytes.get_mut(..ticket.len());
                place
                    .context("a ticket is longer than was thought")?
                    .copy_from_slice(ticket.as_bytes());
                *length = ticket.len();
            }
            let after = place
                .ask_after
                .context("whoever waits is told when to ask")?;
            let at = now + Duration::from_millis(after.0);
            self.next.push(Reverse((at, visitor)));
        }
        Ok(())
    }

    /// Everybody asks when it is time, until `end`.
    async fn until(&mut self, end: Instant, room: &RoomHandle) -> anyhow::Result<()> {
        while let Some(&Reverse((at, visitor))) = self.next.peek() {
            if at > end {
                break;
            }
            if at > Instant::now() {
                sleep_until(at).await;
            }
            self.next.pop();
            self.ask(room, visitor).await?;
        }
        sleep_until(end).await;
        Ok(())
    }
}

/// Has so many come to one room and wait as they are told.
pub(crate) async fn run(plan: Plan) -> anyhow::Result<Waiting> {
    let folder = tempfile::tempdir()?;
    let node = start(&folder)?;
    let room = Arc::clone(node.rooms().first().context("there is one room")?);
    while !matches!(room.decide(arrival(&[])).await, Outcome::Pass(_)) {
        sleep(Duration::from_millis(10)).await;
    }
    let mut line = Line::with_place_for(plan.count);
    let idle_bytes = resident_bytes()?;
    for visitor in 0..plan.count {
        let comes_at = line.began
            + plan
                .come
                .mul_f64(f64::from(visitor) / f64::from(plan.count));
        line.until(comes_at, &room).await?;
        line.ask(&room, visitor).await?;
        // The node has rounds of its own to make.
        tokio::task::consume_budget().await;
    }
    line.until(line.began + plan.come + plan.settle, &room)
        .await?;
    let asked = |line: &Line| {
        line.asked
            .iter()
            .map(|count| f64::from(*count))
            .sum::<f64>()
    };
    let before = asked(&line);
    line.until(line.began + plan.come + plan.settle + plan.watch, &room)
        .await?;
    let waiting = Waiting {
        came: plan.count,
        said_waiting: room.stats().people_waiting,
        idle_bytes,
        bytes: resident_bytes()?,
        asked_per_s: (asked(&line) - before) / plan.watch.as_secs_f64(),
        most_per_s: line.asked.iter().copied().max().unwrap_or_default(),
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
    let identity = Identity(deployment.birth.0);
    let store = Embedded::new(dir, identity, Arc::clone(&clock) as Arc<dyn Clock>);
    let settings = NodeSettings {
        folder: None,
        ticket_keys: vec![[1; 32]],
        birth: deployment.birth,
        lottery_key: deployment.lottery_key,
        data_center: "local".to_owned(),
        rooms: config.config.rooms,
    };
    let stores = Stores::Alone(Arc::new(store));
    Ok(Node::start(settings, stores, clock as Arc<dyn NodeClock>)?)
}

const fn arrival<'a>(tickets: &'a [&'a str]) -> Arrival<'a> {
    Arrival {
        tickets,
        is_navigation: false,
        intent: Intent::Enter,
    }
}

/// What of this process is in memory.
fn resident_bytes() -> anyhow::Result<u64> {
    let status = fs::read_to_string("/proc/self/status").context("reading /proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_ascii_whitespace().next()?.parse::<u64>().ok());
    Ok(1_024 * kib.context("/proc/self/status does not say VmRSS")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn those_who_wait_are_counted_and_ask_as_they_are_told() {
        let second = Duration::from_secs(1);
        let waiting = run(Plan {
            count: 300,
            come: second,
            settle: second * 4,
            watch: second * 4,
        });
        let waiting = waiting.await.unwrap();
        assert!((200..=300).contains(&waiting.said_waiting), "{waiting:?}");
        // Once in two to eight seconds each.
        assert!((30.0..=200.0).contains(&waiting.asked_per_s), "{waiting:?}");
    }
}
