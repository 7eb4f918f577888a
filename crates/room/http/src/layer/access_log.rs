//! The access log: one line for each request, with what was decided about it.
//!
//! Paths without their queries, which carry secrets of the site; no cookie, no visitor id.

use std::borrow::Cow;
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
use anteroom_proxy::request_context::RequestContext;

/// What the line will say.
pub(super) struct AccessEntry<'a> {
    queued_lines: &'a QueuedLines,
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
    #[expect(
        clippy::disallowed_methods,
        reason = "how long a request took is logged and decides nothing"
    )]
    pub(super) fn of(request: &Request<()>, queued_lines: &'a QueuedLines) -> Self {
        // Nobody reads the line: spare the copies.
        let is_logged = tracing::enabled!(target: "access", tracing::Level::INFO);
        let path = if is_logged { request.uri().path() } else { "" };
        Self {
            queued_lines,
            started_at: Instant::now(),
            method: request.method().clone(),
            path: path.into(),
            client: RequestContext::of(request).map(|context| context.client.address),
            verdict: Verdict::Refuse,
            room: None,
            counters: None,
            reason: None,
            position: None,
            status: None,
            is_logged,
        }
    }

    pub(super) fn enter(&mut self, route: &RoomRoute) {
        self.counters = Some(Arc::clone(&route.counters));
        if self.is_logged {
            self.room = Some(route.config.name.as_str().into());
        }
    }

    pub(super) fn say(&mut self, verdict: Verdict) {
        self.verdict = verdict;
    }

    pub(super) fn pass(&mut self, pass: &Pass) {
        self.verdict = if pass.is_admission {
            Verdict::Admit
        } else {
            Verdict::Pass
        };
    }

    /// It is told to wait. There may be too many such requests for a line each.
    pub(super) fn queue(&mut self, view: &WaitingView<'_>) {
        self.verdict = Verdict::Queue;
        self.is_logged = self.is_logged && self.queued_lines.may_write(self.started_at);
        self.reason = Some(view.reason());
        self.position = view.place.people_ahead.map(|ahead| ahead.saturating_add(1));
    }

    /// The head of an answer is on its way. Without it the client was gone first.
    pub(super) fn answered(&mut self, status: StatusCode) {
        self.status = Some(status);
    }
}

impl Drop for AccessEntry<'_> {
    /// Counts the request and writes its line; here, so that a client that goes away is no way
    /// around either.
    fn drop(&mut self) {
        if let Some(counters) = &self.counters {
            counters.count_verdict(self.verdict);
        }
        if !self.is_logged {
            return;
        }
        tracing::info!(
            target: "access",
            client = self.client.map(tracing::field::display),
            method = %self.method,
            path = %printable(&self.path),
            status = self.status.map(|status| status.as_u16()),
            is_client_gone = self.status.is_none().then_some(true),
            verdict = self.verdict.name(),
            room = self.room.as_deref(),
            reason = self.reason,
            position = self.position,
            micros = u64::try_from(self.started_at.elapsed().as_micros()).unwrap_or(u64::MAX),
        );
    }
}

/// A path without anything that could drive a terminal or look like another field.
fn printable(path: &str) -> Cow<'_, str> {
    if path
        .bytes()
        .all(|byte| byte.is_ascii_graphic() && byte != b'"')
    {
        Cow::Borrowed(path)
    } else {
        Cow::Owned(path.escape_default().to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_in_the_log_drives_no_terminal() {
        assert_eq!(printable("/shop/%C3%A9"), "/shop/%C3%A9");
        assert_eq!(
            printable("/a\u{9b}31m\u{2028}\""),
            "/a\\u{9b}31m\\u{2028}\\\""
        );
    }
}
