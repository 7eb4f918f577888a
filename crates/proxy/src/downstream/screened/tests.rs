//! Tests of slow clients, in paused time.

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

use super::*;
use crate::downstream::drain::{DrainTrigger, drain};
use crate::downstream::observer::ConnectionObserver;

const SECOND: Duration = Duration::from_secs(1);

#[derive(Default)]
struct Seen(Mutex<Vec<AbortReason>>);

impl ConnectionObserver for Seen {
    fn aborted(&self, reason: AbortReason) {
        self.0.lock().push(reason);
    }
}

struct Scene {
    client: DuplexStream,
    screened: Screened<DuplexStream>,
    activity: Arc<Activity>,
    seen: Arc<Seen>,
    _trigger: DrainTrigger,
}

impl Scene {
    /// Creates a connection with ten seconds for a head, thirty for the next request, and 100 bytes
    /// per second of a body.
    async fn new() -> Self {
        let (trigger, signal) = drain();
        let seen = Arc::new(Seen::default());
        let observer = Arc::clone(&seen) as Arc<dyn ConnectionObserver>;
        let hold = ConnectionHold::alone(&observer, signal.clone());
        let activity = Activity::new(0, signal, hold.entry());
        let (client, near) = tokio::io::duplex(1_000_000);
        let timeouts = IdleTimeouts {
            head: 10 * SECOND,
            keep_alive: 30 * SECOND,
        };
        let pace = Pace::new(100);
        let screened = Screened::new(
            HandedOver::new(near),
            timeouts,
            pace,
            Arc::clone(&activity),
            hold,
        );
        Self {
            client,
            screened,
            activity,
            seen,
            _trigger: trigger,
        }
    }

    async fn read(&mut self) -> Result<usize, IoError> {
        self.screened.read(&mut [0; 4096]).await
    }

    async fn send(&mut self, text: &str) {
        self.client.write_all(text.as_bytes()).await.unwrap();
    }

    async fn come(&mut self, text: &str) {
        self.send(text).await;
        assert_eq!(self.read().await.unwrap(), text.len());
    }

    /// Fails unless the stream ends without an error after so many seconds.
    async fn ends_after(&mut self, seconds: u64) {
        let start = Instant::now();
        assert_eq!(self.read().await.unwrap(), 0);
        assert_eq!(start.elapsed().as_secs(), seconds);
    }
}

#[tokio::test(start_paused = true)]
async fn an_idle_new_connection_ends_after_the_head_timeout() {
    let mut scene = Scene::new().await;
    scene.ends_after(10).await;
    assert!(scene.seen.0.lock().is_empty(), "the end is not an abort");
}

#[tokio::test(start_paused = true)]
async fn a_head_in_pieces_has_one_timeout() {
    let mut scene = Scene::new().await;
    for piece in ["GET / HTTP", "/1.1\r\nHo", "st: a\r\n"] {
        scene.come(piece).await;
        tokio::time::sleep(3 * SECOND).await; // tidy: time passes
    }
    let error = scene.read().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert_eq!(*scene.seen.0.lock(), [AbortReason::SlowHead]);
}

