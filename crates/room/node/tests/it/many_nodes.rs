//! Many nodes, in one process and in virtual time: are the limits kept, and how often is a store
//! bothered?
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod deployment;
mod overrides;

use std::sync::Arc;
use std::time::Duration;

use anteroom_node::{Outcome, RoomHandle};
use anteroom_room::decision::QueueReason;
use parking_lot::Mutex;
use tokio::time::Instant;

use deployment::{Deployment, Judge, Rules, ask, let_pass};

/// A crowd: each asks again every second, at another node each time.
async fn crowd(deployment: &Deployment, people: usize, lasts: Duration) -> Judge {
    let judge = Arc::new(Mutex::new(Judge::default()));
    let until = Instant::now() + lasts;
    let visitors = (0..people).map(|visitor| {
        let rooms: Vec<_> = (0..deployment.nodes.len())
            .map(|n| deployment.room(n))
            .collect();
        let (judge, clock) = (Arc::clone(&judge), Arc::clone(&deployment.clock));
        tokio::spawn(async move {
            let mut cookie = None;
            let_pass(Duration::from_millis(visitor as u64 * 7 % 1_000)).await;
            for request in 0.. {
                if Instant::now() >= until {
                    break;
                }
                let room = &rooms[(visitor + request) % rooms.len()];
                let outcome = ask(room, cookie.as_deref()).await;
                let now = anteroom_store::Clock::now(&*clock);
                cookie = judge.lock().note(outcome, cookie, now);
                let_pass(Duration::from_millis(900 + visitor as u64 % 200)).await;
            }
        })
    });
    for visitor in visitors.collect::<Vec<_>>() {
        visitor.await.unwrap();
    }
    Arc::into_inner(judge).unwrap().into_inner()
}

const SMALL: Rules = Rules {
    seats: 20,
    per_minute: 1_000,
    session_s: 30,
    more: "",
};

#[tokio::test(start_paused = true)]
async fn six_nodes_in_two_data_centers_fill_the_room_and_never_more() {
    let deployment = Deployment::two_levels(2, 3, SMALL).await;
    let judge = crowd(&deployment, 300, Duration::from_secs(25)).await;
    assert_eq!((judge.inside_max, judge.admitted_total), (20, 20));
}

#[tokio::test(start_paused = true)]
async fn three_nodes_on_one_store_fill_the_room_and_never_more() {
    let deployment = Deployment::one_level(3, SMALL).await;
    let judge = crowd(&deployment, 300, Duration::from_secs(25)).await;
    assert_eq!((judge.inside_max, judge.admitted_total), (20, 20));
}

#[tokio::test(start_paused = true)]
async fn a_minute_over_all_nodes_has_the_limits_admissions() {
    let rules = Rules {
        seats: 10_000,
        per_minute: 60,
        ..SMALL
    };
    let deployment = Deployment::two_levels(2, 3, rules).await;
    let judge = crowd(&deployment, 400, Duration::from_secs(170)).await;
    let most = judge.admitted_in_a_minute_max();
    assert!((55..=60).contains(&most), "{most}");
}

