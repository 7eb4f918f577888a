//! Many nodes in one process and in virtual time: limits, and the load on stores.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod deployment;
mod events;
mod overrides;
mod turn_waits;

use std::sync::Arc;
use std::time::Duration;

use anteroom_node::{Outcome, RoomHandle};
use anteroom_room::queue_position::QueueReason;
use parking_lot::Mutex;
use tokio::time::Instant;

use deployment::{Checker, Deployment, Rules, let_pass, request};

/// Simulates visitors, each with a request every second, at another node each time.
async fn run_visitors(deployment: &Deployment, people: usize, duration: Duration) -> Checker {
    let checker = Arc::new(Mutex::new(Checker::default()));
    let until = Instant::now() + duration;
    let visitors = (0..people).map(|visitor| {
        let rooms: Vec<_> = (0..deployment.nodes.len())
            .map(|n| deployment.room(n))
            .collect();
        let (checker, clock) = (Arc::clone(&checker), Arc::clone(&deployment.clock));
        tokio::spawn(async move {
            let mut cookie = None;
            let_pass(Duration::from_millis(visitor as u64 * 7 % 1_000)).await;
            for round in 0.. {
                if Instant::now() >= until {
                    break;
                }
                let room = &rooms[(visitor + round) % rooms.len()];
                let outcome = request(room, cookie.as_deref()).await;
                let now = anteroom_store::Clock::now(&*clock);
                cookie = checker.lock().note(outcome, cookie, now);
                let_pass(Duration::from_millis(900 + visitor as u64 % 200)).await;
            }
        })
    });
    for visitor in visitors.collect::<Vec<_>>() {
        visitor.await.unwrap();
    }
    Arc::into_inner(checker).unwrap().into_inner()
}

const SMALL: Rules = Rules {
    seats: 20,
    per_minute: 1_000,
    session_s: 30,
    more: "",
};

#[tokio::test(start_paused = true)]
async fn six_nodes_in_two_data_centers_fill_the_room_exactly() {
    let deployment = Deployment::two_levels(2, 3, SMALL).await;
    let checker = run_visitors(&deployment, 300, Duration::from_secs(25)).await;
    assert_eq!((checker.inside_max, checker.admitted_total), (20, 20));
}

#[tokio::test(start_paused = true)]
async fn three_nodes_on_one_store_fill_the_room_exactly() {
    let deployment = Deployment::one_level(3, SMALL).await;
    let checker = run_visitors(&deployment, 300, Duration::from_secs(25)).await;
    assert_eq!((checker.inside_max, checker.admitted_total), (20, 20));
}

#[tokio::test(start_paused = true)]
async fn admissions_per_minute_over_all_nodes_reach_the_limit() {
    let rules = Rules {
        seats: 10_000,
        per_minute: 60,
        ..SMALL
    };
    let deployment = Deployment::two_levels(2, 3, rules).await;
    let checker = run_visitors(&deployment, 400, Duration::from_secs(170)).await;
    let most = checker.admitted_in_a_minute_max();
    assert!((55..=60).contains(&most), "{most}");
}

