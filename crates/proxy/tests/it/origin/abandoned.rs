//! Tests of visitors who leave before a response, and their effect on the origin's health.

use std::sync::Arc;
use std::time::Duration;

use anteroom_proxy::upstream::{Group, Origins};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;

use crate::origin::support::{Body, LIMITS, Origin, WAIT, advance, get, room, text};

fn group(lines: &str) -> Arc<Group<Body>> {
    let room = room("shop", lines);
    let origins = Origins::new(LIMITS);
    origins.single(room.own_origins().unwrap()).unwrap()
}

/// Sends a request, waits for `after`, runs `meanwhile`, and drops the request.
async fn abandon(
    group: &Arc<Group<Body>>,
    unresponsive: &TcpListener,
    after: Duration,
    meanwhile: impl Future<Output = ()>,
) {
    let mut request = Box::pin(get(group));
    let arrives = async {
        let (mut stream, _) = unresponsive.accept().await.unwrap();
        stream.read_u8().await.unwrap();
        stream
    };
    let _open = tokio::select! {
        _ = &mut request => panic!("there is no response"),
        stream = arrives => stream,
    };
    advance(after).await;
    meanwhile.await;
    drop(request);
}

#[tokio::test]
async fn only_a_long_wait_counts_against_the_origin() {
    let unresponsive = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", unresponsive.local_addr().unwrap());
    let group = group(&format!("origin = \"{url}\""));
    let nothing = std::future::ready;
    let long = WAIT / 4;
    abandon(
        &group,
        &unresponsive,
        long - Duration::from_secs(1),
        nothing(()),
    )
    .await;
    assert_eq!(group.abandoned(), 0);
    assert_eq!(group.stats().origins[0].last_error, None);
    abandon(&group, &unresponsive, long, nothing(())).await;
    assert_eq!(group.abandoned(), 1);
    let stats = &group.stats().origins[0];
    assert_eq!(stats.outcomes.last(), Some(&("abandoned", 1)));
    let error = stats.last_error.as_deref().unwrap();
    assert!(error.contains("waited and left"), "{error}");
    assert_eq!(stats.in_flight, 0);
}

#[tokio::test]
async fn a_hanging_origin_is_ejected_before_any_timeout() {
    let unresponsive = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let healthy = Origin::new().await;
    let lines = format!(
        "origins = [\"http://{}\", \"http://{}\"]",
        unresponsive.local_addr().unwrap(),
        healthy.address
    );
    let group = group(&lines);
    let is_up = || group.stats().origins[0].condition.name() == "up";
    for _ in 0..1_000 {
        if !is_up() {
            break;
        }
        let mut request = Box::pin(get(&group));
        tokio::select! {
            response = &mut request => {
                text(response.unwrap()).await;
            }
            accepted = unresponsive.accept() => {
                advance(WAIT / 4).await;
                drop(request);
                drop(accepted);
            }
        }
    }
    assert!(!is_up());
    assert_eq!(group.abandoned(), 5);
}

#[tokio::test]
async fn one_slow_page_is_no_hang() {
    // The first connection gets no response, others do.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let group = group(&format!("origin = \"{url}\""));
    let meanwhile = async {
        let serve = async {
            use tokio::io::AsyncWriteExt as _;
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.read_u8().await.unwrap();
            let response = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi";
            stream.write_all(response).await.unwrap();
            stream
        };
        let (response, _open) = futures_util::future::join(get(&group), serve).await;
        text(response.unwrap()).await;
    };
    abandon(&group, &listener, WAIT / 4, meanwhile).await;
    assert_eq!(group.abandoned(), 0);
}
