//! The way to one server: a connection when there is one, and a circuit when there is none.
//!
//! A connection is made when somebody calls, once for all who call meanwhile. After a failure
//! everybody is told the reason at once until the back-off is over; then the next one who calls
//! tries again. So a dead server sees one attempt per back-off, however many call.

use std::sync::Arc;
use std::time::Duration;

use anteroom_config::HostPort;
use parking_lot::Mutex;
use redis::Value;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use crate::access::Access;
use crate::back_off::BackOff;
use crate::connection::{Connection, Request};
use crate::failure::{CONNECT_TIMEOUT, Failure};
use crate::sentinel::{LOOK_AGAIN_AFTER, Sentinels};

/// How long a caller waits for a connection: as long as one attempt may take, and a little longer,
/// so that its reason is what the caller hears. Sentinels that are away may make it take longer
/// still; nobody waits for that.
const PATIENCE: Duration = CONNECT_TIMEOUT.saturating_add(Duration::from_millis(250));

/// The way to one server. Clones share it.
#[derive(Clone)]
pub(crate) struct Link(Arc<Shared>);

struct Shared {
    target: Target,
    access: Access,
    state: Mutex<State>,
}

/// Which server.
enum Target {
    Fixed(HostPort),
    MasterOf(Sentinels),
}

struct State {
    phase: Phase,
    back_off: BackOff,
    /// When sentinels were last asked, or are being asked.
    looked_at: Option<Instant>,
}

enum Phase {
    /// Nobody has called yet.
    Idle,
    Connecting {
        outcome: watch::Receiver<Option<Outcome>>,
        /// Why this is not the first attempt.
        last: Option<Failure>,
    },
    Connected(Arc<Connection>),
    /// Circuit open: not tried again before `until`.
    Down {
        until: Instant,
        failure: Failure,
    },
    Closed,
}

type Outcome = Result<Arc<Connection>, Failure>;

impl Link {
    pub(crate) fn to(server: HostPort, access: Access) -> Self {
        Self::new(Target::Fixed(server), access)
    }

    pub(crate) fn to_master_of(sentinels: Sentinels, access: Access) -> Self {
        Self::new(Target::MasterOf(sentinels), access)
    }

    fn new(target: Target, access: Access) -> Self {
        let state = State {
            phase: Phase::Idle,
            back_off: BackOff::default(),
            looked_at: None,
        };
        Self(Arc::new(Shared {
            target,
            access,
            state: Mutex::new(state),
        }))
    }

    /// Sends a request. It is sent once: whether one was carried out whose answer did not come is
    /// for the caller to find out.
    pub(crate) async fn call(&self, request: &Request) -> Result<Answered, Failure> {
        let connection = self.connection().await?;
        self.look_for_another_master(&connection);
        match connection.call(request).await {
            Ok(value) => {
                self.0.state.lock().back_off.after_answer();
                Ok(Answered { value, connection })
            }
            Err(failure) => {
                let failure = match self.0.target {
                    Target::Fixed(_) => failure,
                    Target::MasterOf(_) => failure.if_replaced(),
                };
                self.note(&connection, &failure);
                Err(failure)
            }
        }
    }

    /// Lets the connection go if the failure says that it is of no use.
    pub(crate) fn note(&self, connection: &Arc<Connection>, failure: &Failure) {
        let is_useless = match self.0.target {
            Target::Fixed(_) => failure.breaks_connection(),
            Target::MasterOf(_) => failure.doubts_master(),
        };
        let mut state = self.0.state.lock();
        if !is_useless {
            state.back_off.after_answer();
        } else if state.holds(connection) {
            state.open_circuit(failure.clone());
        }
    }

    pub(crate) fn is_connected(&self) -> bool {
        matches!(self.0.state.lock().phase, Phase::Connected(_))
    }

    /// Ends the connection; later calls fail.
    pub(crate) fn close(&self) {
        self.0.state.lock().phase = Phase::Closed;
    }

