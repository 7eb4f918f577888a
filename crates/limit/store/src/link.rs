//! Connection to one server, with a pause after failures.
//!
//! The first caller connects, and all concurrent callers share the attempt. After a failure every
//! caller gets its reason at once until the pause is over; then one tries again, and the others
//! still get the reason. So an unavailable server sees one attempt per pause, however many callers
//! there are.
//!
//! Deliberately absent: the protocol, and which failure makes a connection useless.

mod state;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use anteroom_limit::time::{DurationUs, TimestampUs};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use self::state::{LinkState, Next};
use crate::circuit::Pauses;

/// Longest time for a connection, with its handshake.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// Longest time that a caller waits for a connection: one attempt and a little longer, so that the
/// caller gets the attempt's own reason. An attempt that tries several servers in turn may take
/// longer; callers do not wait for that.
const WAIT_TIMEOUT: Duration = CONNECT_TIMEOUT.saturating_add(Duration::from_millis(250));

/// Connector to a server.
pub trait Dial: Send + Sync + 'static {
    /// Connection, shared by all callers.
    type Connection: Send + Sync + 'static;
    /// Reason of a failed attempt. All callers until the next attempt get a clone.
    type Failure: Clone + fmt::Display + Send + Sync + 'static;

    /// Connects. Takes at most [`CONNECT_TIMEOUT`] for each server that it tries.
    fn dial(&self) -> impl Future<Output = Result<Self::Connection, Self::Failure>> + Send;

    /// Whether the peer has closed the connection in an orderly way.
    fn is_over(_connection: &Self::Connection) -> bool {
        false
    }

    /// Returns the failure for a caller that gets neither a connection nor an attempt's failure.
    fn no_connection(&self, why: NoConnection) -> Self::Failure;
}

/// Reason for which a caller gets no connection, other than a failed attempt.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NoConnection {
    /// The link was closed.
    Closed,
    /// The attempt took too long.
    Late,
    /// The task that was connecting ended with its runtime.
    Abandoned,
}

/// Link to one server. Clones share it.
pub struct Link<D: Dial>(Arc<Shared<D>>);

struct Shared<D: Dial> {
    dial: D,
    began: Instant,
    state: Mutex<State<D>>,
}

struct State<D: Dial> {
    link: LinkState<Arc<D::Connection>, D::Failure>,
    /// Result of the attempt that is under way.
    outcome: Option<watch::Receiver<Option<Outcome<D>>>>,
}

/// State in which a caller finds the link.
enum LinkLookup<D: Dial> {
    /// Result that is known at once.
    Ready(Outcome<D>),
    /// Attempt to wait for.
    Pending(watch::Receiver<Option<Outcome<D>>>),
}

type Outcome<D> = Result<Arc<<D as Dial>::Connection>, <D as Dial>::Failure>;

impl<D: Dial> Clone for Link<D> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<D: Dial + fmt::Debug> fmt::Debug for Link<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Link({:?})", self.0.dial)
    }
}

impl<D: Dial> Link<D> {
    /// A link that connects by `dial`, at the first call.
    #[must_use]
    pub fn new(dial: D) -> Self {
        let state = State {
            link: LinkState::new(Pauses::CONNECTING),
            outcome: None,
        };
        Self(Arc::new(Shared {
            dial,
            began: Instant::now(),
            state: Mutex::new(state),
        }))
    }

    /// Returns the connector.
    #[must_use]
    pub fn dial(&self) -> &D {
        &self.0.dial
    }

    /// Returns the connection, and makes it if there is none.
    ///
    /// # Errors
    ///
    /// The failure of the last attempt, at once during a pause; otherwise that of
    /// [`Dial::no_connection`].
    pub async fn connection(&self) -> Result<Arc<D::Connection>, D::Failure> {
        let mut outcome = match self.begin() {
            LinkLookup::Ready(outcome) => return outcome,
            LinkLookup::Pending(outcome) => outcome,
        };
        let waited = timeout(WAIT_TIMEOUT, outcome.wait_for(Option::is_some)).await;
        let abandoned = || Err(self.no_connection(NoConnection::Abandoned));
        match waited {
            Ok(Ok(outcome)) => outcome.clone().unwrap_or_else(abandoned),
            Ok(Err(_)) => abandoned(),
            Err(_) => Err(self.no_connection(NoConnection::Late)),
        }
    }

