//! Drain of a process: when it stops taking requests, and when it gives up on open ones.
//!
//! A process with a successor **leaves** first: it accepts no more connections, serves requests on
//! the open ones, and closes each with its next response. So no client sends a request on a
//! connection that is just closing. A process that ends **drains** at once.
//!
//! One trigger, many signals. The binary decides which Unix signal triggers the drain.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use tokio::sync::watch;

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Phase {
    Serving,
    Leaving,
    Draining,
    Cut,
}

#[derive(Debug)]
struct State {
    phase: watch::Sender<Phase>,
    /// Copy of `phase` for readers at each response: reading `phase` takes a lock.
    is_leaving: AtomicBool,
}

/// Trigger of the drain. Dropping it drains as well, because no other trigger exists.
#[derive(Debug)]
pub struct DrainTrigger {
    state: Arc<State>,
}

/// Signal to connections and accept loops.
#[derive(Clone, Debug)]
pub struct DrainSignal {
    state: Arc<State>,
    receiver: watch::Receiver<Phase>,
}

/// Creates a trigger and its signal.
#[must_use]
pub fn drain() -> (DrainTrigger, DrainSignal) {
    let (phase, receiver) = watch::channel(Phase::Serving);
    let state = Arc::new(State {
        phase,
        is_leaving: AtomicBool::new(false),
    });
    let trigger = DrainTrigger {
        state: Arc::clone(&state),
    };
    (trigger, DrainSignal { state, receiver })
}

impl DrainTrigger {
    /// Stops accepting, and closes each connection with its next response.
    pub fn leave(&self) {
        self.state.advance(Phase::Leaving);
    }

    /// Stops accepting and lets open requests finish; connections without one are closed. Repeated
    /// calls have no effect.
    pub fn start(&self) {
        self.state.advance(Phase::Draining);
    }
}

impl Drop for DrainTrigger {
    fn drop(&mut self) {
        self.start();
    }
}

impl DrainSignal {
    /// Whether connections should close with the next response.
    pub(crate) fn is_leaving(&self) -> bool {
        self.state.is_leaving.load(Ordering::Relaxed)
    }

    /// Resolves when accepting stops.
    pub async fn leaving(self) {
        self.reached(Phase::Leaving).await;
    }

    /// Resolves when draining starts.
    pub async fn started(self) {
        self.reached(Phase::Draining).await;
    }

    /// Resolves when open requests are aborted.
    pub async fn cut(self) {
        self.reached(Phase::Cut).await;
    }

    /// Aborts everything that is open.
    pub(crate) fn cut_now(&self) {
        self.state.advance(Phase::Cut);
    }

    async fn reached(mut self, phase: Phase) {
        // An error would mean that the sender is dropped; this signal owns it.
        let _ = self.receiver.wait_for(|now| *now >= phase).await;
    }
}

impl State {
    fn advance(&self, to: Phase) {
        self.is_leaving.store(true, Ordering::Relaxed);
        self.phase.send_if_modified(|now| {
            let is_new = *now < to;
            if is_new {
                *now = to;
            }
            is_new
        });
    }
}

/// Future that is polled only when it has woken the task itself.
///
/// # Why
///
/// A connection waits for its bytes and for the drain signal. The bytes wake it thousands of times.
/// Each time the signal would be polled, which takes a lock that all connections share.
pub(crate) struct Quietly<F> {
    inner: Pin<Box<F>>,
    alarm: Option<(Arc<Alarm>, Waker)>,
}

struct Alarm {
    is_woken: AtomicBool,
    task: Waker,
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_woken.store(true, Ordering::Release);
        self.task.wake_by_ref();
    }
}

impl<F: Future> Quietly<F> {
    pub(crate) fn new(inner: F) -> Self {
        Self {
            inner: Box::pin(inner),
            alarm: None,
        }
    }
}

impl<F: Future> Future for Quietly<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let is_known = |alarm: &Alarm| alarm.task.will_wake(cx.waker());
        let waker = match &self.alarm {
            Some((alarm, waker)) if is_known(alarm) => {
                if !alarm.is_woken.swap(false, Ordering::Acquire) {
                    return Poll::Pending;
                }
                waker.clone()
            }
            _ => {
                let alarm = Arc::new(Alarm {
                    is_woken: AtomicBool::new(false),
                    task: cx.waker().clone(),
                });
                let waker = Waker::from(Arc::clone(&alarm));
                self.alarm = Some((alarm, waker.clone()));
                waker
            }
        };
        self.inner.as_mut().poll(&mut Context::from_waker(&waker))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[tokio::test]
    async fn leaving_comes_before_draining_and_draining_before_the_cut() {
        let (trigger, signal) = drain();
        let mut leaving = polled_by_hand(signal.clone().leaving());
        let mut started = polled_by_hand(signal.clone().started());
        let mut cut = polled_by_hand(signal.clone().cut());
        assert!(!leaving() && !signal.is_leaving());
        trigger.leave();
        assert!(leaving() && signal.is_leaving() && !started());
        trigger.start();
        trigger.leave();
        assert!(started());
        assert!(!cut());
        signal.cut_now();
        trigger.start();
        assert!(cut());
    }

    #[test]
    fn a_dropped_trigger_drains() {
        let (trigger, signal) = drain();
        drop(trigger);
        assert!(polled_by_hand(signal.started())());
    }

    #[tokio::test]
    async fn a_quiet_future_is_polled_once_until_it_wakes() {
        let (trigger, signal) = drain();
        let polls = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&polls);
        let mut inner = Box::pin(signal.started());
        let mut quiet = Box::pin(Quietly::new(std::future::poll_fn(move |cx| {
            counter.fetch_add(1, Ordering::Relaxed);
            inner.as_mut().poll(cx)
        })));
        // In its own task, because only tasks have distinct wakers.
        let task = tokio::spawn(async move {
            for _ in 0..5 {
                let look = |cx: &mut Context<'_>| Poll::Ready(quiet.as_mut().poll(cx));
                assert!(std::future::poll_fn(look).await.is_pending());
            }
            trigger.start();
            quiet.await;
        });
        task.await.unwrap();
        assert_eq!(polls.load(Ordering::Relaxed), 2);
    }

    /// Polls a future with a waker that does nothing.
    fn polled_by_hand<F: Future>(future: F) -> impl FnMut() -> bool {
        let mut future = Box::pin(future);
        move || {
            let mut cx = Context::from_waker(Waker::noop());
            future.as_mut().poll(&mut cx).is_ready()
        }
    }
}
