//! Two HAProxies that tell each other: what they let through together, and how far off that may be.

use anteroom_testkit::eventually;
use anteroom_testkit::relay::{Delays, Relay};
use tokio::join;

use crate::haproxy::calls::{Caller, Counting, Tally, burst};
use crate::haproxy::process::{Haproxy, TRIES, free_addresses};
use crate::haproxy::recipe::{LIMIT, PAIR, Recipe, SLIDING};

const PEERS: &str = "peers pair\n    peer a 10.0.0.11:10000\n    peer b 10.0.0.12:10000\n";

/// Which table counts calls at the one and at the other.
#[derive(Clone, Copy, Debug)]
struct Tables {
    of_a: &'static str,
    of_b: &'static str,
}

/// Each writes its own, as in the file of the page.
const OWN: Tables = Tables {
    of_a: "calls_a",
    of_b: "calls_b",
};
/// Both write the same: the trap that the page warns of.
const SHARED: Tables = Tables {
    of_a: "calls",
    of_b: "calls",
};

/// Two HAProxies before one origin, and the link over which they talk.
#[derive(Debug)]
struct Pair {
    a: Haproxy,
    b: Haproxy,
    link: Relay,
    /// Where the second finds nobody. If both connected, HAProxy would give up one of two
    /// connections a moment after they had been in touch.
    _dead_end: Relay,
    tables: Tables,
    origin: Counting,
}

