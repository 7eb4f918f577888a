//! Access log: one line for each request, with its verdict.
//!
//! A line has the path without its query, which may carry secrets of the site. It has no cookie and
//! no visitor id.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use anteroom_node::Pass;
use http::{Method, Request, StatusCode};

use super::counters::RoomCounters;
use super::queued_lines::QueuedLines;
use super::route_table::RoomRoute;
use super::verdict::Verdict;
use crate::waiting::WaitingView;
use anteroom_proxy::access_log::{self, AccessLine};
use anteroom_proxy::request_context::RequestContext;

/// Fields of a line in the access log.
pub(super) struct AccessEntry<'a> {
    queued_lines: Option<&'a QueuedLines>,
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

impl<'a> AccessEntry<'a> {
    pub(super) fn of(request: &Request<()>, queued_lines: &'a QueuedLines) -> Self {
        let client = RequestContext::of(request).map(|context| context.client.address);
        let (method, path) = (request.method(), request.uri().path());
        let mut entry = Self::of_parts(method, path, client);
        entry.queued_lines = Some(queued_lines);
        entry
    }

    /// Begins the line of a request that nobody queues.
    #[expect(
        clippy::disallowed_methods,
        reason = "how long a request took is logged and decides nothing"
    )]
    pub(super) fn of_parts(method: &Method, path: &str, client: Option<IpAddr>) -> Self {
        // A line that is not written needs no copies.
        let is_logged = access_log::is_enabled();
        let path = if is_logged { path } else { "" };
        Self {
            queued_lines: None,
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
    pub(super) fn set_queued(&mut self, view: &WaitingView<'_>) {
        self.verdict = Verdict::Queue;
        let may_write = |lines: &QueuedLines| lines.may_write(self.started_at);
        self.is_logged = self.is_logged && self.queued_lines.is_none_or(may_write);
        self.reason = Some(view.reason());
        self.position = view
            .position
            .people_ahead
            .map(|ahead| ahead.saturating_add(1));
    }

    /// Ends the line without writing or counting it: others decide about the request.
    pub(super) fn withdraw(&mut self) {
        self.counters = None;
        self.is_logged = false;
    }

    /// Sets the status of the response. Without one, the client disconnected first.
    pub(super) fn set_status(&mut self, status: StatusCode) {
        self.status = Some(status);
    }
}

impl Drop for AccessEntry<'_> {
    /// Counts the request and writes its line, even if the client has disconnected before.
    fn drop(&mut self) {
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
