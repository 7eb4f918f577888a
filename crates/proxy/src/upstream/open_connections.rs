//! Open connections to one origin by the runtime of their tasks, and the task that closes idle
//! ones.

use std::collections::HashMap;
use std::sync::Weak;
use std::time::Duration;

use tokio::runtime::{self, Handle};

/// Open connections. One task sweeps while there are any.
#[derive(Debug)]
pub(crate) struct Kept<C> {
    by_runtime: HashMap<runtime::Id, Vec<C>>,
    has_sweeper: bool,
}

impl<C> Default for Kept<C> {
    fn default() -> Self {
        Self {
            by_runtime: HashMap::new(),
            has_sweeper: false,
        }
    }
}

impl<C> Kept<C> {
    /// Returns the connections of the present runtime.
    pub(crate) fn here(&mut self) -> Option<&mut Vec<C>> {
        self.by_runtime.get_mut(&Handle::current().id())
    }

    /// Returns the connections of a runtime, to add one.
    pub(crate) fn at(&mut self, runtime: runtime::Id) -> &mut Vec<C> {
        self.by_runtime.entry(runtime).or_default()
    }

    /// Removes the connections of a runtime that match `is_it`.
    pub(crate) fn remove(&mut self, runtime: runtime::Id, is_it: impl Fn(&C) -> bool) {
        if let Some(there) = self.by_runtime.get_mut(&runtime) {
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
        self.by_runtime.retain(|_, connections| {
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
