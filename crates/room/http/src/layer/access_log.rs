//! The access log: one line for each request, with what was decided about it.
//!
//! Paths without their queries, which carry secrets of the site; no cookie, no visitor id.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use anteroom_node::Pass;
use http::{Method, Request, StatusCode};

use super::doors::Door;
use super::queued_lines::QueuedLines;
use super::tallies::RoomTally;
use crate::waiting::WaitingView;
use anteroom_proxy::request_context::RequestContext;

/// What was decided about a request.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(super) enum Verdict {
    /// Neither malformed requests nor unknown hosts get further than this, nor do those who would
    /// listen and have nothing to listen for.
    #[default]
    Refuse,
    /// No room covers it.
    NoRoom,
    /// Its room is switched off.
    Suspended,
    /// A bypass rule let it pass.
    Bypass,
    /// Let in just now.
    Admit,
    /// Inside already.
    Pass,
    /// Told to wait.
    Queue,
    /// Only looked where it would stand, and would be let in.
    Look,
    /// Listens for its turn.
    Listen,
    /// Chose a language.
    Language,
}

impl Verdict {
    pub(super) const ALL: [Self; 10] = [
        Self::Refuse,
        Self::NoRoom,
        Self::Suspended,
        Self::Bypass,
        Self::Admit,
        Self::Pass,
        Self::Queue,
        Self::Look,
        Self::Listen,
        Self::Language,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Refuse => "refuse",
            Self::NoRoom => "no_room",
            Self::Suspended => "suspended",
            Self::Bypass => "bypass",
            Self::Admit => "admit",
            Self::Pass => "pass",
            Self::Queue => "queue",
            Self::Look => "look",
            Self::Listen => "listen",
            Self::Language => "language",
        }
    }
}

/// What the line will say.
pub(super) struct Access {
    started_at: Instant,
    method: Method,
    path: Box<str>,
    client: Option<IpAddr>,
    verdict: Verdict,
    room: Option<Box<str>>,
    tally: Option<Arc<RoomTally>>,
    reason: Option<&'static str>,
    position: Option<u32>,
    status: Option<StatusCode>,
    is_logged: bool,
}

impl Access {
    #[expect(
        clippy::disallowed_methods,
        reason = "how long a request took is logged and decides nothing"
    )]
    pub(super) fn of(request: &Request<()>) -> Self {
        // Nobody reads the line: spare the copies.
        let is_logged = tracing::enabled!(target: "access", tracing::Level::INFO);
        let path = if is_logged { request.uri().path() } else { "" };
        Self {
            started_at: Instant::now(),
            method: request.method().clone(),
            path: path.into(),
            client: RequestContext::of(request).map(|context| context.client.address),
            verdict: Verdict::Refuse,
            room: None,
            tally: None,
            reason: None,
            position: None,
            status: None,
            is_logged,
        }
    }

    pub(super) fn enter(&mut self, door: &Door) {
        self.tally = Some(Arc::clone(&door.tally));
        if self.is_logged {
            self.room = Some(door.config.name.as_str().into());
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
    pub(super) fn queue(&mut self, view: &WaitingView<'_>, lines: &QueuedLines) {
        self.verdict = Verdict::Queue;
        self.is_logged = self.is_logged && lines.may_write(self.started_at);
        self.reason = Some(view.reason());
        self.position = view.place.people_ahead.map(|ahead| ahead.saturating_add(1));
    }

    /// The head of an answer is on its way. Without it the client was gone first.
    pub(super) fn answered(&mut self, status: StatusCode) {
        self.status = Some(status);
    }
}

impl Drop for Access {
    /// Counts the request and writes its line; here, so that a client that goes away is no way
    /// around either.
    fn drop(&mut self) {
        if let Some(tally) = &self.tally {
            tally.count_verdict(self.verdict);
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