#[tokio::test(start_paused = true)]
async fn a_visitor_at_a_node_without_slots_is_admitted_at_once() {
    let deployment = Deployment::two_levels(2, 1, SMALL).await;
    let began = Instant::now();
    let outcome = request(&deployment.room(1), None).await;
    assert!(matches!(outcome, Outcome::Pass(_)), "{outcome:?}");
    // The request goes to the data center's store, to the root's and back.
    let took = began.elapsed();
    assert!(took <= Duration::from_millis(250), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn only_a_pass_that_waits_for_the_store_is_counted() {
    let deployment = Deployment::two_levels(2, 1, SMALL).await;
    let (home, other) = (deployment.room(0), deployment.room(1));
    let Outcome::Pass(pass) = request(&home, None).await else {
        panic!("there is room");
    };
    let waited = |room: &RoomHandle| room.stats().waited_passes_total;
    let again = request(&home, pass.new_ticket.as_deref()).await;
    assert!(matches!(again, Outcome::Pass(_)), "{again:?}");
    let_pass(Duration::from_secs(2)).await;
    // The visitor has no seat here, so the node requests one.
    let moved = request(&other, pass.new_ticket.as_deref()).await;
    assert!(matches!(moved, Outcome::Pass(_)), "{moved:?}");
    assert_eq!((waited(&home), waited(&other)), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn requests_to_stores_do_not_grow_with_visitors() {
    let rules = Rules {
        seats: 1_000_000,
        per_minute: 1_000_000,
        ..SMALL
    };
    for pause_ms in [200, 1] {
        let deployment = Deployment::two_levels(2, 3, rules).await;
        let (before, began) = (deployment.requests(), Instant::now());
        let (mut visitors, mut rejected) = (0u32, 0u32);
        while began.elapsed() < Duration::from_secs(20) {
            let room = deployment.room(visitors as usize % 6);
            visitors += 1;
            rejected += u32::from(!matches!(request(&room, None).await, Outcome::Pass(_)));
            let_pass(Duration::from_millis(pause_ms)).await;
        }
        let (after, secs) = (deployment.requests(), began.elapsed().as_secs_f64());
        let near = (after.0 - before.0) as f64 / secs / 6.0;
        let far = (after.1 - before.1) as f64 / secs / 2.0;
        let report = format!(
            "{visitors} visitors: {near:.1} requests a second from each node to its local store, \
             {far:.1} from each data center to the root, {rejected} rejected"
        );
        println!("{report}");
        assert!(near <= 11.0 && far <= 8.0, "{report}");
        // When traffic begins suddenly, no slots are leased ahead, and the root is far away.
        assert!(rejected <= 30, "{report}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_idle_room_sends_few_requests() {
    let deployment = Deployment::two_levels(2, 3, SMALL).await;
    let_pass(Duration::from_secs(30)).await;
    let before = deployment.requests();
    let_pass(Duration::from_secs(60)).await;
    let after = deployment.requests();
    let near = (after.0 - before.0) as f64 / 60.0 / 6.0;
    let far = (after.1 - before.1) as f64 / 60.0 / 2.0;
    assert!(near < 1.0 && far < 0.5, "{near} local, {far} to the root");
}

#[tokio::test(start_paused = true)]
async fn without_the_root_a_data_center_extends_sessions_from_its_lease() {
    let deployment = Deployment::two_levels(2, 1, SMALL).await;
    let Outcome::Pass(pass) = request(&deployment.room(0), None).await else {
        panic!("there is room");
    };
    deployment.root.set_unavailable(true);
    let mut cookie = pass.new_ticket.unwrap();
    for _ in 0..20 {
        let_pass(Duration::from_secs(5)).await;
        let Outcome::Pass(again) = request(&deployment.room(0), Some(&cookie)).await else {
            panic!("its session was extended");
        };
        cookie = again.new_ticket.unwrap_or(cookie);
    }
    let room = deployment.room(0);
    assert!(room.stats().failed_upstream_syncs_total > 0);
    assert!(room.stats().has_live_lease);
    deployment.root.set_unavailable(false);
    let_pass(Duration::from_secs(5)).await;
    assert_admits(&room).await;
}

/// Asserts that a visitor is admitted within a few attempts. An upstream sync that is in flight may
/// not have the free seats yet.
async fn assert_admits(room: &RoomHandle) {
    for _ in 0..3 {
        if matches!(request(room, None).await, Outcome::Pass(_)) {
            return;
        }
        let_pass(Duration::from_secs(2)).await;
    }
    panic!("nobody is admitted although seats are free again");
}

#[tokio::test(start_paused = true)]
async fn without_its_own_store_a_node_admits_nobody_after_its_lease() {
    let deployment = Deployment::one_level(2, SMALL).await;
    assert!(matches!(
        request(&deployment.room(0), None).await,
        Outcome::Pass(_)
    ));
    deployment.root.set_unavailable(true);
    let_pass(Duration::from_secs(11)).await;
    let Outcome::Queue { position, .. } = request(&deployment.room(0), None).await else {
        panic!("its lease has ended");
    };
    assert_eq!(position.reason, QueueReason::StoreUnavailable);
}

#[tokio::test(start_paused = true)]
async fn an_empty_store_grants_nothing_until_earlier_leases_have_ended() {
    for is_one_level in [true, false] {
        let deployment = if is_one_level {
            Deployment::one_level(3, SMALL).await
        } else {
            Deployment::two_levels(1, 3, SMALL).await
        };
        let checker = run_visitors(&deployment, 100, Duration::from_secs(10)).await;
        assert_eq!(checker.admitted_total, 20);
        deployment.root.wipe();
        let_pass(Duration::from_secs(2)).await;
        let Outcome::Queue { position, .. } = request(&deployment.room(0), None).await else {
            panic!("the ledger is lost");
        };
        let is_recovering = matches!(position.reason, QueueReason::Recovering { .. });
        assert!(is_recovering, "{:?}", position.reason);
        // Ten minutes for the lease of a data center, half a minute for a seat.
        let wait_secs = if is_one_level { 60 } else { 660 };
        let_pass(Duration::from_secs(wait_secs)).await;
        assert_admits(&deployment.room(0)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_comes_back_with_its_data_opens_at_once() {
    for is_one_level in [true, false] {
        let deployment = if is_one_level {
            Deployment::one_level(3, SMALL).await
        } else {
            Deployment::two_levels(1, 3, SMALL).await
        };
        let epoch = deployment.room(0).stats().snapshot.epoch;
        for store in deployment.locals.iter().chain([&deployment.root]) {
            store.restart();
        }
        let_pass(Duration::from_secs(15)).await;
        assert_admits(&deployment.room(0)).await;
        assert_eq!(deployment.room(0).stats().snapshot.epoch, epoch);
    }
}

#[tokio::test(start_paused = true)]
async fn a_data_center_that_loses_its_store_keeps_visitors_and_limits() {
    let deployment = Deployment::two_levels(2, 3, SMALL).await;
    let checker = run_visitors(&deployment, 100, Duration::from_secs(5)).await;
    assert_eq!(checker.admitted_total, 20);
    deployment.locals[0].wipe();
    let checker = run_visitors(&deployment, 100, Duration::from_secs(20)).await;
    assert_eq!(checker.admitted_total, 0, "all seats are taken");
}

#[tokio::test(start_paused = true)]
async fn the_last_node_of_a_data_center_returns_its_lease() {
    let deployment = Deployment::two_levels(2, 1, SMALL).await;
    let checker = run_visitors(&deployment, 6, Duration::from_secs(3)).await;
    assert_eq!(checker.admitted_total, 6);
    deployment.nodes[1].stop().await;
    let_pass(Duration::from_secs(2)).await;
    for _ in 0..14 {
        let outcome = request(&deployment.room(0), None).await;
        assert!(matches!(outcome, Outcome::Pass(_)), "{outcome:?}");
        let_pass(Duration::from_millis(300)).await;
    }
    let_pass(Duration::from_secs(2)).await;
    let snapshot = deployment.room(0).stats().snapshot;
    assert_eq!(
        (snapshot.active, snapshot.phantoms),
        (20, 0),
        "{snapshot:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn any_node_shows_every_data_centers_admissions_and_their_age() {
    let deployment = Deployment::two_levels(2, 1, SMALL).await;
    run_visitors(&deployment, 10, Duration::from_secs(5)).await;
    let_pass(Duration::from_secs(3)).await;
    for node in 0..2 {
        let state = deployment.room(node).state().await;
        let minutes = state.history.iter();
        let mut by_name = std::collections::BTreeMap::new();
        for (name, count) in minutes.flat_map(|minute| &minute.admitted) {
            *by_name.entry(name.as_str()).or_insert(0) += count;
        }
        assert_eq!(by_name.values().sum::<u32>(), 10, "{by_name:?}");
        assert_eq!(by_name.keys().copied().collect::<Vec<_>>(), ["dc0", "dc1"]);
        assert_eq!((state.global_nodes, state.data_center_nodes), (2, 1));
        // All visitors go to both data centers, so some have a seat in each.
        assert!((10..=20).contains(&state.active_users), "{state:?}");
        let age = state.age.0;
        assert!((30..=2_000).contains(&age), "{age} ms old");
    }
    deployment.root.set_unavailable(true);
    let_pass(Duration::from_secs(30)).await;
    let state = deployment.room(0).state().await;
    assert!(state.age.0 >= 30_000, "{:?}", state.age);
}

#[tokio::test(start_paused = true)]
async fn without_a_store_facts_are_as_old_as_the_node() {
    let mut deployment = Deployment::one_level(1, SMALL).await;
    deployment.root.set_unavailable(true);
    deployment.start(0);
    let_pass(Duration::from_secs(3)).await;
    let age = deployment.room(1).state().await.age.0;
    assert!((3_000..3_100).contains(&age), "{age} ms");
}
