//! What does the gateway protect? A small shop that slows down when too many are in it.
//!
//! The slowness is honest about its cause and not about its means: a page takes longer the more
//! distinct visitors are inside, as it does where they share a database, but it takes longer by
//! sleeping. Burning the processor instead would slow the gateway and the crowd of the same demo
//! as well, and prove nothing. The shop does not defend itself; that is the gateway's part.
//!
//! It feeds the [`Checker`] with every request.

mod events;
mod routes;
mod service_time;
mod shop;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use anteroom_room::rules::Limits;
use anteroom_room::time::DurationMs;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

pub use self::routes::SHOP_SEAT_ENDS;
pub use self::service_time::ServiceTime;
pub(crate) use self::shop::ITEMS;
use super::clock::Clock;
use super::judge::{Checker, Verdict};
use super::quantiles::{Durations, Quantiles};
use super::stop::{Stop, Stopper};

/// How long open requests get when the shop closes. Event streams never end by themselves, so
/// longer only makes the end of the demo longer; shorter cuts off pages that are being written.
const CLOSING_FOR: Duration = Duration::from_millis(300);

/// How long to leave the listener alone after it failed (out of file descriptors, mostly).
/// Shorter spins, longer keeps visitors waiting who could be served.
const ACCEPT_AGAIN_AFTER: Duration = Duration::from_millis(50);

/// What the origin must know to play its part.
#[derive(Clone, Debug)]
pub struct OriginOptions {
    /// The room that requests must have been admitted to.
    pub room: String,
    /// For the verdict at `/judge` only; the shop does not enforce them.
    pub limits: Limits,
    /// For the judge's second measure and the countdown on the pages.
    pub session_duration: DurationMs,
    /// How long pages take.
    pub service_time: ServiceTime,
}

/// A running origin.
#[derive(Debug)]
pub struct Origin {
    address: SocketAddr,
    shop: Arc<Shop>,
    stopper: Stopper,
    server: JoinHandle<()>,
}

/// What all requests share.
#[derive(Debug)]
struct Shop {
    options: OriginOptions,
    clock: Clock,
    judge: Mutex<Checker>,
    response_times: Mutex<Durations>,
    /// Requests in service that nobody can put a visitor to; each weighs like a visitor.
    anonymous: AtomicU32,
}

impl Origin {
    /// Serves HTTP/1.1 on `listener` until [`Origin::stop`].
    ///
    /// # Errors
    ///
    /// If the listener does not know its own address.
    pub fn start(listener: TcpListener, options: OriginOptions) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let judge = Checker::new(options.session_duration);
        let shop = Arc::new(Shop {
            options,
            clock: Clock::start(),
            judge: Mutex::new(judge),
            response_times: Mutex::new(Durations::new()),
            anonymous: AtomicU32::new(0),
        });
        let (stopper, stop) = Stopper::new();
        let server = tokio::spawn(serve(listener, Arc::clone(&shop), stop));
        Ok(Self {
            address,
            shop,
            stopper,
            server,
        })
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// What the judge has counted until now, beside the limits of the options.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.shop.verdict()
    }

    /// How long pages took to answer, as the origin measured it; `None` if there were none.
    #[must_use]
    pub fn response_times(&self) -> Option<Quantiles> {
        self.shop.response_times.lock().quantiles()
    }

    /// Stops listening, gives open requests a moment, then closes everything.
    ///
    /// # Panics
    ///
    /// If the server panicked.
    pub async fn stop(self) {
        self.stopper.stop();
        self.server
            .await
            .expect("the origin's server does not panic");
    }
}

impl Shop {
    fn verdict(&self) -> Verdict {
        // The clock is read under the lock, so that the judge sees time in order.
        let mut judge = self.judge.lock();
        judge.verdict(self.options.limits, self.clock.now())
    }
}

async fn serve(listener: TcpListener, shop: Arc<Shop>, mut stop: Stop) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = stop.requested() => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(serve_connection(stream, Arc::clone(&shop), stop.clone()));
                }
                Err(_) => tokio::time::sleep(ACCEPT_AGAIN_AFTER).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
    drop(listener);
    let all_closed = async { while connections.join_next().await.is_some() {} };
    // Past the time-out the rest is cut off, event streams among them.
    drop(tokio::time::timeout(CLOSING_FOR, all_closed).await);
    connections.shutdown().await;
}

async fn serve_connection(stream: TcpStream, shop: Arc<Shop>, mut stop: Stop) {
    // Without it small pages wait for acknowledgements; a socket that refuses still works.
    drop(stream.set_nodelay(true));
    let service = service_fn(move |request| routes::answer(Arc::clone(&shop), request));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    // A connection that breaks is the other side's business: the gateway will say so.
    tokio::select! {
        _ = connection.as_mut() => {}
        () = stop.requested() => {
            connection.as_mut().graceful_shutdown();
            drop(connection.await);
        }
    }
}
