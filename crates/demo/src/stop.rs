//! How do tasks learn that they shall end? One sender, many receivers, told once.

use tokio::sync::watch;

/// Tells every [`Stop`] made from it. Dropping it tells them as well.
#[derive(Debug)]
pub(crate) struct Stopper(watch::Sender<bool>);

/// Learns that it is time to end.
#[derive(Clone, Debug)]
pub(crate) struct Stop(watch::Receiver<bool>);

impl Stopper {
    /// A fresh pair.
    pub(crate) fn new() -> (Self, Stop) {
        let (sender, receiver) = watch::channel(false);
        (Self(sender), Stop(receiver))
    }

    /// Tells everybody to end. Again is harmless.
    pub(crate) fn stop(&self) {
        self.0.send_replace(true);
    }
}

impl Stop {
    /// Returns once it is time to end; at once if it already was. Safe to cancel.
    pub(crate) async fn requested(&mut self) {
        // An error means that the sender is gone, which means the same.
        drop(self.0.wait_for(|is_stopped| *is_stopped).await);
    }
}