    async fn connection(&self) -> Outcome {
        let mut outcome = {
            let mut state = self.0.state.lock();
            let last = match &state.phase {
                Phase::Closed => return Err(Failure::Closed),
                Phase::Connected(connection) => return Ok(Arc::clone(connection)),
                Phase::Down { until, failure } if Instant::now() < *until => {
                    return Err(failure.clone());
                }
                // The task that connects goes when its runtime goes.
                Phase::Connecting { outcome, last } if outcome.has_changed().is_ok() => {
                    match last {
                        // One probes; nobody else waits for a server that was away.
                        Some(failure) => return Err(failure.clone()),
                        None => Err(outcome.clone()),
                    }
                }
                Phase::Down { failure, .. } => Ok(Some(failure.clone())),
                Phase::Connecting { last, .. } => Ok(last.clone()),
                Phase::Idle => Ok(None),
            };
            match last {
                Err(outcome) => outcome,
                Ok(last) => self.begin_to_connect(&mut state, last),
            }
        };
        let waited = timeout(PATIENCE, outcome.wait_for(Option::is_some)).await;
        match waited {
            Ok(Ok(outcome)) => outcome.clone().unwrap_or(Err(Failure::NobodyConnects)),
            Ok(Err(_)) => Err(Failure::NobodyConnects),
            Err(_) => Err(Failure::ConnectTimeout {
                server: self.0.target.first().clone(),
            }),
        }
    }

    fn begin_to_connect(
        &self,
        state: &mut State,
        last: Option<Failure>,
    ) -> watch::Receiver<Option<Outcome>> {
        let (tell, outcome) = watch::channel(None);
        state.phase = Phase::Connecting {
            outcome: outcome.clone(),
            last,
        };
        // A task of its own: a caller who gives up early must not undo the attempt, or many such
        // callers would make many attempts.
        tokio::spawn(self.clone().connect(tell));
        outcome
    }

    async fn connect(self, tell: watch::Sender<Option<Outcome>>) {
        let opened = self.open().await.map(Arc::new);
        {
            let mut state = self.0.state.lock();
            state.looked_at = Some(Instant::now());
            match (&state.phase, &opened) {
                // Dropping the connection ends it.
                (Phase::Closed, _) => {}
                (_, Ok(connection)) => state.phase = Phase::Connected(Arc::clone(connection)),
                (_, Err(failure)) => state.open_circuit(failure.clone()),
            }
        }
        // Nobody may be waiting any more.
        let _ = tell.send(Some(opened));
    }

    async fn open(&self) -> Result<Connection, Failure> {
        let Shared { target, access, .. } = &*self.0;
        match target {
            Target::Fixed(server) => Ok(Connection::open(server, access).await?.0),
            Target::MasterOf(sentinels) => sentinels.connect_to_master(access).await,
        }
    }

    /// A master that was replaced while it was cut off does not know, and goes on answering. So
    /// the sentinels are asked again now and then, beside the calls.
    fn look_for_another_master(&self, connection: &Arc<Connection>) {
        if !matches!(self.0.target, Target::MasterOf(_)) {
            return;
        }
        let now = Instant::now();
        {
            let mut state = self.0.state.lock();
            let is_due = |at: Instant| now.saturating_duration_since(at) >= LOOK_AGAIN_AFTER;
            if !state.looked_at.is_none_or(is_due) {
                return;
            }
            state.looked_at = Some(now);
        }
        let link = self.clone();
        let connection = Arc::clone(connection);
        tokio::spawn(async move {
            let Target::MasterOf(sentinels) = &link.0.target else {
                return;
            };
            // Sentinels that do not answer are no reason to leave a master that does.
            if let Ok(master) = sentinels.master().await
                && master.server != connection.server
            {
                let server = connection.server.clone();
                link.note(&connection, &Failure::MasterChanged { server });
            }
        });
    }
}

/// An answer and where it came from.
pub(crate) struct Answered {
    pub(crate) value: Value,
    pub(crate) connection: Arc<Connection>,
}

impl Target {
    /// What to name when none has answered.
    fn first(&self) -> &HostPort {
        match self {
            Self::Fixed(server) => server,
            Self::MasterOf(sentinels) => sentinels.first(),
        }
    }
}

impl State {
    /// Whether that is the connection in use; it may have been replaced already.
    fn holds(&self, connection: &Arc<Connection>) -> bool {
        matches!(&self.phase, Phase::Connected(held) if Arc::ptr_eq(held, connection))
    }

    fn open_circuit(&mut self, failure: Failure) {
        // Without chance nodes come back together, which is not worth failing for.
        let random = getrandom::u32().unwrap_or(0);
        let pause = self.back_off.after_failure(random);
        tracing::debug!(%failure, pause_ms = pause.as_millis(), "store left alone");
        self.phase = Phase::Down {
            until: Instant::now() + pause,
            failure,
        };
    }
}
