//! What is sent again over HTTP/2, and when it is too late for it; when connections end, and how
//! many requests each of them gets.

use std::sync::Arc;
use std::time::Duration;

use anteroom_proxy::upstream::{Answer, Failure, Group, Origins};
use futures_util::future::{join, join_all};
use http::{Method, Request};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::origin::frames::{Frames, INTERNAL_ERROR, PING, REFUSED_STREAM};
use crate::origin::support::{Body, LIMITS, advance, ask, deliver, in_time, room};

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
    let group = origins.single(&room.name, &room.origins).unwrap();
    (listener, group)
}

async fn send(group: &Arc<Group<Body>>, method: Method) -> Result<Answer, Failure> {
    let request = Request::builder()
        .method(method)
        .uri("/")
        .header("host", "a");
    deliver(group, request.body(Body::new()).unwrap()).await
}

/// A connection over which one request has been answered, by its stream.
async fn used(listener: &TcpListener, group: &Arc<Group<Body>>) -> (Frames, u32) {
    let serve = async {
        let mut frames = Frames::accept(listener).await;
        let stream = frames.request().await;
        frames.answer(stream).await;
        (frames, stream)
    };
    let (answer, used) = join(ask(group), serve).await;
    answer.unwrap();
    used
}

fn stale(group: &Group<Body>) -> u64 {
    group.stats().retries.stale
}

#[tokio::test]
async fn what_an_origin_did_not_look_at_is_sent_again_once() {
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
            next.answer(stream).await;
        }
        // All five came by it.
        next
    };
    let asked = join_all((0..5).map(|_| ask(&group)));
    let (answers, _next) = join(asked, serve).await;
    assert!(answers.iter().all(Result::is_ok));
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
        next.answer(stream).await;
        (frames, next)
    };
    let (answer, _open) = join(ask(&group), serve).await;
    answer.unwrap();
    assert_eq!(stale(&group), 1);
}

#[tokio::test]
async fn a_connection_over_which_one_request_is_refused_stays_for_the_others() {
    let (listener, group) = origin().await;
    let (mut frames, _) = used(&listener, &group).await;
    let serve = async {
        let open = frames.request().await;
        let refused = frames.request().await;
        frames.reset(refused, REFUSED_STREAM).await;
        let mut next = Frames::accept(&listener).await;
        let stream = next.request().await;
        next.answer(stream).await;
        frames.answer(open).await;
        (frames, next)
    };
    let (answers, (mut frames, mut next)) = join(join_all([ask(&group), ask(&group)]), serve).await;
    assert!(answers.iter().all(Result::is_ok));
    // The next ones come by it, and what it refuses goes by the other, not by a third.
    for _ in 0..2 {
        let serve = async {
            let refused = frames.request().await;
            frames.reset(refused, REFUSED_STREAM).await;
            let stream = next.request().await;
            next.answer(stream).await;
        };
        let (answer, ()) = join(ask(&group), serve).await;
        answer.unwrap();
    }
    assert_eq!(stale(&group), 3);
}

#[tokio::test]
async fn what_is_refused_twice_is_not_sent_a_third_time() {
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
    let (answer, _open) = join(ask(&group), serve).await;
    assert!(matches!(answer.unwrap_err(), Failure::Broken(_)));
    assert_eq!(stale(&group), 1);
}

#[tokio::test]
async fn a_post_is_not_sent_again_whatever_the_origin_says() {
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
        let (answer, ()) = join(send(&group, Method::POST), serve).await;
        assert!(matches!(answer.unwrap_err(), Failure::Broken(_)));
        assert_eq!(stale(&group), 0);
    }
}

#[tokio::test]
async fn what_an_origin_gave_up_itself_is_not_asked_for_again() {
    let (listener, group) = origin().await;
    let (mut frames, _) = used(&listener, &group).await;
    let serve = async {
        let stream = frames.request().await;
        frames.reset(stream, INTERNAL_ERROR).await;
    };
    let (answer, ()) = join(ask(&group), serve).await;
    assert!(matches!(answer.unwrap_err(), Failure::Broken(_)));
    assert_eq!(stale(&group), 0);
}

#[tokio::test]
async fn a_connection_closed_at_once_was_stale_and_later_was_not() {
    for (late, expected) in [(false, 1), (true, 0)] {
        let (listener, group) = origin().await;
        let (mut frames, _) = used(&listener, &group).await;
        let serve = async {
            let stream = frames.request().await;
            // It was looked at.
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
            next.answer(stream).await;
            Some(next)
        };
        let (answer, _open) = join(ask(&group), serve).await;
        assert_eq!(answer.is_err(), late);
        assert_eq!(stale(&group), expected);
    }
}

