//! Stop signal for tasks: one sender, many receivers, sent once.

use tokio::sync::watch;

/// Sender of the stop signal. Dropping it sends the signal too.
#[derive(Debug)]
pub(crate) struct Stopper(watch::Sender<bool>);

/// Receiver of the stop signal.
#[derive(Clone, Debug)]
pub(crate) struct Stop(watch::Receiver<bool>);

impl Stopper {
    /// Creates a sender and a receiver.
    pub(crate) fn new() -> (Self, Stop) {
        let (sender, receiver) = watch::channel(false);
        (Self(sender), Stop(receiver))
    }

    /// Sends the signal. Sending it again has no effect.
    pub(crate) fn stop(&self) {
        self.0.send_replace(true);
    }
}

impl Stop {
    /// Completes when the signal was sent. Safe to cancel.
    pub(crate) async fn requested(&mut self) {
        // An error means that the sender was dropped, which counts as the signal.
        drop(self.0.wait_for(|is_stopped| *is_stopped).await);
    }
}
