//! Connections to one origin that are kept, by the runtime on which their tasks run; and who closes
//! those that nobody has used for too long.

use std::collections::HashMap;
use std::sync::Weak;
use std::time::Duration;

use tokio::runtime::{self, Handle};

/// Connections that are kept. One task sweeps while there are any.
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
    /// Those of the runtime that asks.
    pub(crate) fn here(&mut self) -> Option<&mut Vec<C>> {
        self.by_runtime.get_mut(&Handle::current().id())
    }

    /// Those of a runtime, to keep one more.
    pub(crate) fn at(&mut self, runtime: runtime::Id) -> &mut Vec<C> {
        self.by_runtime.entry(runtime).or_default()
    }

    /// Keeps those of a runtime no longer that `is_it` means.
    pub(crate) fn remove(&mut self, runtime: runtime::Id, is_it: impl Fn(&C) -> bool) {
        if let Some(there) = self.by_runtime.get_mut(&runtime) {
            there.retain(|known| !is_it(known));
        }
    }

    /// Whether nobody sweeps yet. Whoever is told so begins.
    pub(crate) fn needs_sweeper(&mut self) -> bool {
        !std::mem::replace(&mut self.has_sweeper, true)
    }

    /// Closes what `close_old` takes out; whether anything is left. If not, the sweeper goes.
    pub(crate) fn sweep(&mut self, mut close_old: impl FnMut(&mut Vec<C>)) -> bool {
        self.by_runtime.retain(|_, connections| {
            close_old(connections);
            !connections.is_empty()
        });
        self.has_sweeper = !self.by_runtime.is_empty();
        self.has_sweeper
    }
}

/// Looks after connections for as long as `sweep` says that there are any.
pub(crate) async fn look_after<T>(owner: Weak<T>, every: Duration, sweep: fn(&T) -> bool) {
    loop {
        tokio::time::sleep(every).await;
        if !owner.upgrade().is_some_and(|owner| sweep(&owner)) {
            return;
        }
    }
}
