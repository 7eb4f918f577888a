//! Who stays and who ends, by hand.

use std::sync::atomic::AtomicUsize;

use super::*;

#[derive(Default)]
struct Seen {
    reclaimed: Mutex<Vec<Reclaimed>>,
    turned_away: Mutex<Vec<TurnedAway>>,
    paused: AtomicUsize,
}

impl ConnectionObserver for Seen {
    fn reclaimed(&self, why: Reclaimed) {
        self.reclaimed.lock().push(why);
    }

    fn turned_away(&self, why: TurnedAway) {
        self.turned_away.lock().push(why);
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

    /// So many connections, a millisecond apart.
    async fn admit_many(&self, count: usize) -> Vec<ConnectionSlot> {
        let mut places = Vec::new();
        for _ in 0..count {
            places.push(self.admit());
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        places
    }
}

impl ConnectionSlot {
    fn is_told_to_end(&self) -> bool {
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

/// The numbers of those that were told to end.
fn ending(places: &[ConnectionSlot]) -> Vec<usize> {
    let told = places.iter().enumerate();
    told.filter(|(_, place)| place.is_told_to_end())
        .map(|(number, _)| number)
        .collect()
}

#[tokio::test(start_paused = true)]
async fn near_the_limit_the_longest_idle_connection_ends_for_each_new_one() {
    let scene = Scene::new(100, 0);
    let places = scene.admit_many(70).await;
    // What was asked last is not what came last.
    places[0].begin();
    places[1].begin();
    tokio::time::advance(Duration::from_secs(2)).await;
    places[1].finish();
    places[3].begin();
    places[3].finish();
    let first = scene.admit();
    assert_eq!(ending(&places), [2]);
    let second = scene.admit();
    assert_eq!(ending(&places), [2, 4]);
    assert_eq!(scene.table.occupancy().open, 70);
    for place in [&first, &second] {
        assert_eq!(place.entry.standing(), Standing::Ordinary);
    }
    assert_eq!(*scene.seen.reclaimed.lock(), [Reclaimed::Crowded; 2]);
}

#[tokio::test(start_paused = true)]
async fn near_the_limit_answers_close_and_with_a_ticket_they_do_not() {
    let scene = Scene::new(100, 0);
    let places = scene.admit_many(69).await;
    assert!(!places[0].closes());
    places[1].show_ticket();
    let _one_more = scene.admit();
    assert!(places[0].closes() && !places[1].closes());
    Claim(Arc::clone(&places[1].entry)).set_ticket(false);
    assert!(places[1].closes());
}

#[tokio::test(start_paused = true)]
async fn who_has_just_come_is_left_alone_until_the_reserve_is_reached() {
    let scene = Scene::new(100, 0);
    let places = scene.admit_many(90).await;
    assert!(ending(&places).is_empty());
    let _next = scene.admit();
    assert_eq!(ending(&places), [0]);
}

#[tokio::test(start_paused = true)]
async fn the_reserve_is_kept_for_those_who_show_a_ticket() {
    let scene = Scene::new(100, 0);
    let places = scene.admit_many(90).await;
    places.iter().for_each(ConnectionSlot::begin);
    let stranger = scene.admit();
    assert_eq!(stranger.entry.standing(), Standing::Reserve);
    let claim = Claim(Arc::clone(&stranger.entry));
    assert!(claim.needs_ticket() && stranger.closes());
    claim.set_ticket(true);
    assert!(!claim.needs_ticket() && !stranger.closes());
    // It counts no more among those without one.
    places[5].show_ticket();
    assert_eq!(scene.admit().entry.standing(), Standing::Ordinary);
}

#[tokio::test(start_paused = true)]
async fn requests_without_a_ticket_do_not_take_the_reserve_one_by_one() {
    let scene = Scene::new(100, 0);
    let mut places = scene.admit_many(90).await;
    places.iter().for_each(ConnectionSlot::begin);
    // Each takes the place of the one before, which has sent nothing yet.
    places.extend(scene.admit_many(3).await);
    assert_eq!(ending(&places), [90, 91]);
    assert_eq!(places[92].entry.standing(), Standing::Ordinary);
    let claim = Claim(Arc::clone(&places[92].entry));
    assert!(!claim.needs_ticket());
    places[92].begin();
    assert!(claim.needs_ticket() && places[92].closes());
    // It shows a ticket, and does not any more.
    claim.set_ticket(true);
    assert!(!claim.needs_ticket());
    claim.set_ticket(false);
    assert!(claim.needs_ticket());
    // By HTTP/2 a second request of a connection takes no more of it.
    places[0].begin();
    places[0].finish();
    assert!(claim.needs_ticket());
    places[0].finish();
    assert!(!claim.needs_ticket());
}

#[tokio::test(start_paused = true)]
async fn connections_with_a_ticket_end_last() {
    let scene = Scene::new(100, 0);
    let places = scene.admit_many(50).await;
    places.iter().for_each(ConnectionSlot::show_ticket);
    tokio::time::advance(Duration::from_secs(60)).await;
    let newer = scene.admit_many(50).await;
    let next = scene.admit();
    assert_eq!((ending(&places), ending(&newer)), (vec![], vec![0]));
    newer.iter().skip(1).for_each(ConnectionSlot::begin);
    next.begin();
    let _last = scene.admit();
    assert_eq!(ending(&places), [0]);
}

#[tokio::test(start_paused = true)]
async fn where_nobody_is_idle_the_next_connection_is_turned_away() {
    let scene = Scene::new(10, 0);
    let mut places = Vec::new();
    for _ in 0..10 {
        places.push(scene.admit());
        places.iter().rev().take(1).for_each(ConnectionSlot::begin);
    }
    let away = scene.admit_many(5).await;
    for place in &away {
        let claim = Claim(Arc::clone(&place.entry));
        assert_eq!(claim.turned_away(), Some(TurnedAway::Full));
        assert!(claim.needs_ticket() && place.closes());
    }
    assert_eq!(ending(&away), [0]);
    assert_eq!(scene.table.occupancy().open, 10);
    drop(away);
    places[3].finish();
    let next = scene.admit();
    assert_eq!((ending(&places), next.is_told_to_end()), (vec![3], false));
}

#[tokio::test(start_paused = true)]
async fn an_address_at_its_limit_ends_its_own_connections_and_no_others() {
    let scene = Scene::new(1_000, 3);
    let other = scene.admit_from("2001:db8:0:2::1");
    let mut places = Vec::new();
    for host in 1..=3 {
        places.push(scene.admit_from(&format!("2001:db8:0:1::{host}")));
        tokio::time::advance(Duration::from_millis(1)).await;
    }
    places[0].begin();
    places.push(scene.admit_from("2001:db8:0:1:ffff::"));
    assert_eq!(ending(&places), [1]);
    places[2].begin();
    places[3].begin();
    let away = scene.admit_from("2001:db8:0:1::9");
    let claim = Claim(Arc::clone(&away.entry));
    assert_eq!(claim.turned_away(), Some(TurnedAway::Address));
    drop(places.pop());
    assert_eq!(
        scene.admit_from("2001:db8:0:1::9").entry.standing(),
        Standing::Ordinary
    );
    assert!(!other.is_told_to_end());
    assert_eq!(*scene.seen.reclaimed.lock(), [Reclaimed::Address]);
}

#[tokio::test(start_paused = true)]
async fn a_trusted_proxy_speaks_for_many() {
    let scene = Scene::new(100, 3);
    let mut places = Vec::new();
    for _ in 0..99 {
        places.push(scene.admit_from("::ffff:10.1.2.3"));
    }
    assert!(ending(&places).is_empty());
    Claim(Arc::clone(&places[0].entry)).set_ticket(false);
    assert!(!places[0].closes());
    let _visitor = scene.admit();
    let _last = scene.admit_from("10.1.2.3");
    assert_eq!(scene.table.occupancy().open, 100);
}

#[tokio::test(start_paused = true)]
async fn what_has_ended_takes_no_memory() {
    let scene = Scene::new(1_000, 10);
    for _ in 0..10_000 {
        drop(scene.admit());
    }
    let places = scene.table.shared.places.lock();
    assert!(places.idle.len() < 100 && places.addresses.is_empty());
    assert_eq!(scene.table.shared.sockets.load(Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn accepting_pauses_only_for_connections_that_are_about_to_end() {
    let scene = Scene::new(10, 0);
    let mut places = scene.admit_many(18).await;
    assert_eq!(ending(&places).len(), 9);
    let mut ready = Box::pin(scene.table.accept_ready(&scene.seen));
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(ready.as_mut().poll(&mut cx).is_pending());
    drop(places.remove(0));
    ready.await;
    assert_eq!(scene.seen.paused.load(Relaxed), 1);
    drop(places);
    scene.table.all_free().await;
}
