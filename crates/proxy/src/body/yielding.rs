//! Cooperative yielding, so that a large body does not delay small requests on the same thread.
//!
//! A body that has moved enough bytes pauses until all other ready tasks have run, and until the
//! runtime has polled the sockets. Without the second, a download keeps its thread busy: the
//! runtime polls sockets only every so many tasks (tokio: 61), however long each takes.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::AcqRel, Ordering::Acquire};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::task::AtomicWaker;

/// Bytes that one body moves per turn: about a tenth of a millisecond of copying. With many more,
/// small requests wait for downloads. With many fewer, a download costs more yields than copies.
pub(super) const TURN_BYTES: usize = 128 * 1024;

/// State of the yielding.
#[derive(Debug)]
pub(super) enum Turn {
    /// The body runs and has moved this many bytes.
    Own(usize),
    /// The body yields at the next poll.
    Over,
    /// The body yields until the pause ends.
    Others(Arc<Pause>),
}

/// Pause that ends when the runtime wakes it. Polling it before has no effect; hyper polls in a
/// loop (hyper 1.12, `Dispatcher::poll_loop`).
#[derive(Debug, Default)]
pub(super) struct Pause {
    is_over: AtomicBool,
    task: AtomicWaker,
}

impl Default for Turn {
    fn default() -> Self {
        Self::Own(0)
    }
}

impl Turn {
    /// Resolves when the body may run.
    pub(super) fn poll(&mut self, cx: &Context<'_>) -> Poll<()> {
        if let Self::Over = self {
            let pause = Arc::<Pause>::default();
            let waker = Waker::from(Arc::clone(&pause));
            // `yield_now` wakes only after the sockets were polled.
            let yielding = pin!(tokio::task::yield_now());
            if yielding.poll(&mut Context::from_waker(&waker)).is_ready() {
                pause.wake_by_ref();
            }
            *self = Self::Others(pause);
        }
        if let Self::Others(pause) = self {
            pause.task.register(cx.waker());
            if !pause.is_over.load(Acquire) {
                return Poll::Pending;
            }
            *self = Self::Own(0);
        }
        Poll::Ready(())
    }

    /// Counts moved bytes.
    pub(super) fn note(&mut self, bytes: usize) {
        if let Self::Own(moved) = self {
            *moved += bytes;
            if *moved >= TURN_BYTES {
                *self = Self::Over;
            }
        }
    }
}

impl Wake for Pause {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_over.swap(true, AcqRel);
        self.task.wake();
    }
}
