//! Tests of which connections stay open and which close.

use std::sync::atomic::AtomicUsize;

use super::*;

#[derive(Default)]
struct Seen {
    reclaimed: Mutex<Vec<Reclaimed>>,
    turned_away: Mutex<Vec<TurnedAway>>,
    paused: AtomicUsize,
}

impl ConnectionObserver for Seen {
    fn reclaimed(&self, reason: Reclaimed) {
        self.reclaimed.lock().push(reason);
    }

    fn turned_away(&self, reason: TurnedAway) {
        self.turned_away.lock().push(reason);
    }

    fn accept_paused(&self) {
        self.paused.fetch_add(1, Relaxed);
    }
}

struct Scene {
    table: ConnectionTable,
    seen: Seen,
}

impl Scene {
    fn new(connections: usize, per_address: usize) -> Self {
        let limits = ConnectionLimits {
            connections,
            per_address,
            trusted_proxies: vec!["10.0.0.0/8".parse().unwrap()],
        };
        Self {
            table: ConnectionTable::new(limits),
            seen: Seen::default(),
        }
    }

    fn admit_from(&self, address: &str) -> ConnectionSlot {
        let peer = SocketAddr::new(address.parse().unwrap(), 1);
        self.table.admit(peer, &self.seen)
    }

    fn admit(&self) -> ConnectionSlot {
        self.admit_from("192.0.2.1")
    }

    /// Admits `count` connections, a millisecond apart.
    async fn admit_many(&self, count: usize) -> Vec<ConnectionSlot> {
        let mut slots = Vec::new();
        for _ in 0..count {
            slots.push(self.admit());
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        slots
    }
}

impl ConnectionSlot {
    fn must_close(&self) -> bool {
        self.entry.is_gone()
    }

    fn begin(&self) {
        self.entry.begin();
    }

    fn finish(&self) {
        self.entry.finish(Instant::now());
    }

    fn show_ticket(&self) {
        Claim(Arc::clone(&self.entry)).set_ticket(true);
    }

