//! One connection, from its first byte to its last.

use std::error::Error;
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

use crate::downstream::activity::{Activity, Answering, IdleTimeouts, Tracked};
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
use crate::timeouts::wait_of;

/// What holds for every connection of a listener.
pub(crate) struct Protocols {
    pub(crate) http1: hyper::server::conn::http1::Builder,
    pub(crate) http2: Http2Limits,
    pub(crate) timeouts: IdleTimeouts,
    pub(crate) pace: Pace,
    pub(crate) write_idle: Duration,
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
            requests_max: sizes.requests_per_connection,
        }
    }
}

/// Serves a connection until it ends.
pub(crate) async fn serve<H: Handler>(
    stream: TcpStream,
    protocols: Arc<Protocols>,
    tls: Option<Tls>,
    handler: H,
    mut arrival: Arrival,
) {
    // Below TLS: only there it is seen what is on its way, and what is still to come at the end.
    let stream = timed(stream, &protocols, &arrival);
    let Some(tls) = tls else {
        return serve_http1(stream, &protocols, handler, arrival).await;
    };
    // Without a word of HTTP there is nothing to let finish.
    let stopped = Quietly::new(told_to_end(&arrival.hold, Until::Draining));
    let shaken = tokio::select! {
        shaken = tls.accept(stream, protocols.timeouts.head) => shaken,
        _ = stopped => return,
    };
    let stream = match shaken {
        Ok(stream) => stream,
        Err(error) => {
            arrival.hold.observer().handshake_failed();
            debug!(error = &error as &dyn Error, peer = %arrival.peer, "no TLS");
            return;
        }
    };
    arrival.is_encrypted = true;
    if tls::is_http2(&stream) {
        serve_http2(stream, &protocols, handler, arrival).await;
    } else {
        serve_http1(stream, &protocols, handler, arrival).await;
    }
}

async fn serve_http1<I, H>(stream: I, protocols: &Protocols, handler: H, arrival: Arrival)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    H: Handler,
{
    let signal = arrival.hold.signal.clone();
    let entry = Arc::clone(arrival.hold.entry());
    let activity = Activity::new(protocols.requests_max, signal.clone(), &entry);
    let told = Quietly::new(told_to_end(&arrival.hold, Until::Draining));
    let stream = Screened::new(
        stream,
        protocols.timeouts,
        protocols.pace.clone(),
        Arc::clone(&activity),
        arrival.hold.clone(),
    );
    let stream = TokioIo::new(stream);
    let service = Served {
        handler,
        arrival,
        activity,
    };
    let connection = protocols.http1.serve_connection(stream, service);
    let mut connection = pin!(connection.with_upgrades());
    let told = tokio::select! {
        biased;
        ended = connection.as_mut() => return tell(ended),
        told = told => told,
    };
    connection.as_mut().graceful_shutdown();
    if told == CloseReason::MakeRoom {
        return make_room(connection, &entry, &signal).await;
    }
    tokio::select! {
        biased;
        ended = connection.as_mut() => tell(ended),
        () = signal.clone().cut() => {}
        () = entry.ended() => make_room(connection, &entry, &signal).await,
    }
}

/// Until when a connection waits for a word that it ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Until {
    Leaving,
    Draining,
}

/// Why a connection ends that could go on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum CloseReason {
    /// The process ends.
    Drain,
    /// There are too many connections.
    MakeRoom,
}

