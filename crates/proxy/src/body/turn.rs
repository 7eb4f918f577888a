//! How do small requests get their turn beside a large body on the same thread?
//!
//! A body that has moved enough bytes pauses until all others that are ready had their turn, and
//! until the runtime has looked whose sockets are ready. Without the second, a download keeps its
//! thread busy, and the runtime looks only after so many turns (tokio: 61), however long each is.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::AcqRel, Ordering::Acquire};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::task::AtomicWaker;

/// Bytes of one body that are moved in one turn. About a tenth of a millisecond of copying; many
/// more, and small requests wait for large downloads; many fewer, and a download costs more turns
/// than copies.
pub(super) const TURN_BYTES: usize = 128 * 1024;

/// Whose turn it is.
#[derive(Debug)]
pub(super) enum Turn {
    /// The body's, which has moved so many bytes.
    Own(usize),
    /// Others', as soon as somebody asks.
    Over,
    /// Others', until this ends.
    Others(Arc<Pause>),
}

/// Ends when the runtime wakes it. A task may ask before that as often as it likes, as hyper does
/// in a loop (hyper 1.12, `Dispatcher::poll_loop`).
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
    /// Resolves when it is this body's turn.
    pub(super) fn poll(&mut self, cx: &Context<'_>) -> Poll<()> {
        if let Self::Over = self {
            let pause = Arc::<Pause>::default();
            let waker = Waker::from(Arc::clone(&pause));
            // Wakes only after sockets were looked at.
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

    /// So many bytes were moved.
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
