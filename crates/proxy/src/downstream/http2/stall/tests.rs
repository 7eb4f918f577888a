//! Tests of responses that are read slowly or not at all, one at a time or many at once.

use std::convert::Infallible;
use std::future::{Ready, ready};

use anteroom_config::Config;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, DuplexStream};
use tokio::task::JoinSet;

use super::*;
use crate::downstream::connection::Protocols;
use crate::downstream::drain::drain;
use crate::downstream::hold::ConnectionHold;
use crate::downstream::observer::{ConnectionObserver, Unobserved};
use crate::downstream::timed_io::TimedIo;
use crate::downstream::{Arrival, Handler};

#[test]
fn the_last_piece_is_always_small() {
    let check = |length: usize, expected: &[usize]| {
        let mut watch = Watch {
            stall: Arc::new(Stall::new(progress(&Arc::default()))),
            rest: Bytes::new(),
        };
        let whole: Bytes = (0..length).map(|at| at.to_le_bytes()[0]).collect();
        let mut pieces = vec![watch.cut(whole.clone())];
        pieces.extend(std::iter::from_fn(|| watch.next_piece()));
        let lengths: Vec<usize> = pieces.iter().map(Bytes::len).collect();
        assert_eq!(lengths, expected);
        assert_eq!((pieces.concat(), watch.left()), (whole.to_vec(), 0));
        let last = pieces.last().unwrap().as_ptr();
        assert!(
            !whole.as_ptr_range().contains(&last),
            "the piece keeps the whole frame"
        );
    };
    check(0, &[0]);
    check(1, &[1]);
    check(1_024, &[1_024]);
    check(1_025, &[1, 1_024]);
    check(16_384, &[15_360, 1_024]);
    check(40_000, &[16_384, 16_384, 6_208, 1_024]);
}

/// Returns the progress of a connection with a timeout of a minute.
fn progress(written: &Arc<AtomicU64>) -> Progress {
    Progress::new(Arc::clone(written), 60 * SECOND, 250)
}

const SECOND: Duration = Duration::from_secs(1);

/// Returns the seconds until an unread response is aborted, on a connection that writes so many
/// bytes per second.
async fn aborted_after(bytes_per_second: u64) -> u64 {
    let written = Arc::new(AtomicU64::new(0));
    let executor = StreamExecutor {
        connection: progress(&written),
    };
    let others = tokio::spawn(async move {
        loop {
            written.fetch_add(bytes_per_second, Relaxed);
            tokio::time::sleep(SECOND).await; // tidy: time passes
        }
    });
    let (ended, mut has_ended) = tokio::sync::mpsc::channel::<()>(1);
    let start = Instant::now();
    executor.execute(async move {
        let _ended = ended;
        let stall = Stall::of_current_stream().unwrap();
        // A slow origin and a slow client.
        tokio::time::sleep(100 * SECOND).await; // tidy: time passes
        for _ in 0..3 {
            stall.note_piece();
            tokio::time::sleep(59 * SECOND).await; // tidy: time passes
            stall.note_poll();
            tokio::time::sleep(100 * SECOND).await; // tidy: time passes
        }
        stall.note_piece();
        std::future::pending::<()>().await;
    });
    assert_eq!(has_ended.recv().await, None);
    others.abort();
    start.elapsed().as_secs()
}

#[tokio::test(start_paused = true)]
async fn only_an_unread_response_is_aborted() {
    let before = 100 + 3 * 159;
    assert_eq!(aborted_after(0).await, before + 60);
    assert!(Stall::of_current_stream().is_none());
    // Too few bytes to be other responses.
    assert_eq!(aborted_after(200).await, before + 60);
    // Other responses are read; this one is not waited for without end.
    assert_eq!(aborted_after(1_000).await, before + 600);
}

/// Handler that responds with so many bytes.
#[derive(Clone)]
struct Large(usize);

impl Handler for Large {
    type Body = Full<Bytes>;
    type Decider = crate::fast_path::Never;
    type Future = Ready<Result<Response<Self::Body>, Infallible>>;

    fn handle(&self, _: &Arrival, _: Request<crate::body::Body>) -> Self::Future {
        let body = Full::from(vec![b'x'; self.0]);
        ready(Ok(Response::new(body)))
    }
}

fn hold() -> ConnectionHold {
    let observer: Arc<dyn ConnectionObserver> = Arc::new(Unobserved);
    let (trigger, signal) = drain();
    // The trigger is leaked, so that nothing drains.
    std::mem::forget(trigger);
    ConnectionHold::alone(&observer, signal)
}

/// Returns the defaults of a config file.
fn defaults() -> Protocols {
    let text = "[[room]]\nname = \"shop\"\norigin = \"http://127.0.0.1:3000\"\n\
                total_active_users = 200\nnew_users_per_minute = 200\nbypass = []\n";
    let server = Config::parse("test.toml", text).unwrap().config.server;
    Protocols::new(&server.timeouts, &server.size_limits)
}

/// Serves HTTP/2 on one end of a pipe and returns the other.
async fn serve(handler: Large) -> DuplexStream {
    let (near, far) = tokio::io::duplex(1_000);
    let (protocols, hold) = (defaults(), hold());
    let arrival = Arrival {
        peer: "127.0.0.1:1".parse().unwrap(),
        is_encrypted: true,
        hold: hold.clone(),
    };
    let idle = protocols.write_idle;
    let stream = TimedIo::new(near, idle, protocols.pace.clone(), Some(hold));
    tokio::spawn(async move {
        crate::downstream::connection::serve_http2(stream, Arc::new(protocols), handler, arrival)
            .await;
    });
    far
}

/// Moves a thousand bytes per interval.
async fn carry(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin, every: Duration) {
    let mut bytes = [0; 1_000];
    while let Ok(read @ 1..) = from.read(&mut bytes).await {
        tokio::time::sleep(every).await; // tidy: time passes
        if to.write_all(&bytes[..read]).await.is_err() {
            return;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_hundred_large_responses_complete_over_a_slow_link() {
    const RESPONSES: usize = 100;
    const BYTES: usize = 100_000;
    let far = serve(Large(BYTES)).await;
    let (pipe, own) = tokio::io::duplex(1_000);
    let ((from_server, to_server), (from_client, to_client)) =
        (tokio::io::split(far), tokio::io::split(pipe));
    // 10 KB/s: each response has its turn every 160 s.
    tokio::spawn(carry(from_server, to_client, Duration::from_millis(100)));
    tokio::spawn(carry(from_client, to_server, Duration::ZERO));
    let mut client = http2::Builder::new(TokioExecutor::new());
    client
        .timer(TokioTimer::new())
        .initial_stream_window_size(1_000_000)
        .initial_connection_window_size(100_000_000);
    let (sender, connection) = client.handshake(TokioIo::new(own)).await.unwrap();
    tokio::spawn(connection);
    let mut requests = JoinSet::new();
    for _ in 0..RESPONSES {
        let mut sender = sender.clone();
        requests.spawn(async move {
            let request = Request::get("https://a/").body(Full::<Bytes>::default());
            let response = sender.send_request(request.unwrap()).await.ok()?;
            let body = response.into_body().collect().await.ok()?;
            Some(body.to_bytes().len())
        });
    }
    let responses = requests.join_all().await;
    let whole = responses
        .iter()
        .filter(|response| **response == Some(BYTES));
    assert_eq!(whole.count(), RESPONSES);
}
