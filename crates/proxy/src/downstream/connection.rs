//! Service of one connection, from its first byte to its last.

use std::error::Error;
use std::io::Error as IoError;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use anteroom_config::{SizeLimits, Timeouts};
use http::Request;
use hyper::body::Incoming;
use hyper::service::Service;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tracing::debug;

use crate::body::Body;
use crate::downstream::activity::{Activity, IdleTimeouts, PendingResponse, Tracked};
use crate::downstream::connection_table::Entry;
use crate::downstream::drain::{DrainSignal, Quietly};
use crate::downstream::hold::ConnectionHold;
use crate::downstream::http1;
use crate::downstream::http2::Http2Limits;
use crate::downstream::http2::stall::{Progress, StreamExecutor};
use crate::downstream::pace::Pace;
use crate::downstream::screened::Screened;
use crate::downstream::timed_io::TimedIo;
use crate::downstream::tls::{self, Tls};
use crate::downstream::{Arrival, Handler};
use crate::fast_path::{self, Ending, HandedOver};
use crate::timeouts::wait_of;

/// Settings of every connection of a listener.
pub(crate) struct Protocols {
    pub(crate) http1: hyper::server::conn::http1::Builder,
    pub(crate) http2: Http2Limits,
    pub(crate) timeouts: IdleTimeouts,
    pub(crate) pace: Pace,
    pub(crate) write_idle: Duration,
    /// Most bytes of a request's head.
    pub(crate) head_bytes: usize,
    /// Timeout of a response's head.
    pub(crate) origin_response: Duration,
    pub(crate) requests_max: u64,
}

impl Protocols {
    pub(crate) fn new(timeouts: &Timeouts, sizes: &SizeLimits) -> Self {
        Self {
            http1: http1::builder(sizes),
            http2: Http2Limits::of(sizes),
            timeouts: IdleTimeouts {
                head: wait_of(timeouts.request_head),
                keep_alive: wait_of(timeouts.keep_alive),
            },
            pace: Pace::new(sizes.body_bytes_per_second_min),
            write_idle: wait_of(timeouts.body_idle),
            head_bytes: sizes.request_head_bytes,
            origin_response: wait_of(timeouts.origin_response),
            requests_max: sizes.requests_per_connection,
        }
    }
}

/// Returns a future that serves a connection until it ends.
///
/// Each protocol has a box of its own: together they would make every idle connection as large as
/// the largest of them, several times over.
pub(crate) fn serve<H: Handler>(
    stream: TcpStream,
    protocols: Arc<Protocols>,
    tls: Option<Tls>,
    handler: H,
    arrival: Arrival,
) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    // Below TLS: only there are the bytes in flight visible, and the last bytes of the client.
    let stream = timed(stream, &protocols, &arrival);
    match tls {
        Some(tls) => Box::pin(serve_tls(stream, protocols, tls, handler, arrival)),
        None => Box::pin(serve_http1(Box::new(stream), protocols, handler, arrival)),
    }
}

async fn serve_tls<H: Handler>(
    stream: TimedIo<TcpStream>,
    protocols: Arc<Protocols>,
    tls: Tls,
    handler: H,
    mut arrival: Arrival,
) {
    // Before the first byte of HTTP there is nothing to finish.
    let stopped = Quietly::new(close_requested(&arrival.hold, Until::Draining));
    let handshake = tokio::select! {
        handshake = Box::pin(tls.accept(stream, protocols.timeouts.head)) => handshake,
        _ = stopped => return,
    };
    let stream = match handshake {
        Ok(stream) => stream,
        Err(error) => {
            arrival.hold.observer().handshake_failed();
            debug!(error = &error as &dyn Error, peer = %arrival.peer, "no TLS");
            return;
        }
    };
    arrival.is_encrypted = true;
    let served: Pin<Box<dyn Future<Output = ()> + Send>> = if tls::is_http2(&stream) {
        Box::pin(serve_http2(stream, protocols, handler, arrival))
    } else {
        Box::pin(serve_http1(Box::new(stream), protocols, handler, arrival))
    };
    served.await;
}

