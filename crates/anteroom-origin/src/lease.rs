//! What is held of an origin while a request is there.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use tokio::task::AbortHandle;

use crate::counts::Counts;
use crate::http2::StreamHold;

/// A request's place at an origin, until its answer has been read. Let go before that was said with
/// [`Lease::finish`], it ends what is still under way.
#[derive(Debug, Default)]
pub struct Lease {
    #[expect(dead_code, reason = "held for what its end does")]
    in_flight: Option<InFlight>,
    stream: Option<StreamHold>,
    task: Option<EndOnDrop>,
}

#[derive(Debug)]
struct InFlight(Arc<Counts>);

/// The task that moves the bytes of a connection.
#[derive(Debug)]
struct EndOnDrop(Option<AbortHandle>);

impl Lease {
    pub(crate) fn on(counts: &Arc<Counts>) -> Self {
        counts.in_flight.fetch_add(1, Relaxed);
        Self {
            in_flight: Some(InFlight(Arc::clone(counts))),
            ..Self::default()
        }
    }

    pub(crate) fn of_stream(stream: StreamHold) -> Self {
        Self {
            stream: Some(stream),
            ..Self::default()
        }
    }

    pub(crate) fn of_task(task: AbortHandle) -> Self {
        Self {
            task: Some(EndOnDrop(Some(task))),
            ..Self::default()
        }
    }

    /// The same place, with what is held of the connection.
    pub(crate) fn join(&mut self, held: Self) {
        self.stream = held.stream;
        self.task = held.task;
    }

    /// Request and answer have gone their way; the connection may be used again.
    pub fn finish(&mut self) {
        if let Some(task) = &mut self.task {
            task.0 = None;
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Relaxed);
    }
}

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        if let Some(task) = self.0.take() {
            task.abort();
        }
    }
}
