//! Visitors who leave before an answer: what that says of the origin.

use std::sync::Arc;
use std::time::Duration;

use anteroom_proxy::upstream::{Group, Origins};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;

use crate::origin::support::{Body, LIMITS, Origin, WAIT, advance, ask, room, text};

fn group(lines: &str) -> Arc<Group<Body>> {
    let room = room("shop", lines);
    let origins = Origins::new(LIMITS);
    origins.single(&room.name, &room.origins).unwrap()
}

/// Somebody asks, waits for so long, does something, and leaves.
async fn leaves(
    group: &Arc<Group<Body>>,
    silent: &TcpListener,
    after: Duration,
    meanwhile: impl Future<Output = ()>,
) {
    let mut asked = Box::pin(ask(group));
    let arrives = async {
        let (mut stream, _) = silent.accept().await.unwrap();
        stream.read_u8().await.unwrap();
        stream
    };
    let _open = tokio::select! {
        _ = &mut asked => panic!("nobody answers"),
        stream = arrives => stream,
    };
    advance(after).await;
    meanwhile.await;
    drop(asked);
}

#[tokio::test]
async fn an_impatient_client_says_nothing_against_the_origin_a_patient_one_does() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let group = group(&format!("origin = \"{url}\""));
    let nothing = std::future::ready;
    let long = WAIT / 4;
    leaves(&group, &silent, long - Duration::from_secs(1), nothing(())).await;
    assert_eq!(group.abandoned(), 0);
    assert_eq!(group.stats().origins[0].last_error, None);
    leaves(&group, &silent, long, nothing(())).await;
    assert_eq!(group.abandoned(), 1);
    let stats = &group.stats().origins[0];
    assert_eq!(stats.outcomes.last(), Some(&("abandoned", 1)));
    let error = stats.last_error.as_deref().unwrap();
    assert!(error.contains("who has left"), "{error}");
    assert_eq!(stats.in_flight, 0);
}

#[tokio::test]
async fn a_hanging_origin_is_skipped_before_any_time_out() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let well = Origin::new().await;
    let lines = format!(
        "origins = [\"http://{}\", \"http://{}\"]",
        silent.local_addr().unwrap(),
        well.address
    );
    let group = group(&lines);
    let is_up = || group.stats().origins[0].condition.name() == "up";
    for _ in 0..1_000 {
        if !is_up() {
            break;
        }
        let mut asked = Box::pin(ask(&group));
        tokio::select! {
            answer = &mut asked => {
                text(answer.unwrap()).await;
            }
            accepted = silent.accept() => {
                advance(WAIT / 4).await;
                drop(asked);
                drop(accepted);
            }
        }
    }
    assert!(!is_up());
    assert_eq!(group.abandoned(), 5);
}

#[tokio::test]
async fn one_slow_page_is_no_hang() {
    // The first connection is never answered, others are.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let group = group(&format!("origin = \"{url}\""));
    let meanwhile = async {
        let serve = async {
            use tokio::io::AsyncWriteExt as _;
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.read_u8().await.unwrap();
            let answer = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi";
            stream.write_all(answer).await.unwrap();
            stream
        };
        let (answer, _open) = futures_util::future::join(ask(&group), serve).await;
        text(answer.unwrap()).await;
    };
    leaves(&group, &listener, WAIT / 4, meanwhile).await;
    assert_eq!(group.abandoned(), 0);
}
