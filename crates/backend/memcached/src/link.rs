//! The way to one server: a connection when there is one, and a pause when there is none.
//!
//! A connection is made when somebody calls, once for all who call meanwhile. After a failure
//! everybody is told the reason at once until a while is over; then one tries again, and the others
//! are still told the reason.

use std::sync::Arc;
use std::time::Duration;

use anteroom_config::HostPort;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::connection::{Answer, Connection};
use crate::failure::Failure;
use crate::protocol::{Command, Reply};
use crate::undo::Undo;

/// After the first failure: long enough that a server which restarts is not asked a thousand times
/// meanwhile, short enough that a dropped connection is hardly noticed.
const PAUSE_FIRST: Duration = Duration::from_millis(50);
/// At most: an operator who has repaired a server will see it used while still looking.
const PAUSE_LONGEST: Duration = Duration::from_secs(5);

/// The way to one server. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Link(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    server: HostPort,
    state: Mutex<State>,
    /// Whoever holds it connects.
    connecting: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    connection: Option<Arc<Connection>>,
    down: Option<Down>,
    /// How many tries in a row came to nothing.
    failures: u32,
    is_closed: bool,
}

/// A server that was not there.
#[derive(Debug)]
struct Down {
    until: Instant,
    failure: Failure,
    /// Somebody is trying again.
    is_tried: bool,
}

impl Link {
    pub(crate) fn to(server: HostPort) -> Self {
        Self(Arc::new(Shared {
            server,
            state: Mutex::default(),
            connecting: tokio::sync::Mutex::default(),
        }))
    }

    pub(crate) fn server(&self) -> &HostPort {
        &self.0.server
    }

    /// Ends the connection; later calls fail.
    pub(crate) fn close(&self) {
        let mut state = self.0.state.lock();
        state.is_closed = true;
        state.connection = None;
    }

    /// Sends commands, once. A complaint of the server's is a failure.
    pub(crate) async fn ask(&self, commands: &[Command<'_>]) -> Result<Vec<Reply>, Failure> {
        let answer = self.charge(commands, None).await?;
        Ok(answer.replies)
    }

    /// The same if the first command charges something, which `undo` takes back if nobody keeps it.
    pub(crate) async fn charge(
        &self,
        commands: &[Command<'_>],
        undo: Option<Undo>,
    ) -> Result<Answer, Failure> {
        let connection = self.connection().await?;
        let answer = connection.ask(commands, undo).await?;
        let complaint = answer.replies.iter().find_map(|reply| match reply {
            Reply::Complaint(complaint) => Some(complaint.clone()),
            _ => None,
        });
        match complaint {
            None => Ok(answer),
            Some(complaint) => Err(Failure::Complaint {
                server: self.0.server.clone(),
                complaint,
            }),
        }
    }

    /// For answers to something else than was asked.
    pub(crate) fn unasked(&self) -> Failure {
        let server = self.0.server.clone();
        Failure::Unasked { server }
    }

    async fn connection(&self) -> Result<Arc<Connection>, Failure> {
        if let Some(known) = self.0.state.lock().known() {
            return known;
        }
        // A task of its own: a caller who gives up early must not undo the attempt, or many such
        // callers would make many attempts.
        let trying = Trying(self.clone());
        let connecting = tokio::spawn(async move {
            let trying = trying;
            trying.0.connect().await
        });
        connecting.await.unwrap_or(Err(Failure::Closed))
    }

    async fn connect(&self) -> Result<Arc<Connection>, Failure> {
        let one = self.0.connecting.lock().await;
        if let Some(known) = self.0.state.lock().known_after_waiting() {
            return known;
        }
        let opened = Connection::open(&self.0.server).await.map(Arc::new);
        let mut state = self.0.state.lock();
        drop(one);
        match &opened {
            _ if state.is_closed => return Err(Failure::Closed),
            Ok(connection) => {
                state.connection = Some(Arc::clone(connection));
                state.down = None;
                state.failures = 0;
            }
            Err(failure) => state.went_down(failure),
        }
        opened
    }
}

/// An attempt. A task may end with its runtime; then the next one who calls tries.
struct Trying(Link);

impl Drop for Trying {
    fn drop(&mut self) {
        if let Some(down) = &mut self.0.0.state.lock().down {
            down.is_tried = false;
        }
    }
}

impl State {
    /// What a call is told at once; `None` if it is to connect.
    fn known(&mut self) -> Option<Result<Arc<Connection>, Failure>> {
        if let Some(known) = self.connected() {
            return Some(known);
        }
        let down = self.down.as_mut()?;
        if down.is_tried || Instant::now() < down.until {
            return Some(Err(down.failure.clone()));
        }
        down.is_tried = true;
        None
    }

    /// The same for whoever has waited for somebody else's attempt.
    fn known_after_waiting(&mut self) -> Option<Result<Arc<Connection>, Failure>> {
        if let Some(known) = self.connected() {
            return Some(known);
        }
        let failed = self.down.as_ref().filter(|down| !down.is_tried);
        failed.map(|down| Err(down.failure.clone()))
    }

    fn connected(&mut self) -> Option<Result<Arc<Connection>, Failure>> {
        if self.is_closed {
            return Some(Err(Failure::Closed));
        }
        if self.connection.as_ref().is_some_and(|one| one.is_over()) {
            self.connection = None;
        }
        self.connection.clone().map(Ok)
    }

    fn went_down(&mut self, failure: &Failure) {
        let pause = PAUSE_FIRST.saturating_mul(1 << self.failures.min(16));
        self.failures = self.failures.saturating_add(1);
        self.down = Some(Down {
            until: Instant::now() + spread(pause.min(PAUSE_LONGEST)),
            failure: failure.clone(),
            is_tried: false,
        });
    }
}

/// Takes up to a half away by chance, so that nodes do not come back all at once.
fn spread(pause: Duration) -> Duration {
    // Without randomness they do.
    let random = getrandom::u32().unwrap_or(0);
    let half = u64::try_from(pause.as_micros()).unwrap_or(u64::MAX) / 2;
    pause - Duration::from_micros(half.saturating_mul(u64::from(random)) >> 32)
}