/// Serves HTTP/1.1. The stream is in a box, because it moves from future to future, and each of
/// them keeps room for what it has passed on.
async fn serve_http1<I, H>(stream: Box<I>, protocols: Arc<Protocols>, handler: H, arrival: Arrival)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    H: Handler,
{
    let signal = arrival.hold.signal.clone();
    let activity = Activity::new(protocols.requests_max, signal, arrival.hold.entry());
    let mut reader = HandedOver::new(stream);
    if let Some(fast_path) = handler.fast_path() {
        let connection = (&arrival, &activity);
        let driven = fast_path::drive(reader.io, &protocols, &handler, &fast_path, connection);
        let ended = until_end(Box::pin(driven).as_mut(), &arrival.hold, |_| {
            activity.close()
        })
        .await;
        match ended.and_then(after_fast) {
            Some(handed_over) => reader = handed_over,
            None => return,
        }
    }
    let hold = arrival.hold.clone();
    let stream = Screened::new(
        reader,
        protocols.timeouts,
        protocols.pace.clone(),
        Arc::clone(&activity),
        hold.clone(),
    );
    let stream = TokioIo::new(stream);
    let service = Served {
        handler,
        arrival,
        activity,
        body_idle: protocols.write_idle,
    };
    let connection = protocols.http1.serve_connection(stream, service);
    let mut connection = Box::pin(connection.with_upgrades());
    log_end(
        until_end(connection.as_mut(), &hold, |connection| {
            connection.graceful_shutdown()
        })
        .await,
    );
}

/// Waits for the end of an HTTP/1.1 connection. When it must close, `close` lets it end with its
/// next response, or at once while it has no request. Returns its end; `None` if it is cut off.
async fn until_end<F: Future>(
    mut connection: Pin<&mut F>,
    hold: &ConnectionHold,
    close: impl FnOnce(Pin<&mut F>),
) -> Option<F::Output> {
    let (entry, signal) = (hold.entry(), &hold.signal);
    let reason = Quietly::new(close_requested(hold, Until::Draining));
    let reason = tokio::select! {
        biased;
        ended = connection.as_mut() => return Some(ended),
        reason = reason => reason,
    };
    close(connection.as_mut());
    if reason == CloseReason::MakeRoom {
        return make_room(connection, entry, signal).await;
    }
    tokio::select! {
        biased;
        ended = connection.as_mut() => Some(ended),
        () = signal.clone().cut() => None,
        () = entry.ended() => make_room(connection, entry, signal).await,
    }
}

/// Returns the connection with its first request that is not mine, if the fast path ended with one.
fn after_fast<I>(ended: Result<Ending<I>, IoError>) -> Option<HandedOver<I>> {
    match ended {
        Ok(Ending::NotMine(handed_over)) => Some(handed_over),
        Ok(Ending::Ended) => None,
        Err(error) => {
            debug!(error = &error as &dyn Error, "connection broke");
            None
        }
    }
}

/// Drain phase in which a connection closes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Until {
    Leaving,
    Draining,
}

/// Reason to close a connection that could continue.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum CloseReason {
    /// The process ends.
    Drain,
    /// Another connection needs the room.
    MakeRoom,
}

/// Resolves when a connection must close.
fn close_requested(
    hold: &ConnectionHold,
    until: Until,
) -> impl Future<Output = CloseReason> + use<> {
    let (signal, entry) = (hold.signal.clone(), Arc::clone(hold.entry()));
    async move {
        let ends = async {
            match until {
                Until::Leaving => signal.leaving().await,
                Until::Draining => signal.started().await,
            }
        };
        tokio::select! {
            () = ends => CloseReason::Drain,
            () = entry.ended() => CloseReason::MakeRoom,
        }
    }
}

/// Closes a connection to make room. Returns its end; `None` if it is cut off.
///
/// Final frames that can be sent at once are sent (GOAWAY, the end of TLS); only a request that
/// arrived in between is waited for.
async fn make_room<F: Future>(
    mut connection: Pin<&mut F>,
    entry: &Entry,
    signal: &DrainSignal,
) -> Option<F::Output> {
    match std::future::poll_fn(|cx| Poll::Ready(connection.as_mut().poll(cx))).await {
        Poll::Ready(ended) => Some(ended),
        Poll::Pending if entry.is_busy() => {
            tokio::select! {
                biased;
                ended = connection => Some(ended),
                () = signal.clone().cut() => None,
            }
        }
        Poll::Pending => None,
    }
}

