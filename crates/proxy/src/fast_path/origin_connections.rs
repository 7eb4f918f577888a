//! Idle connections of the fast path to one origin.
//!
//! Like those of the slow path, the newest is used first, and each only by the runtime that opened
//! it.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::time::Instant;

use crate::upstream::open_connections::{Kept, look_after};

/// Most idle connections to one origin per runtime, as on the slow path.
const IDLE_MAX: usize = 1024;

/// Idle connections to one origin.
#[derive(Debug)]
pub(crate) struct OriginConnections {
    keep: Duration,
    kept: Mutex<Kept<(TcpStream, Instant)>>,
}

impl OriginConnections {
    pub(crate) fn new(keep: Duration) -> Arc<Self> {
        Arc::new(Self {
            keep,
            kept: Mutex::default(),
        })
    }

    /// Takes a connection on which nothing has arrived since its last response.
    pub(crate) fn take(&self) -> Option<TcpStream> {
        let now = Instant::now();
        let mut kept = self.kept.lock();
        let here = kept.here()?;
        while let Some((stream, since)) = here.pop() {
            if now.saturating_duration_since(since) >= self.keep {
                // All others are older.
                here.clear();
                return None;
            }
            if is_silent(&stream) {
                return Some(stream);
            }
        }
        None
    }

    /// Keeps a connection after a response that has ended exactly.
    pub(crate) fn put(self: &Arc<Self>, stream: TcpStream) {
        let mut kept = self.kept.lock();
        let here = kept.at(Handle::current().id());
        if here.len() >= IDLE_MAX {
            return;
        }
        here.push((stream, Instant::now()));
        if kept.needs_sweeper() {
            tokio::spawn(look_after(Arc::downgrade(self), self.keep, Self::sweep));
        }
    }

    /// Closes connections that are too old. Returns whether any remain.
    fn sweep(&self) -> bool {
        let now = Instant::now();
        let is_young = |since: Instant| now.saturating_duration_since(since) < self.keep;
        self.kept.lock().sweep(|connections| {
            connections.retain(|(stream, since)| is_young(*since) && is_silent(stream));
        })
    }
}

/// Whether the origin has neither closed the connection nor sent bytes that nobody asked for.
fn is_silent(stream: &TcpStream) -> bool {
    let mut byte = [0];
    let read = stream.try_read(&mut byte);
    read.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
}
