//! A cluster with moving slots and crashing servers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use anteroom_store::{LeftChanges, LeftId, LeftRequest, RecordKey, Store, Swap};
use anteroom_testkit::eventually;
use anteroom_testkit::redis_server::RedisCluster;
use anteroom_valkey::Valkey;

use crate::support::{check_unavailable, cluster, counter, key, store, value};

fn left_request() -> LeftRequest {
    LeftRequest {
        id: LeftId(b"request".to_vec()),
        value: Vec::new(),
    }
}

/// Adds one to a number in a record until `stop` is set; returns the number of additions.
///
/// Each round leaves a request, and the next one removes it.
async fn count_up(store: Arc<Valkey>, stop: Arc<AtomicBool>, rounds: Arc<AtomicU32>) -> u32 {
    let mut counted = 0;
    while !stop.load(Ordering::SeqCst) {
        let loaded = store.load_and_leave(&key(), Some(left_request())).await;
        let loaded = loaded.unwrap();
        let number = match &loaded.record {
            None => 0,
            Some(_) => std::str::from_utf8(value(&loaded))
                .unwrap()
                .parse()
                .unwrap(),
        };
        let next: u32 = number + 1;
        let changes = LeftChanges {
            applied: loaded.left.iter().map(|left| left.id.clone()).collect(),
            leave: Some(left_request()),
        };
        let value = next.to_string().into_bytes();
        let (key, expected) = (key(), loaded.expected());
        let swapped = store.swap_and_remove(&key, expected, value, changes).await;
        counted += u32::from(swapped.unwrap() == Swap::Swapped);
        rounds.fetch_add(1, Ordering::SeqCst);
    }
    counted
}

#[tokio::test]
async fn requests_continue_while_their_slot_moves() {
    let servers = RedisCluster::start().await;
    let shared = Arc::new(store(&cluster(servers.servers()[0].port())));
    let (from, slot) = servers.owner_of("{shop}").await;
    let to = (from + 1) % 3;
    let stop = Arc::new(AtomicBool::new(false));
    let rounds = Arc::new(AtomicU32::new(0));
    let tasks: Vec<_> = (0..3)
        .map(|_| {
            let (stop, rounds) = (Arc::clone(&stop), Arc::clone(&rounds));
            tokio::spawn(count_up(Arc::clone(&shared), stop, rounds))
        })
        .collect();
    let requests_succeed = async || {
        let before = rounds.load(Ordering::SeqCst);
        eventually("requests succeed", async || {
            rounds.load(Ordering::SeqCst) > before + 20
        })
        .await;
    };

    requests_succeed().await;
    servers.begin_to_move(slot, from, to).await;
    requests_succeed().await;
    servers.move_keys(slot, from, to).await;
    // The old server has no key left and redirects every request.
    requests_succeed().await;
    // A key that does not exist yet belongs to the new server already.
    assert_eq!(shared.take_number(&counter()).await.unwrap(), 0);
    servers.end_move(slot, to).await;
    requests_succeed().await;
    assert_eq!(shared.take_number(&counter()).await.unwrap(), 1);

    stop.store(true, Ordering::SeqCst);
    let mut counted = 0;
    for task in tasks {
        counted += task.await.unwrap();
    }
    let loaded = shared.load(&key()).await.unwrap();
    assert_eq!(value(&loaded), counted.to_string().as_bytes());
    let has_it = servers.servers()[to]
        .send(&["EXISTS", "anteroom:{shop}:world"])
        .await;
    assert_eq!(has_it.text(), "1");
}

#[tokio::test]
async fn a_crashed_server_of_a_cluster_does_not_affect_the_others() {
    let mut servers = RedisCluster::start().await;
    let (crashed, _) = servers.owner_of("{shop}").await;
    let alive = (crashed + 1) % 3;
    let store = store(&cluster(servers.servers()[alive].port()));
    let mut other = None;
    for room in 0..100 {
        let (owner, _) = servers.owner_of(&format!("{{room-{room}}}")).await;
        if owner == alive {
            other = Some(RecordKey(format!("room-{room}/world")));
            break;
        }
    }
    let other = other.expect("every server has one room of a hundred");
    store.load(&key()).await.unwrap();
    store.load(&other).await.unwrap();

    servers.servers_mut()[crashed].kill();
    eventually("the store notices the crash", async || {
        store.load(&key()).await.is_err()
    })
    .await;
    for _ in 0..50 {
        check_unavailable(&store.load(&key()).await.unwrap_err(), "");
        store.load(&other).await.unwrap();
    }

    servers.servers_mut()[crashed].restart().await;
    eventually("the server is used again", async || {
        store.load(&key()).await.is_ok()
    })
    .await;
}

#[tokio::test]
async fn a_cluster_is_found_by_any_running_server() {
    let mut servers = RedisCluster::start().await;
    let mut address = cluster(servers.servers()[0].port());
    let ports: Vec<u16> = servers
        .servers()
        .iter()
        .map(|server| server.port())
        .collect();
    address.topology = anteroom_config::Topology::Cluster {
        servers: ports
            .iter()
            .map(|port| crate::support::here(*port))
            .collect(),
    };
    let (owner, _) = servers.owner_of("{shop}").await;
    servers.servers_mut()[(owner + 1) % 3].kill();
    store(&address).load(&key()).await.unwrap();
}