#[tokio::test]
async fn the_same_holds_for_http_1() {
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
        let (answer, mut stream) = join(ask(&group), serve).await;
        answer.unwrap().lease.finish();
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
        let (answer, ()) = join(ask(&group), serve).await;
        assert_eq!(answer.is_err(), late);
        assert_eq!(stale(&group), expected);
    }
}

#[tokio::test]
async fn a_dead_connection_is_replaced_within_ten_seconds() {
    let (listener, group) = origin().await;
    let (mut frames, _) = used(&listener, &group).await;
    let serve = async {
        frames.request().await;
        advance(Duration::from_secs(5)).await;
        while frames.next().await.expect("it is open").kind != PING {}
        advance(Duration::from_secs(5)).await;
        let mut next = Frames::accept(&listener).await;
        let stream = next.request().await;
        next.answer(stream).await;
        next
    };
    let (answer, _next) = join(ask(&group), serve).await;
    answer.unwrap();
    assert_eq!(stale(&group), 1);
}

#[tokio::test]
async fn a_connection_that_nobody_uses_is_closed() {
    let (listener, group) = origin_with(ALWAYS, Duration::from_millis(50)).await;
    let (mut frames, _) = used(&listener, &group).await;
    in_time("it is closed", frames.ends()).await;
    // And the next request has another one.
    used(&listener, &group).await;
}

#[tokio::test]
async fn more_requests_than_an_origin_takes_at_once_go_by_another_connection() {
    let (listener, group) = origin().await;
    let serve = async {
        let mut frames = Frames::accept_with(&listener, 2).await;
        let stream = frames.request().await;
        frames.answer(stream).await;
        frames
    };
    let (answer, mut frames) = join(ask(&group), serve).await;
    answer.unwrap();
    // Until the settings have been read, which came before the answer.
    tokio::task::yield_now().await;
    let serve = async {
        let two = [frames.request().await, frames.request().await];
        let mut next = Frames::accept_with(&listener, 2).await;
        let stream = next.request().await;
        next.answer(stream).await;
        for stream in two {
            frames.answer(stream).await;
        }
    };
    let (answers, ()) = join(join_all((0..3).map(|_| ask(&group))), serve).await;
    assert!(answers.iter().all(Result::is_ok));
}

#[tokio::test]
async fn early_requests_wait_until_the_origin_states_its_stream_bound() {
    let (listener, group) = origin().await;
    let serve = async {
        let mut frames = Frames::accept_with(&listener, 2).await;
        let mut open = vec![frames.request().await, frames.request().await];
        for _ in 2..10 {
            frames.no_more_requests().await;
            frames.answer(open.remove(0)).await;
            open.push(frames.request().await);
        }
        for stream in open {
            frames.answer(stream).await;
        }
    };
    let (answers, ()) = join(join_all((0..10).map(|_| ask(&group))), serve).await;
    assert!(answers.iter().all(Result::is_ok));
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
                next.answer(stream).await;
            }
            next
        };
        // One that is sent, one for which a stream is ready, and one that waits before.
        let asked = join_all((0..3).map(|_| ask(&group)));
        let (answers, _next) = join(asked, serve).await;
        let is_answered: Vec<bool> = answers.iter().map(Result::is_ok).collect();
        assert_eq!(is_answered, [false, true, true], "{answers:?}");
        assert_eq!(stale(&group), 2);
    }
}

#[tokio::test]
async fn a_waiting_request_moves_on_from_an_old_connection_that_ended() {
    let (listener, group) = origin().await;
    let serve = async {
        let (closed, _) = in_time("somebody connects", listener.accept())
            .await
            .unwrap();
        drop(closed);
        let mut next = Frames::accept(&listener).await;
        loop {
            let stream = next.request().await;
            next.answer(stream).await;
        }
    };
    let posts = join_all((0..5).map(|_| send(&group, Method::POST)));
    let answers = tokio::select! {
        answers = posts => answers,
        () = serve => unreachable!("it serves for ever"),
    };
    // The one whose turn it was on the first connection may have been seen there.
    let failed = answers.iter().filter(|answer| answer.is_err()).count();
    assert!(failed <= 1, "{failed} failed");
}
