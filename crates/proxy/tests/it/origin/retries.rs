//! Tests of retries, of the end of connections, and of the number of requests on each.

use std::sync::Arc;
use std::time::Duration;

use anteroom_proxy::upstream::{Failure, Group, Origins, UpstreamResponse};
use futures_util::future::{join, join_all};
use http::{Method, Request};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::origin::frames::{Frames, INTERNAL_ERROR, PING, REFUSED_STREAM};
use crate::origin::support::{Body, LIMITS, advance, deliver, get, in_time, room};

pub(crate) const ALWAYS: &str = "origin_http2 = \"always\"";

async fn origin() -> (TcpListener, Arc<Group<Body>>) {
    origin_with(ALWAYS, LIMITS.idle).await
}

pub(crate) async fn origin_with(http2: &str, idle: Duration) -> (TcpListener, Arc<Group<Body>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let lines = format!("origin = \"http://{address}\"\n{http2}");
    let origins = Origins::new(anteroom_proxy::upstream::Limits { idle, ..LIMITS });
    let room = room("shop", &lines);
    let group = origins.single(room.own_origins().unwrap()).unwrap();
    (listener, group)
}

async fn send(group: &Arc<Group<Body>>, method: Method) -> Result<UpstreamResponse, Failure> {
    let request = Request::builder()
        .method(method)
        .uri("/")
        .header("host", "a");
    deliver(group, request.body(Body::new()).unwrap()).await
}

/// Returns a connection that has served one request, and its stream.
async fn used(listener: &TcpListener, group: &Arc<Group<Body>>) -> (Frames, u32) {
    let serve = async {
        let mut frames = Frames::accept(listener).await;
        let stream = frames.request().await;
        frames.respond(stream).await;
        (frames, stream)
    };
    let (response, used) = join(get(group), serve).await;
    response.unwrap();
    used
}

fn stale(group: &Group<Body>) -> u64 {
    group.stats().retries.stale
}

#[tokio::test]
async fn a_request_after_goaway_is_sent_again_once() {
    let (listener, group) = origin().await;
    let (mut frames, first) = used(&listener, &group).await;
    let serve = async {
        for _ in 0..5 {
            frames.request().await;
        }
        frames.go_away(first).await;
        let mut next = Frames::accept(&listener).await;
        for _ in 0..5 {
            let stream = next.request().await;
            next.respond(stream).await;
        }
        // All five arrived on this connection.
        next
    };
    let requests = join_all((0..5).map(|_| get(&group)));
    let (responses, _next) = join(requests, serve).await;
    assert!(responses.iter().all(Result::is_ok));
    assert_eq!(stale(&group), 5);
}

#[tokio::test]
async fn a_refused_stream_is_sent_again_even_first_and_late() {
    let (listener, group) = origin().await;
    let serve = async {
        let mut frames = Frames::accept(&listener).await;
        let stream = frames.request().await;
        advance(Duration::from_secs(2)).await;
        frames.reset(stream, REFUSED_STREAM).await;
        let mut next = Frames::accept(&listener).await;
        let stream = next.request().await;
        next.respond(stream).await;
        (frames, next)
    };
    let (response, _open) = join(get(&group), serve).await;
    response.unwrap();
    assert_eq!(stale(&group), 1);
}

#[tokio::test]
async fn a_connection_with_a_refused_stream_stays_open_for_others() {
    let (listener, group) = origin().await;
    let (mut frames, _) = used(&listener, &group).await;
    let serve = async {
        let open = frames.request().await;
        let refused = frames.request().await;
        frames.reset(refused, REFUSED_STREAM).await;
        let mut next = Frames::accept(&listener).await;
        let stream = next.request().await;
        next.respond(stream).await;
        frames.respond(open).await;
        (frames, next)
    };
    let requests = join_all([get(&group), get(&group)]);
    let (responses, (mut frames, mut next)) = join(requests, serve).await;
    assert!(responses.iter().all(Result::is_ok));
    // The next requests use it, and what it refuses goes to the other one, not to a third.
    for _ in 0..2 {
        let serve = async {
            let refused = frames.request().await;
            frames.reset(refused, REFUSED_STREAM).await;
            let stream = next.request().await;
            next.respond(stream).await;
        };
        let (response, ()) = join(get(&group), serve).await;
        response.unwrap();
    }
    assert_eq!(stale(&group), 3);
}