impl Pair {
    /// Two that are in touch.
    async fn start(tables: Tables) -> Self {
        let pair = Self::start_with(tables, false).await;
        eventually("the two are in touch", async || {
            let (a, b) = pair.peers().await;
            [a, b]
                .iter()
                .all(|shown| shown.contains("last_status=ESTA"))
        })
        .await;
        // That may be a connection that is being given up: only what arrives shows that one lasts.
        // It is about clients who do not call.
        let Self { a, b, .. } = &pair;
        for (from, to, table, key) in [
            (a, b, tables.of_a, "::ffff:192.0.2.1"),
            (b, a, tables.of_b, "::ffff:192.0.2.2"),
        ] {
            let set = format!("set table {table} key {key} data.http_req_rate 1");
            from.ask(&set).await;
            eventually("the other hears of a client", async || {
                let heard = to.counts(table).await;
                heard.iter().any(|(client, _)| client == key)
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
        let mut said = String::new();
        for _ in 0..TRIES {
            let [clients_a, clients_b, peer_a, peer_b] = free_addresses();
            let link = Relay::start(peer_b, Delays::default()).await;
            let dead_end = Relay::start(peer_a, Delays::default()).await;
            dead_end.cut();
            if is_cut {
                link.cut();
            }
            // Each has its own address, and the other's beyond a link.
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
                (Err(log), _) | (_, Err(log)) => said = log,
            }
        }
        panic!("HAProxy does not start:\n{said}");
    }

    /// What each says about the other.
    async fn peers(&self) -> (String, String) {
        let (a, b) = join!(self.a.ask("show peers"), self.b.ask("show peers"));
        (about_the_other(&a), about_the_other(&b))
    }

    /// Waits until each has said all that it knows of its own calls; whether that arrives is
    /// another matter.
    async fn until_said(&self) {
        eventually("both have said what they counted", async || {
            let (a, b) = self.peers().await;
            has_said(&a, self.tables.of_a) && has_said(&b, self.tables.of_b)
        })
        .await;
    }

    /// Waits until each has heard that the other has counted so many.
    async fn until_heard(&self, of_a: usize, of_b: usize) {
        eventually("both have heard what the other counted", async || {
            let (a, b) = join!(
                self.a.count(self.tables.of_b),
                self.b.count(self.tables.of_a)
            );
            (b, a) == (of_a, of_b)
        })
        .await;
    }

    /// What each has counted itself.
    async fn counted(&self) -> (usize, usize) {
        join!(
            self.a.count(self.tables.of_a),
            self.b.count(self.tables.of_b)
        )
    }

    /// Lets 102 calls come around one message each way, three times; how many passed.
    async fn three_rounds_around_a_message(&self) -> usize {
        let mut at_a = Caller::connect(self.a.address()).await;
        let mut at_b = Caller::connect(self.b.address()).await;
        let mut passed = 0;
        for _ in 0..3 {
            self.link.stall();
            passed += at_a.calls(1, &[]).await.passed;
            passed += at_b.calls(LIMIT, &[]).await.passed;
            self.until_said().await;
            let (of_a, of_b) = self.counted().await;
            self.link.heal();
            self.until_heard(of_a, of_b).await;
            passed += at_b.calls(1, &[]).await.passed;
            let (_, of_b) = self.counted().await;
            let heard = "the one has heard of the last call at the other";
            eventually(heard, async || self.a.count(self.tables.of_b).await == of_b).await;
        }
        passed
    }
}

/// The file for one HAProxy with `peers` at its table.
fn shared_table() -> Recipe {
    let table = "store http_req_rate(1m)";
    Recipe::of(SLIDING)
        .with("frontend visitors", &format!("{PEERS}\nfrontend visitors"))
        .with(table, &format!("{table} peers pair"))
}

/// The part of `show peers` that is not about itself.
fn about_the_other(shown: &str) -> String {
    let (_, other) = shown.split_once("(remote").unwrap();
    let end = other.find("(local").unwrap_or(other.len());
    other[..end].to_owned()
}

/// Whether all that was counted here in this table has been sent. It stands in two lines: what was
/// sent last, and then which table that is and what was changed last.
fn has_said(about_the_other: &str, table: &str) -> bool {
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
    let mut callers = [
        Caller::connect(pair.a.address()).await,
        Caller::connect(pair.b.address()).await,
    ];
    let mut passed = 0;
    for call in 0..LIMIT + 20 {
        passed += callers[call % 2].calls(1, &[]).await.passed;
        let (of_a, of_b) = pair.counted().await;
        pair.until_heard(of_a, of_b).await;
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
    // Each is told all in the end, and lets nobody through any more.
    pair.until_heard(4 * LIMIT, 4 * LIMIT).await;
    for haproxy in [&pair.a, &pair.b] {
        assert_eq!(burst(haproxy.address(), 1, 1).await, Tally::new(0, 1));
    }
}

#[tokio::test]
async fn without_a_word_between_them_each_lets_the_limit_through() {
    let pair = Pair::start_with(OWN, true).await;
    let (at_a, at_b) = join!(
        burst(pair.a.address(), 4, LIMIT),
        burst(pair.b.address(), 4, LIMIT)
    );
    let each = Tally::new(LIMIT, 3 * LIMIT);
    assert_eq!((at_a, at_b), (each, each));
    assert_eq!(pair.a.count("calls_b").await, 0);
    assert_eq!(pair.origin.served(), 2 * LIMIT);
}

#[tokio::test]
async fn what_comes_around_a_message_is_forgotten_where_both_write_one_table() {
    for (tables, expected) in [
        (OWN, LIMIT + 1),
        // Three times the limit, and not the end of it: a low count that arrives replaces a high
        // one.
        (SHARED, 3 * LIMIT),
    ] {
        let pair = Pair::start(tables).await;
        let passed = pair.three_rounds_around_a_message().await;
        assert_eq!(passed, expected, "{tables:?}");
        assert_eq!(pair.origin.served(), passed);
    }
}

#[tokio::test]
async fn one_that_was_killed_is_told_its_own_counts_by_the_other() {
    let mut pair = Pair::start(OWN).await;
    let spent = burst(pair.a.address(), 1, LIMIT).await;
    assert_eq!(spent, Tally::new(LIMIT, 0));
    pair.until_heard(LIMIT, 0).await;
    pair.a.kill();
    pair.a.start_again().await;
    eventually("it has been told what it had counted", async || {
        pair.a.count("calls_a").await == LIMIT
    })
    .await;
    assert_eq!(burst(pair.a.address(), 1, 1).await, Tally::new(0, 1));
}
