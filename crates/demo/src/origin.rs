//! Origin of the demo: a small shop that slows down when too many visitors are active.
//!
//! A page takes longer the more distinct visitors are active, as it does if they share a database,
//! but it takes longer by sleeping. To burn the processor instead would slow the gateway and the
//! visitors of the same demo as well, and prove nothing. The shop does not defend itself; that is
//! the gateway's task.
//!
//! It passes every request to the [`Checker`].

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
use super::checker::{Checker, Verdict};
use super::clock::Clock;
use super::quantiles::{Durations, Quantiles};
use super::stop::{Stop, Stopper};

/// Time for open requests when the shop closes. Event streams have no end, so a longer time only
/// makes the end of the demo longer; a shorter one cuts off pages that are being written.
const CLOSING_FOR: Duration = Duration::from_millis(300);

/// Pause after the listener failed, mostly because file descriptors ran out. A shorter pause spins,
/// a longer one delays visitors who could be served.
const ACCEPT_AGAIN_AFTER: Duration = Duration::from_millis(50);

/// Settings of the origin.
#[derive(Clone, Debug)]
pub struct OriginOptions {
    /// The room that requests must have been admitted to.
    pub room: String,
    /// Limits for the verdict at `/checker` only; the shop does not enforce them.
    pub limits: Limits,
    /// Session duration, for [`Verdict::most_seen_in_a_session`] and the countdown on the pages.
    pub session_duration: DurationMs,
    /// Time that pages take.
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

/// State that all requests share.
#[derive(Debug)]
struct Shop {
    options: OriginOptions,
    clock: Clock,
    checker: Mutex<Checker>,
    response_times: Mutex<Durations>,
    /// Requests in service without a known visitor; each counts like a visitor.
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
        let checker = Checker::new(options.session_duration);
        let shop = Arc::new(Shop {
            options,
            clock: Clock::start(),
            checker: Mutex::new(checker),
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

    /// Returns the address on which it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the counts of the checker so far, with the limits of the options.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.shop.verdict()
    }

    /// Returns the times of pages, as the origin measured them; `None` if there were none.
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
        // The clock is read under the lock, so that the checker sees times in order.
        let mut checker = self.checker.lock();
        checker.verdict(self.options.limits, self.clock.now())
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
    // After the timeout the rest is cut off, event streams among them.
    drop(tokio::time::timeout(CLOSING_FOR, all_closed).await);
    connections.shutdown().await;
}

async fn serve_connection(stream: TcpStream, shop: Arc<Shop>, mut stop: Stop) {
    // Without it, small packets wait for acknowledgements; if it fails, the socket still works.
    drop(stream.set_nodelay(true));
    let service = service_fn(move |request| routes::handle(Arc::clone(&shop), request));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    // The gateway reports a broken connection.
    tokio::select! {
        _ = connection.as_mut() => {}
        () = stop.requested() => {
            connection.as_mut().graceful_shutdown();
            drop(connection.await);
        }
    }
}
