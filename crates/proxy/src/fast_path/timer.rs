//! Timer of one connection, for one deadline at a time.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::time::{Instant, Sleep, sleep_until};

/// Timer that may fire early and is set anew then. Most deadlines never come, and to set a timer
/// for each costs more than to be woken once in a minute.
#[derive(Debug, Default)]
pub(super) struct Timer {
    sleep: Option<Pin<Box<Sleep>>>,
    /// Whether it will wake the task.
    is_set: bool,
}

impl Timer {
    /// Resolves at the deadline. All calls come from one task.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, deadline: Instant) -> Poll<()> {
        let sleep = self
            .sleep
            .get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        if sleep.deadline() > deadline {
            sleep.as_mut().reset(deadline);
        } else if self.is_set && Instant::now() < sleep.deadline() {
            // It wakes the same task later. A look at the clock costs less than to poll it.
            return Poll::Pending;
        }
        self.is_set = true;
        loop {
            ready!(sleep.as_mut().poll(cx));
            if Instant::now() >= deadline {
                return Poll::Ready(());
            }
            sleep.as_mut().reset(deadline);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_later_deadline_and_an_earlier_one_are_kept() {
        let start = Instant::now();
        let mut timer = Timer::default();
        for (secs, total) in [(10, 10), (60, 70), (5, 75)] {
            let deadline = Instant::now() + Duration::from_secs(secs);
            poll_fn(|cx| timer.poll(cx, deadline)).await;
            assert_eq!(start.elapsed().as_secs(), total);
        }
        // A deadline that was given up.
        let first = Instant::now() + Duration::from_secs(3);
        let once = poll_fn(|cx| Poll::Ready(timer.poll(cx, first)));
        assert!(once.await.is_pending());
        let second = Instant::now() + Duration::from_secs(20);
        poll_fn(|cx| timer.poll(cx, second)).await;
        assert_eq!(start.elapsed().as_secs(), 95);
    }
}
