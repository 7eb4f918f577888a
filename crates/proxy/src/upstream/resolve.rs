//! Look-up of the addresses of an origin's name.
//!
//! The system's resolver blocks a thread without a timeout. The journal shares the threads for
//! blocking calls and must get one at once, so the number of concurrent look-ups is limited.

use std::future::Future;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::vec::IntoIter;

use hyper_util::client::legacy::connect::dns::Name;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

/// Maximum concurrent look-ups by the system's resolver; tokio has 512 threads for blocking calls.
/// A healthy resolver replies in milliseconds, so sixteen find thousands of names a second. More
/// would not help with a slow one.
const LOOKUPS_MAX: usize = 16;

static LOOKUPS: Semaphore = Semaphore::const_new(LOOKUPS_MAX);

/// Resolver that uses the system's, with a limit on concurrent look-ups.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resolver;

impl tower::Service<Name> for Resolver {
    type Response = IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = Result<IntoIter<SocketAddr>, io::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        // The caller sets the port.
        Box::pin(with_permit(&LOOKUPS, move || {
            (name.as_str(), 0).to_socket_addrs()
        }))
    }
}

/// Runs a blocking call when a permit is free. A caller that stops waiting does not end the call,
/// so the call itself holds the permit.
async fn with_permit<T: Send + 'static>(
    permits: &'static Semaphore,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let permit = permits.acquire().await.map_err(io::Error::other)?;
    let done = spawn_blocking(move || {
        let _permit = permit;
        work()
    });
    done.await.map_err(io::Error::other)?
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn a_cancelled_look_up_keeps_its_permit_until_it_ends() {
        static PERMITS: Semaphore = Semaphore::const_new(2);
        let (begun, mut begins) = tokio::sync::mpsc::unbounded_channel();
        let mut ends = Vec::new();
        let mut waiting = Vec::new();
        for number in 0..3 {
            let begun = begun.clone();
            let (end, ended) = mpsc::channel::<()>();
            ends.push(end);
            let mut work = Box::pin(with_permit(&PERMITS, move || {
                begun.send(number).map_err(io::Error::other)?;
                // Blocks until the sender is dropped.
                let _ = ended.recv();
                Ok(number)
            }));
            assert!(work.as_mut().now_or_never().is_none());
            waiting.push(work);
        }
        let mut first = [begins.recv().await.unwrap(), begins.recv().await.unwrap()];
        first.sort_unstable();
        assert_eq!(first, [0, 1]);
        // The first two are cancelled, but their calls continue.
        let mut third = waiting.remove(2);
        drop(waiting);
        assert!(third.as_mut().now_or_never().is_none());
        assert_eq!(PERMITS.available_permits(), 0);
        assert!(begins.try_recv().is_err());
        let last = ends.pop();
        ends.pop();
        let begins_at_last = async { begins.recv().await };
        let (_, number) = futures_util::future::join(
            async {
                drop(last);
                assert_eq!(third.await.unwrap(), 2);
            },
            begins_at_last,
        )
        .await;
        assert_eq!(number, Some(2));
    }

    #[tokio::test]
    async fn a_name_is_found() {
        use tower::Service as _;
        let found = Resolver.call("localhost".parse().unwrap()).await.unwrap();
        assert!(found.into_iter().all(|address| address.ip().is_loopback()));
    }
}
