//! One connection, from its first byte to its last.

use std::error::Error;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::service::Service;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tracing::debug;

use crate::activity::{Activity, Answering, Tracked};
use crate::drain::Quietly;
use crate::io::TimedIo;
use crate::screened::Screened;
use crate::server::Protocols;
use crate::stall::{Progress, StreamExecutor};
use crate::tls::{self, Tls};
use crate::{Arrival, Handler};

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
        return http1(stream, &protocols, handler, arrival).await;
    };
    // Without a word of HTTP there is nothing to let finish.
    let stopped = Quietly::new(arrival.hold.signal.clone().started());
    let shaken = tokio::select! {
        shaken = tls.accept(stream, protocols.patience.head) => shaken,
        () = stopped => return,
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
        http2(stream, &protocols, handler, arrival).await;
    } else {
        http1(stream, &protocols, handler, arrival).await;
    }
}

async fn http1<I, H>(stream: I, protocols: &Protocols, handler: H, arrival: Arrival)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    H: Handler,
{
    let signal = arrival.hold.signal.clone();
    let activity = Activity::new(protocols.requests_max, signal.clone());
    let stream = Screened::new(
        stream,
        protocols.patience,
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
    let ended = tokio::select! {
        biased;
        ended = connection.as_mut() => Some(ended),
        () = Quietly::new(signal.clone().started()) => None,
    };
    let ended = match ended {
        Some(ended) => ended,
        None => {
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                biased;
                ended = connection => ended,
                () = signal.cut() => return,
            }
        }
    };
    tell(ended);
}

/// Serves HTTP/2 on what is encrypted already, until it ends.
pub(crate) async fn http2<I, H>(stream: I, protocols: &Protocols, handler: H, arrival: Arrival)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    H: Handler,
{
    let signal = arrival.hold.signal.clone();
    let activity = Activity::new(protocols.requests_max, signal.clone());
    let (ending, leaving) = (Arc::clone(&activity), signal.clone().leaving());
    let patience = protocols.patience;
    let over = Quietly::new(async move {
        tokio::select! {
            () = ending.is_over(patience) => {}
            () = leaving => {}
        }
    });
    let progress = Progress::new(
        arrival.hold.written(),
        protocols.write_idle,
        protocols.pace.bytes_per_second_min(),
    );
    let forgotten = Forgotten {
        activity: Arc::clone(&activity),
        head: patience.head,
        progress: progress.clone(),
    };
    let stream = TokioIo::new(stream);
    let service = Served {
        handler,
        arrival,
        activity,
    };
    let http2 = protocols.http2(StreamExecutor {
        connection: progress,
    });
    let mut connection = pin!(http2.serve_connection(stream, service));
    let ended = tokio::select! {
        biased;
        ended = connection.as_mut() => Some(ended),
        () = over => None,
    };
    let ended = match ended {
        Some(ended) => ended,
        None => {
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                biased;
                ended = connection => ended,
                () = signal.cut() => return,
                () = forgotten.is_so() => return,
            }
        }
    };
    tell(ended);
}

/// A connection that is to end, and whose client does not care.
struct Forgotten {
    activity: Arc<Activity>,
    head: Duration,
    progress: Progress,
}

impl Forgotten {
    /// Resolves when all was answered, and the client does not take the last bytes of it; or when nothing
    /// was ever asked: it may not even have begun to speak HTTP/2.
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
    type Future = Answering<H::Future>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let open = self.activity.begin();
        let version = request.version();
        Answering::new(self.handler.handle(&self.arrival, request), open, version)
    }
}

/// The builder of HTTP/2 connections.
pub(crate) type Http2 = hyper::server::conn::http2::Builder<StreamExecutor>;

/// How long a client may take to answer a ping before its connection counts as dead.
pub(crate) const PING_WAIT: Duration = Duration::from_secs(20);

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;
    use crate::drain::drain;
    use crate::hold::{ConnectionCap, ConnectionHold, ConnectionObserver, Unobserved};
    use crate::lanes::Open;

    #[tokio::test(start_paused = true)]
    async fn whoever_takes_the_last_answers_slowly_is_waited_for() {
        let permit = ConnectionCap::new(1).permit(&Unobserved).await.unwrap();
        let observer: Arc<dyn ConnectionObserver> = Arc::new(Unobserved);
        let (_trigger, signal) = drain();
        let hold = ConnectionHold::new(permit, &observer, signal.clone(), Open::default());
        let activity = Activity::new(0, signal);
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