#[tokio::test]
async fn a_request_refused_twice_is_not_sent_a_third_time() {
    let (listener, group) = origin().await;
    let serve = async {
        let mut connections = Vec::new();
        for _ in 0..2 {
            let mut frames = Frames::accept(&listener).await;
            let stream = frames.request().await;
            frames.reset(stream, REFUSED_STREAM).await;
            connections.push(frames);
        }
        connections
    };
    let (response, _open) = join(get(&group), serve).await;
    assert!(matches!(response.unwrap_err(), Failure::Broken(_)));
    assert_eq!(stale(&group), 1);
}

#[tokio::test]
async fn a_post_is_never_sent_again() {
    for by_going_away in [true, false] {
        let (listener, group) = origin().await;
        let (mut frames, first) = used(&listener, &group).await;
        let serve = async {
            let stream = frames.request().await;
            if by_going_away {
                frames.go_away(first).await;
            } else {
                frames.reset(stream, REFUSED_STREAM).await;
            }
        };
        let (response, ()) = join(send(&group, Method::POST), serve).await;
        assert!(matches!(response.unwrap_err(), Failure::Broken(_)));
        assert_eq!(stale(&group), 0);
    }
}

#[tokio::test]
async fn a_request_after_an_internal_error_is_not_sent_again() {
    let (listener, group) = origin().await;
    let (mut frames, _) = used(&listener, &group).await;
    let serve = async {
        let stream = frames.request().await;
        frames.reset(stream, INTERNAL_ERROR).await;
    };
    let (response, ()) = join(get(&group), serve).await;
    assert!(matches!(response.unwrap_err(), Failure::Broken(_)));
    assert_eq!(stale(&group), 0);
}

#[tokio::test]
async fn only_a_connection_that_closes_at_once_is_stale() {
    for (late, expected) in [(false, 1), (true, 0)] {
        let (listener, group) = origin().await;
        let (mut frames, _) = used(&listener, &group).await;
        let serve = async {
            let stream = frames.request().await;
            // The origin processed this request.
            frames.go_away(stream).await;
            if late {
                advance(Duration::from_secs(1)).await;
            }
            drop(frames);
            if late {
                return None;
            }
            let mut next = Frames::accept(&listener).await;
            let stream = next.request().await;
            next.respond(stream).await;
            Some(next)
        };
        let (response, _open) = join(get(&group), serve).await;
        assert_eq!(response.is_err(), late);
        assert_eq!(stale(&group), expected);
    }
}

#[tokio::test]
async fn only_an_http_1_connection_that_closes_at_once_is_stale() {
    for (late, expected) in [(false, 1), (true, 0)] {
        let (listener, group) = origin_with("", LIMITS.idle).await;
        let head = async |stream: &mut tokio::net::TcpStream| {
            let mut read = Vec::new();
            while !read.ends_with(b"\r\n\r\n") {
                assert!(stream.read_buf(&mut read).await.unwrap() > 0);
            }
        };
        let no_content = b"HTTP/1.1 204 No Content\r\n\r\n";
        let serve = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            head(&mut stream).await;
            stream.write_all(no_content).await.unwrap();
            stream
        };
        let (response, mut stream) = join(get(&group), serve).await;
        response.unwrap().lease.finish();
        let serve = async {
            head(&mut stream).await;
            if late {
                advance(Duration::from_secs(1)).await;
            }
            drop(stream);
            if !late {
                let (mut stream, _) = listener.accept().await.unwrap();
                head(&mut stream).await;
                stream.write_all(no_content).await.unwrap();
            }
        };
        let (response, ()) = join(get(&group), serve).await;
        assert_eq!(response.is_err(), late);
        assert_eq!(stale(&group), expected);
    }
}

