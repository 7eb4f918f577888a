//! Open connections to one origin by the runtime of their tasks, and the task that closes idle
//! ones.

use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::{self, Handle};
use tokio::time::Instant;

/// Maximum idle connections to one origin per runtime. A burst above that reconnects.
const IDLE_MAX: usize = 1024;

/// Connection that serves one request after the other.
pub(crate) trait Reusable: Send + 'static {
    /// Whether it can take a request at once.
    fn is_ready(&self) -> bool;

    /// Whether it can never take another one.
    fn is_closed(&self) -> bool;
}

/// Idle connections to one origin.
///
/// The newest is used first, so that in quiet times the others grow old and are closed. A
/// connection is used only by the runtime on which it is registered: sharing one across runtimes
/// wakes a thread twice for each request.
#[derive(Debug)]
pub(crate) struct Idle<C> {
    keep: Duration,
    /// Connections with the start of their idle time.
    kept: Mutex<Kept<(C, Instant)>>,
}

impl<C: Reusable> Idle<C> {
    pub(crate) fn new(keep: Duration) -> Arc<Self> {
        Arc::new(Self {
            keep,
            kept: Mutex::default(),
        })
    }

    /// Takes a connection that was used before and is ready.
    pub(crate) fn take(&self) -> Option<C> {
        let now = Instant::now();
        let mut kept = self.kept.lock();
        let here = kept.here()?;
        while let Some((connection, since)) = here.pop() {
            if now.saturating_duration_since(since) >= self.keep {
                // All others are older.
                here.clear();
                return None;
            }
            if connection.is_ready() {
                return Some(connection);
            }
        }
        None
    }

    /// Keeps a connection of this runtime after its last response.
    pub(crate) fn put(self: &Arc<Self>, connection: C, runtime: runtime::Id) {
        let mut kept = self.kept.lock();
        let here = kept.at(runtime);
        if here.len() >= IDLE_MAX {
            return;
        }
        here.push((connection, Instant::now()));
        if kept.needs_sweeper() {
            tokio::spawn(look_after(Arc::downgrade(self), self.keep, Self::sweep));
        }
    }

    /// Closes connections that are too old. Returns whether any remain.
    fn sweep(&self) -> bool {
        let now = Instant::now();
        let is_young = |since: Instant| now.saturating_duration_since(since) < self.keep;
        self.kept.lock().sweep(|connections| {
            connections.retain(|(connection, since)| is_young(*since) && !connection.is_closed());
        })
    }
}

/// Open connections. One task sweeps while there are any.
#[derive(Debug)]
pub(crate) struct Kept<C> {
    /// Few runtimes, so a search is faster than a hash.
    by_runtime: Vec<(runtime::Id, Vec<C>)>,
    has_sweeper: bool,
}

impl<C> Default for Kept<C> {
    fn default() -> Self {
        Self {
            by_runtime: Vec::new(),
            has_sweeper: false,
        }
    }
}

impl<C> Kept<C> {
    /// Returns the connections of the present runtime.
    pub(crate) fn here(&mut self) -> Option<&mut Vec<C>> {
        self.of(Handle::current().id())
    }

    /// Returns the connections of a runtime, to add one.
    pub(crate) fn at(&mut self, runtime: runtime::Id) -> &mut Vec<C> {
        let known = self.by_runtime.iter().position(|(id, _)| *id == runtime);
        let at = known.unwrap_or_else(|| {
            self.by_runtime.push((runtime, Vec::new()));
            self.by_runtime.len() - 1
        });
        &mut self.by_runtime[at].1
    }

    fn of(&mut self, runtime: runtime::Id) -> Option<&mut Vec<C>> {
        let mut there = self.by_runtime.iter_mut();
        let there = there.find(|(id, _)| *id == runtime);
        there.map(|(_, connections)| connections)
    }

    /// Removes the connections of a runtime that match `is_it`.
    pub(crate) fn remove(&mut self, runtime: runtime::Id, is_it: impl Fn(&C) -> bool) {
        if let Some(there) = self.of(runtime) {
            there.retain(|known| !is_it(known));
        }
    }

    /// Whether no sweeper runs yet. A caller that gets `true` must start it.
    pub(crate) fn needs_sweeper(&mut self) -> bool {
        !std::mem::replace(&mut self.has_sweeper, true)
    }

    /// Closes connections that `close_old` removes. Returns whether any remain; if not, the sweeper
    /// ends.
    pub(crate) fn sweep(&mut self, mut close_old: impl FnMut(&mut Vec<C>)) -> bool {
        self.by_runtime.retain_mut(|(_, connections)| {
            close_old(connections);
            !connections.is_empty()
        });
        self.has_sweeper = !self.by_runtime.is_empty();
        self.has_sweeper
    }
}

/// Sweeps connections until `sweep` returns that none remain.
pub(crate) async fn look_after<T>(owner: Weak<T>, every: Duration, sweep: fn(&T) -> bool) {
    loop {
        tokio::time::sleep(every).await;
        if !owner.upgrade().is_some_and(|owner| sweep(&owner)) {
            return;
        }
    }
}
