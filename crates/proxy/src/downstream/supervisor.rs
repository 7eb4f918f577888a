//! Notifications to a supervisor (`sd_notify`). Without a supervisor they do nothing.

use sd_notify::NotifyState;

/// Reports that this process serves.
pub fn notify_ready() {
    notify(&[NotifyState::Ready]);
}

/// Reports that the configuration is reloaded. [`notify_ready`] ends it.
pub fn notify_reloading() {
    // systemd requires the time, so that an older message cannot overtake a newer one.
    if let Ok(now) = NotifyState::monotonic_usec_now() {
        notify(&[NotifyState::Reloading, now]);
    }
}

/// Reports that this process stops.
pub fn notify_stopping() {
    notify(&[NotifyState::Stopping]);
}

/// Reports that another process replaces this one.
pub fn notify_successor(id: u32) {
    notify(&[NotifyState::MainPid(id)]);
}

fn notify(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "cannot notify the supervisor");
    }
}
