//! Requests whose origin leads back to the gateway, and gateways in a row.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};

use crate::support::config::{ConfigFile, SERVER, room};
use crate::support::process::Gateway;
use crate::support::raw::{ask, status_of};
use crate::support::site::Site;

/// A load balancer that no config names; its target can be set.
struct Balancer {
    address: SocketAddr,
    to: Arc<Mutex<Vec<SocketAddr>>>,
    connections: Arc<AtomicUsize>,
}

impl Balancer {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let balancer = Self {
            address: listener.local_addr().unwrap(),
            to: Arc::default(),
            connections: Arc::default(),
        };
        let (to, connections) = (balancer.to.clone(), balancer.connections.clone());
        tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                let number = connections.fetch_add(1, Ordering::SeqCst);
                let address = {
                    let to = to.lock();
                    to[number % to.len()]
                };
                tokio::spawn(async move {
                    let mut far = TcpStream::connect(address).await.unwrap();
                    // The side that closes first ends it.
                    let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
                });
            }
        });
        balancer
    }
}

/// Returns a config whose room lets everything pass.
fn open_to(origin: SocketAddr) -> ConfigFile {
    ConfigFile::new(&(SERVER.to_owned() + &room("main", origin, 10, "suspended = true")))
}

#[tokio::test]
async fn a_request_that_comes_back_ends_with_508_after_one_round() {
    let balancer = Balancer::start().await;
    let file = open_to(balancer.address);
    let gateway = Gateway::start(&file.flags()).await;
    balancer.to.lock().push(gateway.address);
    let german = "accept: text/html\r\naccept-language: de\r\n";
    let response = ask(gateway.address, "a.example", "/", german).await;
    assert_eq!(status_of(&response), 508, "{response}");
    assert!(response.contains("nicht erreichbar"), "{response}");
    assert_eq!(balancer.connections.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_loop_through_several_gateways_ends_when_one_sees_it_again() {
    let balancer = Balancer::start().await;
    let files = [open_to(balancer.address), open_to(balancer.address)];
    let first = Gateway::start(&files[0].flags()).await;
    let second = Gateway::start(&files[1].flags()).await;
    balancer.to.lock().extend([second.address, first.address]);
    let response = ask(first.address, "a.example", "/", "").await;
    assert_eq!(status_of(&response), 508, "{response}");
    assert_eq!(balancer.connections.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn one_gateway_behind_another_serves() {
    let site = Site::with_room(10, "suspended = true").await;
    let file = open_to(site.gateway.address);
    let outer = Gateway::start(&file.flags()).await;
    let response = ask(outer.address, "a.example", "/page", "").await;
    assert_eq!(status_of(&response), 200, "{response}");
    let head = site.origin.last();
    assert_eq!(head.headers.get_all("anteroom-loop").iter().count(), 2);
    let via = head.headers.get_all("via").iter().collect::<Vec<_>>();
    assert_eq!(via, ["1.1 anteroom", "1.1 anteroom"]);
    assert_eq!(
        response.matches("via: 1.1 anteroom\r\n").count(),
        2,
        "{response}"
    );
}
