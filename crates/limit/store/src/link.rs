//! The way to one server: a connection when there is one, and a pause when there is none.
//!
//! A connection is made when somebody calls, once for all who call meanwhile. After a failure
//! everybody is told the reason at once until the pause is over; then one tries again, and the
//! others are still told the reason. So a dead server sees one attempt per pause, however many
//! call.
//!
//! Deliberately absent: what goes over a connection, and which failure makes one useless.

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

/// How long a connection may take, with all that is said before the first call.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a caller waits for a connection: as long as one attempt may take, and a little longer,
/// so that its reason is what the caller hears. Several servers that are asked one after the other
/// may make it take longer still; nobody waits for that.
const PATIENCE: Duration = CONNECT_TIMEOUT.saturating_add(Duration::from_millis(250));

/// What connects to a server.
pub trait Dial: Send + Sync + 'static {
    /// A connection, shared by all who call.
    type Connection: Send + Sync + 'static;
    /// Why there is none. Everybody who calls before the next attempt gets a clone.
    type Failure: Clone + fmt::Display + Send + Sync + 'static;

    /// Connects. That takes at most [`CONNECT_TIMEOUT`] for each server that is asked.
    fn dial(&self) -> impl Future<Output = Result<Self::Connection, Self::Failure>> + Send;

    /// Whether a connection has ended by itself.
    fn is_over(_connection: &Self::Connection) -> bool {
        false
    }

    /// What a caller is told who gets no connection, and no failure of an attempt either.
    fn no_connection(&self, why: NoConnection) -> Self::Failure;
}

/// Why a caller gets no connection, beside an attempt that failed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NoConnection {
    /// The link was closed.
    Closed,
    /// The attempt takes too long.
    Late,
    /// The task that was connecting ended with its runtime.
    Abandoned,
}

/// The way to one server. Clones share it.
pub struct Link<D: Dial>(Arc<Shared<D>>);

struct Shared<D: Dial> {
    dial: D,
    began: Instant,
    state: Mutex<State<D>>,
}

struct State<D: Dial> {
    link: LinkState<Arc<D::Connection>, D::Failure>,
    /// Of the attempt that is under way.
    outcome: Option<watch::Receiver<Option<Outcome<D>>>>,
}

/// How a call for a connection begins.
enum Begun<D: Dial> {
    /// It ends at once.
    Told(Outcome<D>),
    /// It waits for an attempt.
    Waits(watch::Receiver<Option<Outcome<D>>>),
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
    /// A link that connects by `dial`, when somebody calls.
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

    /// What it connects by.
    #[must_use]
    pub fn dial(&self) -> &D {
        &self.0.dial
    }

    /// The connection, made if there is none.
    ///
    /// # Errors
    ///
    /// Why there is none, at once while the server is left alone.
    pub async fn connection(&self) -> Result<Arc<D::Connection>, D::Failure> {
        let mut outcome = match self.begin() {
            Begun::Told(told) => return told,
            Begun::Waits(outcome) => outcome,
        };
        let waited = timeout(PATIENCE, outcome.wait_for(Option::is_some)).await;
        let abandoned = || Err(self.no_connection(NoConnection::Abandoned));
        match waited {
            Ok(Ok(outcome)) => outcome.clone().unwrap_or_else(abandoned),
            Ok(Err(_)) => abandoned(),
            Err(_) => Err(self.no_connection(NoConnection::Late)),
        }
    }

    /// Takes note that the server answered a call.
    pub fn handle_answer(&self) {
        self.0.state.lock().link.handle_answer();
    }

    /// Takes note that a call failed in a way that makes its connection useless.
    pub fn handle_lost(&self, connection: &Arc<D::Connection>, failure: D::Failure) {
        let is_it = |held: &Arc<D::Connection>| Arc::ptr_eq(held, connection);
        let (told, now, random) = (failure.clone(), self.0.now(), random());
        let mut state = self.0.state.lock();
        let left_alone = state.link.handle_lost(now, is_it, failure, random);
        drop(state);
        tell(&told, left_alone);
    }

    /// Whether there is a connection.
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

