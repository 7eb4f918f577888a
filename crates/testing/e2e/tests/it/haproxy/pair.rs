//! Two HAProxies that exchange counts: what they allow together, and the largest error.

use anteroom_testkit::eventually;
use anteroom_testkit::relay::{Delays, Relay};
use tokio::join;

use crate::haproxy::clients::{Client, Counting, Counts, burst};
use crate::haproxy::process::{Haproxy, TRIES, free_addresses};
use crate::haproxy::recipe::{LIMIT, PAIR, Recipe, SLIDING};

const PEERS: &str = "peers pair\n    peer a 10.0.0.11:10000\n    peer b 10.0.0.12:10000\n";

/// Tables that count requests at each of them.
#[derive(Clone, Copy, Debug)]
struct Tables {
    of_a: &'static str,
    of_b: &'static str,
}

/// Each writes its own table, as in the file of the page.
const OWN: Tables = Tables {
    of_a: "calls_a",
    of_b: "calls_b",
};
/// Both write the same table: the trap that the page warns of.
const SHARED: Tables = Tables {
    of_a: "calls",
    of_b: "calls",
};

/// Two HAProxies before one origin, and the link between them.
#[derive(Debug)]
struct Pair {
    a: Haproxy,
    b: Haproxy,
    link: Relay,
    /// Peer address without a listener. If both connected, HAProxy would close one of two
    /// connections a moment later.
    _dead_end: Relay,
    tables: Tables,
    origin: Counting,
}

impl Pair {
    /// Starts two connected HAProxies.
    async fn start(tables: Tables) -> Self {
        let pair = Self::start_with(tables, false).await;
        eventually("the two are connected", async || {
            let (a, b) = pair.peers().await;
            [a, b]
                .iter()
                .all(|shown| shown.contains("last_status=ESTA"))
        })
        .await;
        // This connection may be the one that closes. Only an entry that arrives proves that it
        // lasts, so use a client without requests.
        let Self { a, b, .. } = &pair;
        for (from, to, table, key) in [
            (a, b, tables.of_a, "::ffff:192.0.2.1"),
            (b, a, tables.of_b, "::ffff:192.0.2.2"),
        ] {
            let set = format!("set table {table} key {key} data.http_req_rate 1");
            from.ask(&set).await;
            eventually("the other learns of a client", async || {
                let received = to.counts(table).await;
                received.iter().any(|(client, _)| client == key)
            })
            .await;
        }
        pair
    }

    async fn start_with(tables: Tables, is_cut: bool) -> Self {
        let recipe = if tables.of_a == tables.of_b {
            shared_table()
        } else {
            Recipe::of(PAIR)
        };
        let origin = Counting::start().await;
        let mut output = String::new();
        for _ in 0..TRIES {
            let [clients_a, clients_b, peer_a, peer_b] = free_addresses();
            let link = Relay::start(peer_b, Delays::default()).await;
            let dead_end = Relay::start(peer_a, Delays::default()).await;
            dead_end.cut();
            if is_cut {
                link.cut();
            }
            // Each has its own address, and the other's is behind a link.
            let file = |of_a, of_b| {
                recipe
                    .clone()
                    .with("peer a 10.0.0.11:10000", &format!("peer a {of_a}"))
                    .with("peer b 10.0.0.12:10000", &format!("peer b {of_b}"))
            };
            let files = [
                file(peer_a, link.address()),
                file(dead_end.address(), peer_b),
            ];
            let started = join!(
                Haproxy::try_start("a", clients_a, &files[0], origin.address),
                Haproxy::try_start("b", clients_b, &files[1], origin.address)
            );
            match started {
                (Ok(a), Ok(b)) => {
                    return Self {
                        a,
                        b,
                        link,
                        _dead_end: dead_end,
                        tables,
                        origin,
                    };
                }
                (Err(log), _) | (_, Err(log)) => output = log,
            }
        }
        panic!("HAProxy does not start:\n{output}");
    }

    /// Returns what each shows about the other.
    async fn peers(&self) -> (String, String) {
        let (a, b) = join!(self.a.ask("show peers"), self.b.ask("show peers"));
        (about_the_other(&a), about_the_other(&b))
    }

    /// Waits until each has sent all its counts; they may not have arrived.
    async fn until_sent(&self) {
        eventually("both have sent their counts", async || {
            let (a, b) = self.peers().await;
            has_sent(&a, self.tables.of_a) && has_sent(&b, self.tables.of_b)
        })
        .await;
    }

    /// Waits until each has received so many counts of the other.
    async fn until_received(&self, of_a: usize, of_b: usize) {
        eventually("both have received the other's counts", async || {
            let (a, b) = join!(
                self.a.count(self.tables.of_b),
                self.b.count(self.tables.of_a)
            );
            (b, a) == (of_a, of_b)
        })
        .await;
    }

    /// Returns the counts of each.
    async fn counted(&self) -> (usize, usize) {
        join!(
            self.a.count(self.tables.of_a),
            self.b.count(self.tables.of_b)
        )
    }

