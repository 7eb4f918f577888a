//! What a supervisor is told that wants to know (`sd_notify`): where nobody asked, nothing happens.

use sd_notify::NotifyState;

/// This process serves.
pub fn say_ready() {
    tell(&[NotifyState::Ready]);
}

/// The configuration is read again. [`say_ready`] ends it.
pub fn say_reloading() {
    // systemd takes it only with the time, so that an older message cannot overtake a newer one.
    if let Ok(now) = NotifyState::monotonic_usec_now() {
        tell(&[NotifyState::Reloading, now]);
    }
}

/// This process ends.
pub fn say_stopping() {
    tell(&[NotifyState::Stopping]);
}

/// Another process goes on in place of this one.
pub fn say_successor(id: u32) {
    tell(&[NotifyState::MainPid(id)]);
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "could not tell the supervisor");
    }
}