    /// Tells the caller what is known, or lets it wait for an attempt that has begun.
    fn begin(&self) -> Begun<D> {
        let now = self.0.now();
        let mut state = self.0.state.lock();
        // The task that connects goes when its runtime goes.
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
            Next::Use(connection) => Begun::Told(Ok(connection)),
            Next::Fail(failure) => Begun::Told(Err(failure)),
            Next::Closed => Begun::Told(Err(self.no_connection(NoConnection::Closed))),
            Next::Wait => match &state.outcome {
                Some(outcome) => Begun::Waits(outcome.clone()),
                None => Begun::Told(Err(self.no_connection(NoConnection::Abandoned))),
            },
            Next::Connect => {
                let (tell_all, outcome) = watch::channel(None);
                state.outcome = Some(outcome.clone());
                // A task of its own: a caller who gives up early must not undo the attempt, or many
                // such callers would make many attempts.
                tokio::spawn(self.clone().connect(tell_all));
                Begun::Waits(outcome)
            }
        }
    }

    async fn connect(self, tell_all: watch::Sender<Option<Outcome<D>>>) {
        let mut opened = self.0.dial.dial().await.map(Arc::new);
        let (now, random) = (self.0.now(), random());
        let left_alone = {
            let mut state = self.0.state.lock();
            // Kept there, it would keep the connection when the link has let go of it.
            state.outcome = None;
            if state.link.is_closed() {
                opened = Err(self.no_connection(NoConnection::Closed));
            }
            state.link.handle_attempt(now, opened.clone(), random)
        };
        if let Err(failure) = &opened {
            tell(failure, left_alone);
        }
        // Nobody may be waiting any more. Dropping a connection that nobody wants ends it.
        let _ = tell_all.send(Some(opened));
    }
}

impl<D: Dial> Shared<D> {
    fn now(&self) -> TimestampUs {
        TimestampUs(u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX))
    }
}

/// Without chance nodes come back together, which is not worth failing for.
fn random() -> u64 {
    getrandom::u64().unwrap_or(0)
}

fn tell(failure: &impl fmt::Display, left_alone: Option<DurationUs>) {
    if let Some(DurationUs(micros)) = left_alone {
        tracing::debug!(%failure, pause_ms = micros / 1_000, "store left alone");
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

    /// A server, and how often somebody has begun to connect to it.
    struct Server {
        manner: Manner,
        attempts: AtomicU32,
    }

    enum Manner {
        /// Clones of this are connections.
        Connects(Arc<()>),
        /// After a second.
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
    async fn a_link_keeps_one_connection_and_lets_it_go_when_it_is_lost_or_closed() {
        let connection = Arc::new(());
        let link = link(Manner::Connects(Arc::clone(&connection)));
        let alone = Arc::strong_count(&connection);
        for _ in 0..9 {
            link.connection().await.unwrap();
        }
        assert_eq!((attempts(&link), link.is_connected()), (1, true));
        assert_eq!(Arc::strong_count(&connection), alone + 1);
        let held = link.connection().await.unwrap();
        link.handle_lost(&held, "broken");
        drop(held);
        assert_eq!(Arc::strong_count(&connection), alone);
        assert_eq!(link.connection().await.unwrap_err(), "broken");
        tokio::time::advance(Duration::from_millis(50)).await;
        link.connection().await.unwrap();
        link.close();
        assert_eq!(Arc::strong_count(&connection), alone);
        assert_eq!(link.connection().await.unwrap_err(), "closed");
    }

    #[tokio::test(start_paused = true)]
    async fn a_link_closed_while_it_connects_gives_no_connection() {
        let connection = Arc::new(());
        let link = link(Manner::ConnectsLate(Arc::clone(&connection)));
        let alone = Arc::strong_count(&connection);
        let caller = async { link.connection().await.map(|_| ()) };
        let closes = async { link.close() };
        let (told, ()) = tokio::join!(caller, closes);
        assert_eq!((told, attempts(&link)), (Err("closed"), 1));
        assert_eq!(Arc::strong_count(&connection), alone);
    }

    #[tokio::test(start_paused = true)]
    async fn callers_at_once_share_one_attempt_and_its_reason() {
        let link = link(Manner::Refuses);
        let told = join_all((0..50).map(|_| link.connection())).await;
        assert!(told.iter().all(|told| *told == Err("refused")), "{told:?}");
        assert_eq!(attempts(&link), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_a_server_that_hangs_for_longer_than_an_attempt_may_take() {
        let link = link(Manner::Hangs);
        let began = Instant::now();
        let told = join_all((0..50).map(|_| link.connection())).await;
        assert!(told.iter().all(|told| *told == Err("late")), "{told:?}");
        assert_eq!((began.elapsed(), attempts(&link)), (PATIENCE, 1));
    }

    #[test]
    fn an_attempt_that_ended_with_its_runtime_is_made_again_by_the_next_caller() {
        let link = link(Manner::Hangs);
        for expected in [1, 2] {
            let runtime = Builder::new_current_thread().enable_time().build().unwrap();
            let caller = async { timeout(Duration::from_millis(5), link.connection()).await };
            assert!(runtime.block_on(caller).is_err());
            assert_eq!(attempts(&link), expected);
        }
    }
}