    /// Takes note that the server replied.
    pub fn handle_reply(&self) {
        self.0.state.lock().link.handle_answer();
    }

    /// Takes note that a request failed in a way that makes its connection useless.
    pub fn handle_lost(&self, connection: &Arc<D::Connection>, failure: D::Failure) {
        let is_same = |current: &Arc<D::Connection>| Arc::ptr_eq(current, connection);
        let (logged, now, random) = (failure.clone(), self.0.now(), random());
        let mut state = self.0.state.lock();
        let pause = state.link.handle_lost(now, is_same, failure, random);
        drop(state);
        log_failure(&logged, pause);
    }

    /// Whether the link is connected.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.0.state.lock().link.is_connected()
    }

    /// Ends the connection; later calls fail.
    pub fn close(&self) {
        self.0.state.lock().link.close();
    }

    fn no_connection(&self, why: NoConnection) -> D::Failure {
        self.0.dial.no_connection(why)
    }

    /// Returns the known result, or an attempt to wait for, which it starts if needed.
    fn begin(&self) -> LinkLookup<D> {
        let now = self.0.now();
        let mut state = self.0.state.lock();
        // The task that connects ends with its runtime.
        if let Some(outcome) = &state.outcome
            && outcome.has_changed().is_err()
        {
            state.outcome = None;
            state.link.handle_abandoned();
        }
        let mut next = state.link.next(now);
        if let Next::Use(connection) = &next
            && D::is_over(connection)
        {
            state.link.handle_over();
            next = state.link.next(now);
        }
        match next {
            Next::Use(connection) => LinkLookup::Ready(Ok(connection)),
            Next::Fail(failure) => LinkLookup::Ready(Err(failure)),
            Next::Closed => LinkLookup::Ready(Err(self.no_connection(NoConnection::Closed))),
            Next::Wait => match &state.outcome {
                Some(outcome) => LinkLookup::Pending(outcome.clone()),
                None => LinkLookup::Ready(Err(self.no_connection(NoConnection::Abandoned))),
            },
            Next::Connect => {
                let (sender, outcome) = watch::channel(None);
                state.outcome = Some(outcome.clone());
                // A task of its own: a caller that gives up early must not cancel the attempt, or
                // many such callers would make many attempts.
                tokio::spawn(self.clone().connect(sender));
                LinkLookup::Pending(outcome)
            }
        }
    }

    async fn connect(self, sender: watch::Sender<Option<Outcome<D>>>) {
        let mut opened = self.0.dial.dial().await.map(Arc::new);
        let (now, random) = (self.0.now(), random());
        let pause = {
            let mut state = self.0.state.lock();
            // A receiver kept here would keep the connection after the link has dropped it.
            state.outcome = None;
            if state.link.is_closed() {
                opened = Err(self.no_connection(NoConnection::Closed));
            }
            state.link.handle_attempt(now, opened.clone(), random)
        };
        if let Err(failure) = &opened {
            log_failure(failure, pause);
        }
        // All callers may have given up. Then the connection is dropped, unless the link keeps it.
        let _ = sender.send(Some(opened));
    }
}

impl<D: Dial> Shared<D> {
    fn now(&self) -> TimestampUs {
        TimestampUs(u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX))
    }
}

/// Returns a random number, or zero without a source: then nodes reconnect together, which is no
/// reason to fail.
fn random() -> u64 {
    getrandom::u64().unwrap_or(0)
}