    fn closes(&self) -> bool {
        self.entry.closes_with_own_answer()
    }
}

/// Returns the indexes of connections that must close.
fn ending(slots: &[ConnectionSlot]) -> Vec<usize> {
    let closing = slots.iter().enumerate();
    closing
        .filter(|(_, slot)| slot.must_close())
        .map(|(number, _)| number)
        .collect()
}

#[tokio::test(start_paused = true)]
async fn near_the_limit_each_new_connection_closes_the_longest_idle_one() {
    let scene = Scene::new(100, 0);
    let slots = scene.admit_many(70).await;
    // The order of the last requests differs from the order of arrival.
    slots[0].begin();
    slots[1].begin();
    tokio::time::advance(Duration::from_secs(2)).await;
    slots[1].finish();
    slots[3].begin();
    slots[3].finish();
    let first = scene.admit();
    assert_eq!(ending(&slots), [2]);
    let second = scene.admit();
    assert_eq!(ending(&slots), [2, 4]);
    assert_eq!(scene.table.occupancy().open, 70);
    for slot in [&first, &second] {
        assert_eq!(slot.entry.standing(), Standing::Ordinary);
    }
    assert_eq!(*scene.seen.reclaimed.lock(), [Reclaimed::Full; 2]);
}

#[tokio::test(start_paused = true)]
async fn near_the_limit_responses_without_a_ticket_close_the_connection() {
    let scene = Scene::new(100, 0);
    let slots = scene.admit_many(69).await;
    assert!(!slots[0].closes());
    slots[1].show_ticket();
    let _one_more = scene.admit();
    assert!(slots[0].closes() && !slots[1].closes());
    Claim(Arc::clone(&slots[1].entry)).set_ticket(false);
    assert!(slots[1].closes());
}

#[tokio::test(start_paused = true)]
async fn a_new_connection_stays_open_until_the_reserve_is_reached() {
    let scene = Scene::new(100, 0);
    let slots = scene.admit_many(90).await;
    assert!(ending(&slots).is_empty());
    let _next = scene.admit();
    assert_eq!(ending(&slots), [0]);
}

#[tokio::test(start_paused = true)]
async fn the_reserve_is_for_clients_with_a_ticket() {
    let scene = Scene::new(100, 0);
    let slots = scene.admit_many(90).await;
    slots.iter().for_each(ConnectionSlot::begin);
    let stranger = scene.admit();
    assert_eq!(stranger.entry.standing(), Standing::Reserve);
    let claim = Claim(Arc::clone(&stranger.entry));
    assert!(claim.needs_ticket() && stranger.closes());
    claim.set_ticket(true);
    assert!(!claim.needs_ticket() && !stranger.closes());
    // It no longer counts among those without a ticket.
    slots[5].show_ticket();
    assert_eq!(scene.admit().entry.standing(), Standing::Ordinary);
}

#[tokio::test(start_paused = true)]
async fn requests_without_a_ticket_cannot_use_up_the_reserve() {
    let scene = Scene::new(100, 0);
    let mut slots = scene.admit_many(90).await;
    slots.iter().for_each(ConnectionSlot::begin);
    // Each replaces the one before, which has sent nothing yet.
    slots.extend(scene.admit_many(3).await);
    assert_eq!(ending(&slots), [90, 91]);
    assert_eq!(slots[92].entry.standing(), Standing::Ordinary);
    let claim = Claim(Arc::clone(&slots[92].entry));
    assert!(!claim.needs_ticket());
    slots[92].begin();
    assert!(claim.needs_ticket() && slots[92].closes());
    // It shows a ticket, and then no longer.
    claim.set_ticket(true);
    assert!(!claim.needs_ticket());
    claim.set_ticket(false);
    assert!(claim.needs_ticket());
    // A second HTTP/2 request on the same connection uses no more of the reserve.
    slots[0].begin();
    slots[0].finish();
    assert!(claim.needs_ticket());
    slots[0].finish();
    assert!(!claim.needs_ticket());
}

#[tokio::test(start_paused = true)]
async fn connections_with_a_ticket_close_last() {
    let scene = Scene::new(100, 0);
    let slots = scene.admit_many(50).await;
    slots.iter().for_each(ConnectionSlot::show_ticket);
    tokio::time::advance(Duration::from_secs(60)).await;
    let newer = scene.admit_many(50).await;
    let next = scene.admit();
    assert_eq!((ending(&slots), ending(&newer)), (vec![], vec![0]));
    newer.iter().skip(1).for_each(ConnectionSlot::begin);
    next.begin();
    let _last = scene.admit();
    assert_eq!(ending(&slots), [0]);
}

#[tokio::test(start_paused = true)]
async fn without_an_idle_connection_the_next_one_is_turned_away() {
    let scene = Scene::new(10, 0);
    let mut slots = Vec::new();
    for _ in 0..10 {
        slots.push(scene.admit());
        slots.iter().rev().take(1).for_each(ConnectionSlot::begin);
    }
    let turned_away = scene.admit_many(5).await;
    for slot in &turned_away {
        let claim = Claim(Arc::clone(&slot.entry));
        assert_eq!(claim.turned_away(), Some(TurnedAway::Full));
        assert!(claim.needs_ticket() && slot.closes());
    }
    assert_eq!(ending(&turned_away), [0]);
    assert_eq!(scene.table.occupancy().open, 10);
    drop(turned_away);
    slots[3].finish();
    let next = scene.admit();
    assert_eq!((ending(&slots), next.must_close()), (vec![3], false));
}

#[tokio::test(start_paused = true)]
async fn an_address_at_its_limit_closes_only_its_own_connections() {
    let scene = Scene::new(1_000, 3);
    let other = scene.admit_from("2001:db8:0:2::1");
    let mut slots = Vec::new();
    for host in 1..=3 {
        slots.push(scene.admit_from(&format!("2001:db8:0:1::{host}")));
        tokio::time::advance(Duration::from_millis(1)).await;
    }
    slots[0].begin();
    slots.push(scene.admit_from("2001:db8:0:1:ffff::"));
    assert_eq!(ending(&slots), [1]);
    slots[2].begin();
    slots[3].begin();
    let turned_away = scene.admit_from("2001:db8:0:1::9");
    let claim = Claim(Arc::clone(&turned_away.entry));
    assert_eq!(claim.turned_away(), Some(TurnedAway::Address));
    drop(slots.pop());
    assert_eq!(
        scene.admit_from("2001:db8:0:1::9").entry.standing(),
        Standing::Ordinary
    );
    assert!(!other.must_close());
    assert_eq!(*scene.seen.reclaimed.lock(), [Reclaimed::Address]);
}

#[tokio::test(start_paused = true)]
async fn a_trusted_proxy_has_no_address_limit() {
    let scene = Scene::new(100, 3);
    let mut slots = Vec::new();
    for _ in 0..99 {
        slots.push(scene.admit_from("::ffff:10.1.2.3"));
    }
    assert!(ending(&slots).is_empty());
    Claim(Arc::clone(&slots[0].entry)).set_ticket(false);
    assert!(!slots[0].closes());
    let _visitor = scene.admit();
    let _last = scene.admit_from("10.1.2.3");
    assert_eq!(scene.table.occupancy().open, 100);
}

#[tokio::test(start_paused = true)]
async fn closed_connections_take_no_memory() {
    let scene = Scene::new(1_000, 10);
    for _ in 0..10_000 {
        drop(scene.admit());
    }
    let state = scene.table.shared.state.lock();
    assert!(state.idle.len() < 100 && state.addresses.is_empty());
    assert_eq!(scene.table.shared.sockets.load(Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn accepting_pauses_only_for_closing_connections() {
    let scene = Scene::new(10, 0);
    let mut slots = scene.admit_many(18).await;
    assert_eq!(ending(&slots).len(), 9);
    let mut ready = Box::pin(scene.table.accept_ready(&scene.seen));
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(ready.as_mut().poll(&mut cx).is_pending());
    drop(slots.remove(0));
    ready.await;
    assert_eq!(scene.seen.paused.load(Relaxed), 1);
    drop(slots);
    scene.table.all_free().await;
}