/// Resolves when a connection is told to end.
fn told_to_end(hold: &ConnectionHold, until: Until) -> impl Future<Output = CloseReason> + use<> {
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

/// Ends a connection that has been told so. What can be said at once is said (GOAWAY, the end of
/// TLS); only a request that came in between is waited for.
async fn make_room<F>(mut connection: Pin<&mut F>, entry: &Entry, signal: &DrainSignal)
where
    F: Future<Output = hyper::Result<()>>,
{
    let ended = std::future::poll_fn(|cx| Poll::Ready(connection.as_mut().poll(cx))).await;
    if ended.is_pending() && entry.is_busy() {
        tokio::select! {
            biased;
            ended = connection => tell(ended),
            () = signal.clone().cut() => {}
        }
    }
}

/// Serves HTTP/2 on what is encrypted already, until it ends.
pub(crate) async fn serve_http2<I, H>(
    stream: I,
    protocols: &Protocols,
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
    let told = told_to_end(&arrival.hold, Until::Leaving);
    let over = Quietly::new(async move {
        tokio::select! {
            () = ending.is_over(timeouts) => CloseReason::Drain,
            told = told => told,
        }
    });
    let progress = Progress::new(
        arrival.hold.written(),
        protocols.write_idle,
        protocols.pace.bytes_per_second_min(),
    );
    let forgotten = Forgotten {
        activity: Arc::clone(&activity),
        head: timeouts.head,
        progress: progress.clone(),
    };
    let stream = TokioIo::new(stream);
    let service = Served {
        handler,
        arrival,
        activity,
    };
    let http2 = protocols.http2.builder(StreamExecutor {
        connection: progress,
    });
    let mut connection = pin!(http2.serve_connection(stream, service));
    let told = tokio::select! {
        biased;
        ended = connection.as_mut() => return tell(ended),
        told = over => told,
    };
    connection.as_mut().graceful_shutdown();
    if told == CloseReason::MakeRoom {
        return make_room(connection, &entry, &signal).await;
    }
    tokio::select! {
        biased;
        ended = connection.as_mut() => tell(ended),
        () = signal.clone().cut() => {}
        () = forgotten.is_so() => {}
        () = entry.ended() => make_room(connection, &entry, &signal).await,
    }
}

/// A connection that is to end, and whose client does not care.
struct Forgotten {
    activity: Arc<Activity>,
    head: Duration,
    progress: Progress,
}

impl Forgotten {
    /// Resolves when all was answered, and the client does not take the last bytes of it; or when
    /// nothing was ever asked: it may not even have begun to speak HTTP/2, for which hyper 1.12
    /// waits without end (`State::Handshaking`).
    async fn is_so(&self) {
        let activity = &self.activity;
        if activity.is_new() {
            tokio::time::sleep(self.head).await;
            if activity.is_new() {
                return;
            }
        }
        let idle = self.progress.patience;
        loop {
            let before = self.progress.written();
            tokio::time::sleep(idle).await;
            activity.is_idle_for(idle).await;
            if !self.progress.went_on_since(before) {
                return;
            }
        }
    }
}

/// With time-outs and a least pace for what is written.
fn timed(stream: TcpStream, protocols: &Protocols, arrival: &Arrival) -> TimedIo<TcpStream> {
    let hold = Some(arrival.hold.clone());
    TimedIo::new(stream, protocols.write_idle, protocols.pace.clone(), hold)
}

fn tell(ended: hyper::Result<()>) {
    if let Err(error) = ended {
        debug!(error = &error as &dyn Error, "connection broke");
    }
}

/// The handler, as one connection sees it.
struct Served<H> {
    handler: H,
    arrival: Arrival,
    activity: Arc<Activity>,
}

impl<H: Handler> Service<Request<Incoming>> for Served<H> {
    type Response = http::Response<Tracked<H::Body>>;
    type Error = std::convert::Infallible;
    type Future = Answering<H::Future, H::Body>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let open = self.activity.begin();
        let version = request.version();
        let answer = self.handler.handle(&self.arrival, request);
        Answering::new(answer, open, version, H::is_own)
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;
    use crate::downstream::drain::drain;
    use crate::downstream::observer::{ConnectionObserver, Unobserved};

    #[tokio::test(start_paused = true)]
    async fn whoever_takes_the_last_answers_slowly_is_waited_for() {
        let observer: Arc<dyn ConnectionObserver> = Arc::new(Unobserved);
        let (_trigger, signal) = drain();
        let hold = ConnectionHold::alone(&observer, signal.clone());
        let activity = Activity::new(0, signal, hold.entry());
        activity.begin_and_answer(200);
        let forgotten = Forgotten {
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
        forgotten.is_so().await;
        client.abort();
        assert_eq!(began.elapsed().as_secs() / 60, 4);
    }
}