#[tokio::test(start_paused = true)]
async fn the_keep_alive_timeout_begins_with_the_end_of_the_response() {
    let mut scene = Scene::new().await;
    let get = "GET / HTTP/1.1\r\n\r\n";
    for _ in 0..3 {
        scene.come(get).await;
        let open = scene.activity.begin();
        let waited = tokio::time::timeout(100 * SECOND, scene.read()).await;
        assert!(waited.is_err(), "a response may take its time");
        drop(open);
        // One second before the timeout.
        let waited = tokio::time::timeout(29 * SECOND, scene.read()).await;
        assert!(waited.is_err());
    }
    scene.come(get).await;
    drop(scene.activity.begin());
    scene.ends_after(30).await;
    assert!(scene.seen.0.lock().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_body_below_the_minimum_rate_is_aborted() {
    let head = "POST / HTTP/1.1\r\nContent-Length: 100000\r\n\r\n";
    for (bytes, is_slow) in [(150, false), (50, true)] {
        let mut scene = Scene::new().await;
        scene.come(head).await;
        let piece = "x".repeat(bytes);
        let mut slow = false;
        for _ in 0..40 {
            let waiting = tokio::time::timeout(SECOND, scene.read()).await;
            assert!(waiting.is_err());
            scene.client.write_all(piece.as_bytes()).await.unwrap();
            slow |= scene.read().await.is_err();
        }
        assert_eq!(slow, is_slow, "{bytes}");
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_read_before_the_response_to_an_upgrade() {
    for status in [101, 400] {
        let mut scene = Scene::new().await;
        scene.come("GET / HTTP/1.1\r\nUpgrade: x\r\n\r\n").await;
        scene.client.write_all(b"\0\n").await.unwrap();
        let waiting = tokio::time::timeout(SECOND, scene.read()).await;
        assert!(waiting.is_err());
        scene.activity.begin_and_respond(status);
        let mut bytes = [9; 4];
        let read = scene.screened.read(&mut bytes).await.unwrap();
        if status == 101 {
            assert_eq!(bytes[..read], *b"\0\n", "the bytes are unchanged");
            let waiting = tokio::time::timeout(1_000 * SECOND, scene.read()).await;
            assert!(waiting.is_err(), "a tunnel has no timeout here");
        } else {
            assert_eq!(bytes[..read], *b"\0\0", "no request");
            assert_eq!(*scene.seen.0.lock(), [AbortReason::Framing]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn bytes_after_an_upgrade_wait_for_its_response_unchanged() {
    let upgrade = "GET / HTTP/1.1\r\nUpgrade: x\r\n\r\n";
    let get = "GET / HTTP/1.1\r\n\r\n";
    for (status, behind, expected) in [
        (101, "no\nhttp", "no\nhttp"),
        (400, get, get),
        (400, "no\nhttp", "no\0"),
    ] {
        let mut scene = Scene::new().await;
        scene.send(&format!("{upgrade}{behind}")).await;
        let mut bytes = [9; 100];
        let read = scene.screened.read(&mut bytes).await.unwrap();
        assert_eq!(
            bytes[..read],
            *upgrade.as_bytes(),
            "the head and nothing else"
        );
        let waiting = tokio::time::timeout(SECOND, scene.read()).await;
        assert!(waiting.is_err());
        scene.activity.begin_and_respond(status);
        // With a smaller buffer than there are bytes to read.
        let mut received = Vec::new();
        while received.len() < expected.len() {
            let mut bytes = [9; 3];
            let read = scene.screened.read(&mut bytes).await.unwrap();
            received.extend_from_slice(&bytes[..read]);
        }
        assert_eq!(String::from_utf8(received).unwrap(), expected);
        let wrong = u64::from(expected.ends_with('\0'));
        assert_eq!(scene.seen.0.lock().len() as u64, wrong);
    }
}

#[tokio::test(start_paused = true)]
async fn a_second_early_upgrade_waits_for_its_own_response() {
    let upgrade = "GET / HTTP/1.1\r\nUpgrade: x\r\n\r\n";
    let mut scene = Scene::new().await;
    scene.send(&format!("{upgrade}{upgrade}tunnel")).await;
    for status in [400, 101] {
        let mut bytes = [9; 100];
        let read = scene.screened.read(&mut bytes).await.unwrap();
        assert_eq!(bytes[..read], *upgrade.as_bytes());
        scene.activity.begin_and_respond(status);
    }
    let mut bytes = [9; 100];
    let read = scene.screened.read(&mut bytes).await.unwrap();
    assert_eq!(bytes[..read], *b"tunnel");
}

#[tokio::test(start_paused = true)]
async fn nothing_passes_after_a_head_of_unknown_length() {
    let head = "POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n";
    let mut scene = Scene::new().await;
    scene
        .send(&format!("{head}0\r\n\r\nGET / HTTP/1.1\r\n\r\n"))
        .await;
    let mut bytes = [9; 100];
    let read = scene.screened.read(&mut bytes).await.unwrap();
    assert_eq!(bytes[..read], *head.as_bytes());
    assert_eq!(scene.read().await.unwrap(), 0);
}

/// Returns the text that is read of `pieces`, with `room` bytes per read.
async fn read_of(pieces: &[&str], room: usize) -> String {
    let mut scene = Scene::new().await;
    let mut read = Vec::new();
    let mut buffer = vec![0; room];
    for piece in pieces {
        scene.send(piece).await;
        // Time passes only when there is nothing more to read.
        while let Ok(count) = tokio::time::timeout(SECOND, scene.screened.read(&mut buffer)).await {
            read.extend_from_slice(&buffer[..count.unwrap()]);
        }
    }
    String::from_utf8(read).unwrap()
}

#[tokio::test(start_paused = true)]
async fn raw_characters_of_a_query_are_encoded() {
    let check = async |pieces: &[&str], expected: &str| {
        for room in [4096, 7] {
            let read = read_of(pieces, room).await;
            assert_eq!(read, expected, "{pieces:?} {room}");
        }
    };
    let head = "Host: a\r\nX: \"<kept>\"\r\n\r\n";
    let odd = format!("GET /\"p\"?a=\"b\"&c=<d>{{|}} HTTP/1.1\r\n{head}");
    let encoded = format!("GET /\"p\"?a=%22b%22&c=%3Cd%3E{{|}} HTTP/1.1\r\n{head}");
    check(&[&odd], &encoded).await;
    check(
        &["GET /?\"", "\"x", "\" HTTP/1.1\r\n", head],
        &format!("GET /?%22%22x%22 HTTP/1.1\r\n{head}"),
    )
    .await;
    check(
        &["GET /", "?", "<", "? HTTP/1.1\r\n", head],
        &format!("GET /?%3C? HTTP/1.1\r\n{head}"),
    )
    .await;
    let plain = format!("GET /\"p\" HTTP/1.1\r\n{head}");
    check(&[&plain], &plain).await;
    // Pipelined requests with a body between them.
    let post = "POST /?\" HTTP/1.1\r\nContent-Length: 3\r\n\r\n\"<>";
    let posted = "POST /?%22 HTTP/1.1\r\nContent-Length: 3\r\n\r\n\"<>";
    check(&[&format!("{post}{odd}")], &format!("{posted}{encoded}")).await;
}