fn log_failure(failure: &impl fmt::Display, pause: Option<DurationUs>) {
    if let Some(DurationUs(micros)) = pause {
        tracing::debug!(%failure, pause_ms = micros / 1_000, "store unavailable, attempts paused");
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

    use futures_util::future::join_all;
    use tokio::runtime::Builder;
    use tokio::time::sleep;

    use super::*;

    /// Server that counts attempts to connect.
    struct Server {
        manner: Manner,
        attempts: AtomicU32,
    }

    enum Manner {
        /// Connections are clones of this.
        Connects(Arc<()>),
        /// Connects after a second.
        ConnectsLate(Arc<()>),
        Refuses,
        Hangs,
    }

    impl Dial for Server {
        type Connection = Arc<()>;
        type Failure = &'static str;

        async fn dial(&self) -> Result<Arc<()>, &'static str> {
            self.attempts.fetch_add(1, Relaxed);
            match &self.manner {
                Manner::Connects(connection) => Ok(Arc::clone(connection)),
                Manner::ConnectsLate(connection) => {
                    sleep(Duration::from_secs(1)).await; // tidy: paused time
                    Ok(Arc::clone(connection))
                }
                Manner::Refuses => Err("refused"),
                Manner::Hangs => pending().await,
            }
        }

        fn no_connection(&self, why: NoConnection) -> &'static str {
            match why {
                NoConnection::Closed => "closed",
                NoConnection::Late => "late",
                NoConnection::Abandoned => "abandoned",
            }
        }
    }

    fn link(manner: Manner) -> Link<Server> {
        Link::new(Server {
            manner,
            attempts: AtomicU32::new(0),
        })
    }

    fn attempts(link: &Link<Server>) -> u32 {
        link.dial().attempts.load(Relaxed)
    }

    #[tokio::test(start_paused = true)]
    async fn a_link_drops_its_only_connection_when_it_is_lost_or_closed() {
        let connection = Arc::new(());
        let link = link(Manner::Connects(Arc::clone(&connection)));
        let alone = Arc::strong_count(&connection);
        for _ in 0..9 {
            link.connection().await.unwrap();
        }
        assert_eq!((attempts(&link), link.is_connected()), (1, true));
        assert_eq!(Arc::strong_count(&connection), alone + 1);
        let current = link.connection().await.unwrap();
        link.handle_lost(&current, "broken");
        drop(current);
        assert_eq!(Arc::strong_count(&connection), alone);
        assert_eq!(link.connection().await.unwrap_err(), "broken");
        tokio::time::advance(Duration::from_millis(50)).await;
        link.connection().await.unwrap();
        link.close();
        assert_eq!(Arc::strong_count(&connection), alone);
        assert_eq!(link.connection().await.unwrap_err(), "closed");
    }

    #[tokio::test(start_paused = true)]
    async fn a_link_closed_while_connecting_returns_no_connection() {
        let connection = Arc::new(());
        let link = link(Manner::ConnectsLate(Arc::clone(&connection)));
        let alone = Arc::strong_count(&connection);
        let caller = async { link.connection().await.map(|_| ()) };
        let closes = async { link.close() };
        let (outcome, ()) = tokio::join!(caller, closes);
        assert_eq!((outcome, attempts(&link)), (Err("closed"), 1));
        assert_eq!(Arc::strong_count(&connection), alone);
    }

    #[tokio::test(start_paused = true)]
    async fn concurrent_callers_share_one_attempt_and_its_failure() {
        let link = link(Manner::Refuses);
        let outcomes = join_all((0..50).map(|_| link.connection())).await;
        assert!(
            outcomes.iter().all(|outcome| *outcome == Err("refused")),
            "{outcomes:?}"
        );
        assert_eq!(attempts(&link), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn callers_of_a_server_that_hangs_give_up_after_the_timeout() {
        let link = link(Manner::Hangs);
        let began = Instant::now();
        let outcomes = join_all((0..50).map(|_| link.connection())).await;
        assert!(
            outcomes.iter().all(|outcome| *outcome == Err("late")),
            "{outcomes:?}"
        );
        assert_eq!((began.elapsed(), attempts(&link)), (WAIT_TIMEOUT, 1));
    }

    #[test]
    fn an_attempt_that_ended_with_its_runtime_is_repeated() {
        let link = link(Manner::Hangs);
        for expected in [1, 2] {
            let runtime = Builder::new_current_thread().enable_time().build().unwrap();
            let caller = async { timeout(Duration::from_millis(5), link.connection()).await };
            assert!(runtime.block_on(caller).is_err());
            assert_eq!(attempts(&link), expected);
        }
    }
}
