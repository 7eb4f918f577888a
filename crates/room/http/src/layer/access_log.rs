//! Access log: one line for each request, with its verdict.
//!
//! A line has the path without its query, which may carry secrets of the site. It has no cookie and
//! no visitor id.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use anteroom_node::Pass;
use http::{Method, StatusCode};

use super::counters::RoomCounters;
use super::queued_lines::QueuedLines;
use super::route_table::RoomRoute;
use super::verdict::Verdict;
use crate::waiting::WaitingView;
use anteroom_proxy::access_log::{self, AccessLine};
use anteroom_proxy::request_view::RequestView;

/// Fields of a line in the access log.
pub(super) struct AccessEntry {
    started_at: Instant,
    method: Method,
    path: Box<str>,
    client: Option<IpAddr>,
    verdict: Verdict,
    room: Option<Box<str>>,
    counters: Option<Arc<RoomCounters>>,
    reason: Option<&'static str>,
    position: Option<u32>,
    status: Option<StatusCode>,
    is_logged: bool,
}

impl AccessEntry {
    /// Begins the line of a request with its method and path.
    #[expect(
        clippy::disallowed_methods,
        reason = "how long a request took is logged and decides nothing"
    )]
    pub(super) fn new(method: &Method, path: &str, client: Option<IpAddr>) -> Self {
        // A line that is not written needs no copies.
        let is_logged = access_log::is_enabled();
        let path = if is_logged { path } else { "" };
        Self {
            started_at: Instant::now(),
            method: method.clone(),
            path: path.into(),
            client,
            verdict: Verdict::Reject,
            room: None,
            counters: None,
            reason: None,
            position: None,
            status: None,
            is_logged,
        }
    }

    /// Begins the line of a request.
    pub(super) fn of(request: &RequestView<'_>) -> Self {
        Self::new(request.method, request.path, Some(request.client.address))
    }

    pub(super) fn set_room(&mut self, route: &RoomRoute) {
        self.counters = Some(Arc::clone(&route.counters));
        if self.is_logged {
            self.room = Some(route.config.name.as_str().into());
        }
    }

    pub(super) fn set_verdict(&mut self, verdict: Verdict) {
        self.verdict = verdict;
    }

    pub(super) fn set_pass(&mut self, pass: &Pass) {
        self.verdict = if pass.is_admission {
            Verdict::Admit
        } else {
            Verdict::Pass
        };
    }

    /// Sets the verdict of a waiting visitor. There may be too many of them for a line each.
    pub(super) fn set_queued(&mut self, view: &WaitingView<'_>, lines: &QueuedLines) {
        self.verdict = Verdict::Queue;
        self.is_logged = self.is_logged && lines.may_write(self.started_at);
        self.reason = Some(view.reason());
        self.position = view
            .position
            .people_ahead
            .map(|ahead| ahead.saturating_add(1));
    }

    /// Sets the status of the response. Without one, the client disconnected first.
    pub(super) fn set_status(&mut self, status: StatusCode) {
        self.status = Some(status);
    }
}

impl Drop for AccessEntry {
    /// Counts the request and writes its line, even if the client has disconnected before.
    fn drop(&mut self) {
        // A rejected request has a status.
        if self.status.is_none() && self.verdict == Verdict::Reject {
            self.verdict = Verdict::Gone;
        }
        if let Some(counters) = &self.counters {
            counters.count_verdict(self.verdict);
        }
        if !self.is_logged {
            return;
        }
        access_log::write(&AccessLine {
            client: self.client,
            status: self.status.map(|status| status.as_u16()),
            is_client_gone: self.status.is_none().then_some(true),
            room: self.room.as_deref(),
            reason: self.reason,
            position: self.position,
            micros: u64::try_from(self.started_at.elapsed().as_micros()).ok(),
            ..AccessLine::new(
                self.method.as_str(),
                &access_log::printable(&self.path),
                self.verdict.name(),
            )
        });
    }
}