#[tokio::test(start_paused = true)]
async fn a_visitor_at_a_node_without_slots_gets_in_at_once() {
    let deployment = Deployment::two_levels(2, 1, SMALL).await;
    let began = Instant::now();
    let outcome = ask(&deployment.room(1), None).await;
    assert!(matches!(outcome, Outcome::Pass(_)), "{outcome:?}");
    // To the data center's store, to the root's and back.
    let took = began.elapsed();
    assert!(took <= Duration::from_millis(250), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn only_a_pass_that_waits_for_the_store_is_counted() {
    let deployment = Deployment::two_levels(2, 1, SMALL).await;
    let (home, elsewhere) = (deployment.room(0), deployment.room(1));
    let Outcome::Pass(pass) = ask(&home, None).await else {
        panic!("there is room");
    };
    let waited = |room: &RoomHandle| room.stats().waited_passes_total;
    let again = ask(&home, pass.new_ticket.as_deref()).await;
    assert!(matches!(again, Outcome::Pass(_)), "{again:?}");
    let_pass(Duration::from_secs(2)).await;
    // There is no seat for it, so the node asks for one.
    let moved = ask(&elsewhere, pass.new_ticket.as_deref()).await;
    assert!(matches!(moved, Outcome::Pass(_)), "{moved:?}");
    assert_eq!((waited(&home), waited(&elsewhere)), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn calls_do_not_grow_with_visitors() {
    let rules = Rules {
        seats: 1_000_000,
        per_minute: 1_000_000,
        ..SMALL
    };
    for pause_ms in [200, 1] {
        let deployment = Deployment::two_levels(2, 3, rules).await;
        let (before, began) = (deployment.calls(), Instant::now());
        let (mut visitors, mut refused) = (0u32, 0u32);
        while began.elapsed() < Duration::from_secs(20) {
            let room = deployment.room(visitors as usize % 6);
            visitors += 1;
            refused += u32::from(!matches!(ask(&room, None).await, Outcome::Pass(_)));
            let_pass(Duration::from_millis(pause_ms)).await;
        }
        let (after, secs) = (deployment.calls(), began.elapsed().as_secs_f64());
        let near = (after.0 - before.0) as f64 / secs / 6.0;
        let far = (after.1 - before.1) as f64 / secs / 2.0;
        let told = format!(
            "{visitors} visitors: {near:.1} calls a node and second next door, {far:.1} a data \
             center and second far away, {refused} refused"
        );
        println!("{told}");
        assert!(near <= 11.0 && far <= 8.0, "{told}");
        // Where traffic begins at once nobody has lent ahead, and the world is far: a moment.
        assert!(refused <= 30, "{told}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_idle_room_hardly_asks() {
    let deployment = Deployment::two_levels(2, 3, SMALL).await;
    let_pass(Duration::from_secs(30)).await;
    let before = deployment.calls();
    let_pass(Duration::from_secs(60)).await;
    let after = deployment.calls();
    let near = (after.0 - before.0) as f64 / 60.0 / 6.0;
    let far = (after.1 - before.1) as f64 / 60.0 / 2.0;
    assert!(near < 1.0 && far < 0.5, "{near} next door, {far} far away");
}

#[tokio::test(start_paused = true)]
async fn without_the_root_a_data_center_uses_what_it_has() {
    let deployment = Deployment::two_levels(2, 1, SMALL).await;
    let Outcome::Pass(pass) = ask(&deployment.room(0), None).await else {
        panic!("there is room");
    };
    deployment.world.set_away(true);
    let mut cookie = pass.new_ticket.unwrap();
    for _ in 0..20 {
        let_pass(Duration::from_secs(5)).await;
        let Outcome::Pass(again) = ask(&deployment.room(0), Some(&cookie)).await else {
            panic!("it has kept coming");
        };
        cookie = again.new_ticket.unwrap_or(cookie);
    }
    let room = deployment.room(0);
    assert!(room.stats().failed_upstream_syncs_total > 0);
    assert!(room.stats().has_live_lease);
    deployment.world.set_away(false);
    let_pass(Duration::from_secs(5)).await;
    somebody_gets_in(&room).await;
}

/// An errand that is under way does not know yet that there are seats again; whoever asks again
/// finds what it wants.
async fn somebody_gets_in(room: &RoomHandle) {
    for _ in 0..3 {
        if matches!(ask(room, None).await, Outcome::Pass(_)) {
            return;
        }
        let_pass(Duration::from_secs(2)).await;
    }
    panic!("nobody gets in although there are seats again");
}

#[tokio::test(start_paused = true)]
async fn without_its_own_store_a_node_admits_nobody_after_its_lease() {
    let deployment = Deployment::one_level(2, SMALL).await;
    assert!(matches!(
        ask(&deployment.room(0), None).await,
        Outcome::Pass(_)
    ));
    deployment.world.set_away(true);
    let_pass(Duration::from_secs(11)).await;
    let Outcome::Queue { place, .. } = ask(&deployment.room(0), None).await else {
        panic!("its lease is over");
    };
    assert_eq!(place.reason, QueueReason::StoreAway);
}

#[tokio::test(start_paused = true)]
async fn an_empty_store_lends_nothing_until_earlier_leases_have_ended() {
    for is_one_level in [true, false] {
        let deployment = if is_one_level {
            Deployment::one_level(3, SMALL).await
        } else {
            Deployment::two_levels(1, 3, SMALL).await
        };
        let judge = crowd(&deployment, 100, Duration::from_secs(10)).await;
        assert_eq!(judge.admitted_total, 20);
        deployment.world.wipe();
        let_pass(Duration::from_secs(2)).await;
        let Outcome::Queue { place, .. } = ask(&deployment.room(0), None).await else {
            panic!("the ledger has lost its memory");
        };
        let is_recovering = matches!(place.reason, QueueReason::Recovering { .. });
        assert!(is_recovering, "{:?}", place.reason);
        // Ten minutes for what a data center was lent, half a minute for a seat.
        let waits = if is_one_level { 60 } else { 660 };
        let_pass(Duration::from_secs(waits)).await;
        somebody_gets_in(&deployment.room(0)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_data_center_with_a_lost_store_keeps_visitors_and_limit() {
    let deployment = Deployment::two_levels(2, 3, SMALL).await;
    let judge = crowd(&deployment, 100, Duration::from_secs(5)).await;
    assert_eq!(judge.admitted_total, 20);
    deployment.locals[0].wipe();
    let judge = crowd(&deployment, 100, Duration::from_secs(20)).await;
    assert_eq!(judge.admitted_total, 0, "all seats are taken");
}

#[tokio::test(start_paused = true)]
async fn the_last_node_of_a_data_center_returns_its_lease() {
    let deployment = Deployment::two_levels(2, 1, SMALL).await;
    let judge = crowd(&deployment, 6, Duration::from_secs(3)).await;
    assert_eq!(judge.admitted_total, 6);
    deployment.nodes[1].stop().await;
    let_pass(Duration::from_secs(2)).await;
    for _ in 0..14 {
        let outcome = ask(&deployment.room(0), None).await;
        assert!(matches!(outcome, Outcome::Pass(_)), "{outcome:?}");
        let_pass(Duration::from_millis(300)).await;
    }
    let_pass(Duration::from_secs(2)).await;
    let snapshot = deployment.room(0).stats().snapshot;
    assert_eq!(
        (snapshot.inside, snapshot.phantoms),
        (20, 0),
        "{snapshot:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn any_node_shows_every_data_centers_admissions_and_their_age() {
    let deployment = Deployment::two_levels(2, 1, SMALL).await;
    crowd(&deployment, 10, Duration::from_secs(5)).await;
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
        // Everybody comes to both data centers, and whoever is due while it is away has two seats.
        assert!((10..=20).contains(&state.active_users), "{state:?}");
        let age = state.age.0;
        assert!((30..=2_000).contains(&age), "{age} ms old");
    }
    deployment.world.set_away(true);
    let_pass(Duration::from_secs(30)).await;
    let state = deployment.room(0).state().await;
    assert!(state.age.0 >= 30_000, "{:?}", state.age);
}

#[tokio::test(start_paused = true)]
async fn an_uninformed_nodes_knowledge_is_as_old_as_the_node() {
    let mut deployment = Deployment::one_level(1, SMALL).await;
    deployment.world.set_away(true);
    deployment.start(0);
    let_pass(Duration::from_secs(3)).await;
    let age = deployment.room(1).state().await.age.0;
    assert!((3_000..3_100).contains(&age), "{age} ms");
}