#[tokio::test]
async fn a_connection_without_ping_replies_is_replaced_within_ten_seconds() {
    let (listener, group) = origin().await;
    let (mut frames, _) = used(&listener, &group).await;
    let serve = async {
        frames.request().await;
        advance(Duration::from_secs(5)).await;
        while frames.next().await.expect("it is open").kind != PING {}
        advance(Duration::from_secs(5)).await;
        let mut next = Frames::accept(&listener).await;
        let stream = next.request().await;
        next.respond(stream).await;
        next
    };
    let (response, _next) = join(get(&group), serve).await;
    response.unwrap();
    assert_eq!(stale(&group), 1);
}

#[tokio::test]
async fn an_idle_connection_is_closed() {
    let (listener, group) = origin_with(ALWAYS, Duration::from_millis(50)).await;
    let (mut frames, _) = used(&listener, &group).await;
    in_time("it is closed", frames.ends()).await;
    // The next request uses another connection.
    used(&listener, &group).await;
}

#[tokio::test]
async fn requests_above_the_stream_limit_use_another_connection() {
    let (listener, group) = origin().await;
    let serve = async {
        let mut frames = Frames::accept_with(&listener, 2).await;
        let stream = frames.request().await;
        frames.respond(stream).await;
        frames
    };
    let (response, mut frames) = join(get(&group), serve).await;
    response.unwrap();
    // Lets the settings be read, which arrived before the response.
    tokio::task::yield_now().await;
    let serve = async {
        let two = [frames.request().await, frames.request().await];
        let mut next = Frames::accept_with(&listener, 2).await;
        let stream = next.request().await;
        next.respond(stream).await;
        for stream in two {
            frames.respond(stream).await;
        }
    };
    let (responses, ()) = join(join_all((0..3).map(|_| get(&group))), serve).await;
    assert!(responses.iter().all(Result::is_ok));
}

#[tokio::test]
async fn early_requests_wait_for_the_settings_of_the_origin() {
    let (listener, group) = origin().await;
    let serve = async {
        let mut frames = Frames::accept_with(&listener, 2).await;
        let mut open = vec![frames.request().await, frames.request().await];
        for _ in 2..10 {
            frames.no_more_requests().await;
            frames.respond(open.remove(0)).await;
            open.push(frames.request().await);
        }
        for stream in open {
            frames.respond(stream).await;
        }
    };
    let (responses, ()) = join(join_all((0..10).map(|_| get(&group))), serve).await;
    assert!(responses.iter().all(Result::is_ok));
    assert_eq!(stale(&group), 0);
}

#[tokio::test]
async fn a_waiting_request_moves_on_from_a_new_connection_that_ended() {
    for by_going_away in [true, false] {
        let (listener, group) = origin().await;
        let serve = async {
            let mut frames = Frames::accept_with(&listener, 1).await;
            let stream = frames.request().await;
            frames.no_more_requests().await;
            if by_going_away {
                frames.go_away(stream).await;
            }
            drop(frames);
            let mut next = Frames::accept(&listener).await;
            for _ in 0..2 {
                let stream = next.request().await;
                next.respond(stream).await;
            }
            next
        };
        // One request is sent, one has a stream ready, and one waits for a stream.
        let requests = join_all((0..3).map(|_| get(&group)));
        let (responses, _next) = join(requests, serve).await;
        let has_response: Vec<bool> = responses.iter().map(Result::is_ok).collect();
        assert_eq!(has_response, [false, true, true], "{responses:?}");
        assert_eq!(stale(&group), 2);
    }
}

#[tokio::test]
async fn a_waiting_request_moves_on_from_an_old_connection_that_ended() {
    let (listener, group) = origin().await;
    let serve = async {
        let (closed, _) = in_time("a client connects", listener.accept())
            .await
            .unwrap();
        drop(closed);
        let mut next = Frames::accept(&listener).await;
        loop {
            let stream = next.request().await;
            next.respond(stream).await;
        }
    };
    let posts = join_all((0..5).map(|_| send(&group, Method::POST)));
    let responses = tokio::select! {
        responses = posts => responses,
        () = serve => unreachable!("it serves forever"),
    };
    // The request that was next on the first connection may have been sent there.
    let failed = responses
        .iter()
        .filter(|response| response.is_err())
        .count();
    assert!(failed <= 1, "{failed} failed");
}
