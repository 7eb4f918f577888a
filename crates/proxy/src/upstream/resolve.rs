//! Which addresses has the name of an origin?
//!
//! The system's resolver is asked, which blocks a thread, for as long as it likes. Threads for what
//! blocks are shared with the journal, which must get one at once; so only so many wait for names.

use std::future::Future;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::vec::IntoIter;

use hyper_util::client::legacy::connect::dns::Name;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

/// Most threads of this process that wait for the system's resolver. tokio has 512 for what blocks.
/// A resolver that is well answers in milliseconds, so sixteen find thousands of names a second;
/// and one that is not makes everybody wait, however many ask it.
const LOOKUPS_MAX: usize = 16;

static LOOKUPS: Semaphore = Semaphore::const_new(LOOKUPS_MAX);

/// Asks the system, a few names at a time.
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
        // The port is put in by whoever asks.
        Box::pin(one_of(&LOOKUPS, move || {
            (name.as_str(), 0).to_socket_addrs()
        }))
    }
}

/// Does what blocks when fewer than so many do. Whoever stops waiting does not end what has begun,
/// so the place is held by that, and not by who waits.
async fn one_of<T: Send + 'static>(
    places: &'static Semaphore,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let place = places.acquire().await.map_err(io::Error::other)?;
    let done = spawn_blocking(move || {
        let _place = place;
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
    async fn so_many_wait_for_names_and_who_gives_up_makes_no_room() {
        static PLACES: Semaphore = Semaphore::const_new(2);
        let (begun, mut begins) = tokio::sync::mpsc::unbounded_channel();
        let mut ends = Vec::new();
        let mut waiting = Vec::new();
        for number in 0..3 {
            let begun = begun.clone();
            let (end, ended) = mpsc::channel::<()>();
            ends.push(end);
            let mut work = Box::pin(one_of(&PLACES, move || {
                begun.send(number).map_err(io::Error::other)?;
                // Until the other side lets go.
                let _ = ended.recv();
                Ok(number)
            }));
            assert!(work.as_mut().now_or_never().is_none());
            waiting.push(work);
        }
        let mut first = [begins.recv().await.unwrap(), begins.recv().await.unwrap()];
        first.sort_unstable();
        assert_eq!(first, [0, 1]);
        // The first two are given up; what they began goes on.
        let mut third = waiting.remove(2);
        drop(waiting);
        assert!(third.as_mut().now_or_never().is_none());
        assert_eq!(PLACES.available_permits(), 0);
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