/// Serves HTTP/2 on an encrypted stream until it ends.
pub(crate) async fn serve_http2<I, H>(
    stream: I,
    protocols: Arc<Protocols>,
    handler: H,
    arrival: Arrival,
) where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    H: Handler,
{
    let signal = arrival.hold.signal.clone();
    let entry = Arc::clone(arrival.hold.entry());
    let activity = Activity::new(protocols.requests_max, signal.clone(), &entry);
    let ending = Arc::clone(&activity);
    let timeouts = protocols.timeouts;
    let reason = close_requested(&arrival.hold, Until::Leaving);
    let over = Quietly::new(async move {
        tokio::select! {
            () = ending.is_over(timeouts) => CloseReason::Drain,
            reason = reason => reason,
        }
    });
    let progress = Progress::new(
        arrival.hold.written(),
        protocols.write_idle,
        protocols.pace.bytes_per_second_min(),
    );
    let stalled = StalledClient {
        activity: Arc::clone(&activity),
        head: timeouts.head,
        progress: progress.clone(),
    };
    let stream = TokioIo::new(stream);
    let service = Served {
        handler,
        arrival,
        activity,
        body_idle: protocols.write_idle,
    };
    let http2 = protocols.http2.builder(StreamExecutor {
        connection: progress,
    });
    let mut connection = pin!(http2.serve_connection(stream, service));
    let reason = tokio::select! {
        biased;
        ended = connection.as_mut() => return log_end(Some(ended)),
        reason = over => reason,
    };
    connection.as_mut().graceful_shutdown();
    if reason == CloseReason::MakeRoom {
        return log_end(make_room(connection, &entry, &signal).await);
    }
    tokio::select! {
        biased;
        ended = connection.as_mut() => log_end(Some(ended)),
        () = signal.clone().cut() => {}
        () = stalled.detected() => {}
        () = entry.ended() => log_end(make_room(connection, &entry, &signal).await),
    }
}

/// Connection that must close, and whose client does not react.
struct StalledClient {
    activity: Arc<Activity>,
    head: Duration,
    progress: Progress,
}

impl StalledClient {
    /// Resolves when all responses are sent and the client does not read the last bytes. It also
    /// resolves if there was no request: the client may not have begun HTTP/2, for which hyper 1.12
    /// waits without end (`State::Handshaking`).
    async fn detected(&self) {
        let activity = &self.activity;
        if activity.is_new() {
            tokio::time::sleep(self.head).await;
            if activity.is_new() {
                return;
            }
        }
        let idle = self.progress.timeout;
        loop {
            let before = self.progress.written();
            tokio::time::sleep(idle).await;
            activity.is_idle_for(idle).await;
            if !self.progress.has_moved_since(before) {
                return;
            }
        }
    }
}

/// Adds timeouts and a minimum rate to writes.
fn timed(stream: TcpStream, protocols: &Protocols, arrival: &Arrival) -> TimedIo<TcpStream> {
    let hold = Some(arrival.hold.clone());
    TimedIo::new(stream, protocols.write_idle, protocols.pace.clone(), hold)
}

/// Logs how a connection ended; `None`: it was cut off.
fn log_end(ended: Option<hyper::Result<()>>) {
    if let Some(Err(error)) = ended {
        debug!(error = &error as &dyn Error, "connection broke");
    }
}

/// Handler with the state of one connection.
struct Served<H> {
    handler: H,
    arrival: Arrival,
    activity: Arc<Activity>,
    body_idle: Duration,
}

impl<H: Handler> Service<Request<Incoming>> for Served<H> {
    type Response = http::Response<Tracked<H::Body>>;
    type Error = std::convert::Infallible;
    type Future = PendingResponse<H::Future, H::Body>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let open = self.activity.begin();
        let version = request.version();
        let request = request.map(|body| Body::incoming(body, self.body_idle));
        let response = self.handler.handle(&self.arrival, request);
        PendingResponse::new(response, open, version, H::is_own)
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;
    use crate::downstream::drain::drain;
    use crate::downstream::observer::{ConnectionObserver, Unobserved};

    #[tokio::test(start_paused = true)]
    async fn a_slow_reader_of_the_last_responses_is_waited_for() {
        let observer: Arc<dyn ConnectionObserver> = Arc::new(Unobserved);
        let (_trigger, signal) = drain();
        let hold = ConnectionHold::alone(&observer, signal.clone());
        let activity = Activity::new(0, signal, hold.entry());
        activity.begin_and_respond(200);
        let stalled = StalledClient {
            activity,
            head: Duration::from_secs(10),
            progress: Progress::new(hold.written(), Duration::from_secs(60), 250),
        };
        let began = Instant::now();
        let client = tokio::spawn(async move {
            // 40 KB/s for two and a half minutes, and pings from then on.
            for _ in 0..150 {
                hold.note_written(40_000);
                tokio::time::sleep(Duration::from_secs(1)).await; // tidy: time passes
            }
            loop {
                hold.note_written(17);
                tokio::time::sleep(Duration::from_secs(20)).await; // tidy: time passes
            }
        });
        stalled.detected().await;
        client.abort();
        assert_eq!(began.elapsed().as_secs() / 60, 4);
    }
}