    /// Sends 102 requests around one message each way, three times; returns how many passed.
    async fn three_rounds_around_a_message(&self) -> usize {
        let mut at_a = Client::connect(self.a.address()).await;
        let mut at_b = Client::connect(self.b.address()).await;
        let mut passed = 0;
        for _ in 0..3 {
            self.link.stall();
            passed += at_a.requests(1, &[]).await.passed;
            passed += at_b.requests(LIMIT, &[]).await.passed;
            self.until_sent().await;
            let (of_a, of_b) = self.counted().await;
            self.link.heal();
            self.until_received(of_a, of_b).await;
            passed += at_b.requests(1, &[]).await.passed;
            let (_, of_b) = self.counted().await;
            let received = "one has received the other's last count";
            eventually(received, async || {
                self.a.count(self.tables.of_b).await == of_b
            })
            .await;
        }
        passed
    }
}

/// Returns the file for one HAProxy with `peers` at its table.
fn shared_table() -> Recipe {
    let table = "store http_req_rate(1m)";
    Recipe::of(SLIDING)
        .with("frontend visitors", &format!("{PEERS}\nfrontend visitors"))
        .with(table, &format!("{table} peers pair"))
}

/// Returns the part of `show peers` about the other one.
fn about_the_other(shown: &str) -> String {
    let (_, other) = shown.split_once("(remote").unwrap();
    let end = other.find("(local").unwrap_or(other.len());
    other[..end].to_owned()
}

/// Whether all local counts of this table have been sent. Two lines show it: the last update sent,
/// and then the table with its last change.
fn has_sent(about_the_other: &str, table: &str) -> bool {
    let lines: Vec<&str> = about_the_other.lines().collect();
    let name = format!(" id={table} ");
    let of_table = lines
        .windows(2)
        .find(|two| two[1].trim_start().starts_with("table:") && two[1].contains(&name));
    let Some([sent, changed]) = of_table else {
        return false;
    };
    let sent = number(sent, " last_pushed=");
    sent.is_some() && sent == number(changed, " localupdate=")
}

fn number(line: &str, name: &str) -> Option<u64> {
    let (_, rest) = line.split_once(name)?;
    rest.split(' ').next()?.parse().ok()
}

#[tokio::test]
async fn one_after_the_other_the_limit_passes_over_both_together() {
    let pair = Pair::start(OWN).await;
    let mut clients = [
        Client::connect(pair.a.address()).await,
        Client::connect(pair.b.address()).await,
    ];
    let mut passed = 0;
    for request in 0..LIMIT + 20 {
        passed += clients[request % 2].requests(1, &[]).await.passed;
        let (of_a, of_b) = pair.counted().await;
        pair.until_received(of_a, of_b).await;
    }
    assert_eq!(passed, LIMIT);
    assert_eq!(pair.origin.served(), LIMIT);
}

#[tokio::test]
async fn at_once_between_one_and_two_limits_pass() {
    let pair = Pair::start(OWN).await;
    let (at_a, at_b) = join!(
        burst(pair.a.address(), 4, LIMIT),
        burst(pair.b.address(), 4, LIMIT)
    );
    let passed = at_a.passed + at_b.passed;
    eprintln!("{passed} of {LIMIT} passed at both together: {at_a:?}, {at_b:?}");
    assert!((LIMIT..=2 * LIMIT).contains(&passed), "{passed}");
    assert_eq!(pair.origin.served(), passed);
    // Each gets all counts in the end, and allows no more requests.
    pair.until_received(4 * LIMIT, 4 * LIMIT).await;
    for haproxy in [&pair.a, &pair.b] {
        assert_eq!(burst(haproxy.address(), 1, 1).await, Counts::new(0, 1));
    }
}

#[tokio::test]
async fn without_a_link_each_allows_the_limit() {
    let pair = Pair::start_with(OWN, true).await;
    let (at_a, at_b) = join!(
        burst(pair.a.address(), 4, LIMIT),
        burst(pair.b.address(), 4, LIMIT)
    );
    let each = Counts::new(LIMIT, 3 * LIMIT);
    assert_eq!((at_a, at_b), (each, each));
    assert_eq!(pair.a.count("calls_b").await, 0);
    assert_eq!(pair.origin.served(), 2 * LIMIT);
}

#[tokio::test]
async fn requests_around_a_message_are_lost_in_a_shared_table() {
    for (tables, expected) in [
        (OWN, LIMIT + 1),
        // Three times the limit, and more with time: a low count that arrives replaces a high one.
        (SHARED, 3 * LIMIT),
    ] {
        let pair = Pair::start(tables).await;
        let passed = pair.three_rounds_around_a_message().await;
        assert_eq!(passed, expected, "{tables:?}");
        assert_eq!(pair.origin.served(), passed);
    }
}

#[tokio::test]
async fn a_killed_one_gets_its_own_counts_from_the_other() {
    let mut pair = Pair::start(OWN).await;
    let spent = burst(pair.a.address(), 1, LIMIT).await;
    assert_eq!(spent, Counts::new(LIMIT, 0));
    pair.until_received(LIMIT, 0).await;
    pair.a.kill();
    pair.a.start_again().await;
    eventually("it has received its own counts", async || {
        pair.a.count("calls_a").await == LIMIT
    })
    .await;
    assert_eq!(burst(pair.a.address(), 1, 1).await, Counts::new(0, 1));
}
