//! Lines of the access log: one for each request that was decided about.
//!
//! By default a line is an event of `tracing` with the target `access`. A program that serves many
//! requests sets a writer of its own, because an event costs more than most decisions.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::OnceLock;

use serde::Serialize;

/// Target of the lines, for filters.
pub const TARGET: &str = "access";

/// Fields of a line, in their order. Those that are `None` are left out.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct AccessLine<'a> {
    /// Address of the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<IpAddr>,
    /// Method of the request.
    pub method: &'a str,
    /// Path without the query: visible ASCII without quotes.
    pub path: &'a str,
    /// Status of the response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// `true` if the client disconnected before the response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_client_gone: Option<bool>,
    /// Verdict, one word.
    pub verdict: &'a str,
    /// Name of the limit that rejected the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<&'a str>,
    /// Name of the room that covers the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub room: Option<&'a str>,
    /// Reason why the visitor waits, one word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'a str>,
    /// Position of a waiting visitor, 1 = next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<u32>,
    /// Time from the request's head to the end of its response, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub micros: Option<u64>,
}

impl<'a> AccessLine<'a> {
    /// Creates a line with the fields that each one has.
    #[must_use]
    pub const fn new(method: &'a str, path: &'a str, verdict: &'a str) -> Self {
        Self {
            client: None,
            method,
            path,
            status: None,
            is_client_gone: None,
            verdict,
            limit: None,
            room: None,
            reason: None,
            position: None,
            micros: None,
        }
    }
}

/// Writer of lines.
pub type AccessWriter = Box<dyn Fn(&AccessLine<'_>) + Send + Sync>;

static WRITER: OnceLock<AccessWriter> = OnceLock::new();

/// Sets the writer of all lines of this process. A second call changes nothing.
pub fn set_writer(writer: AccessWriter) {
    // The first one stays, like the subscriber of `tracing`.
    let _ = WRITER.set(writer);
}

/// Whether lines are written at all, by the filter of `tracing`.
#[must_use]
pub fn is_enabled() -> bool {
    tracing::enabled!(target: TARGET, tracing::Level::INFO)
}

/// Writes a line. Call it only if [`is_enabled`].
pub fn write(line: &AccessLine<'_>) {
    if let Some(writer) = WRITER.get() {
        writer(line);
        return;
    }
    tracing::info!(
        target: TARGET,
        client = line.client.map(tracing::field::display),
        method = %line.method,
        path = %line.path,
        status = line.status,
        is_client_gone = line.is_client_gone,
        verdict = line.verdict,
        limit = line.limit,
        room = line.room,
        reason = line.reason,
        position = line.position,
        micros = line.micros,
    );
}

/// Escapes characters of a path that could control a terminal or look like another field.
#[must_use]
pub fn printable(path: &str) -> Cow<'_, str> {
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
    fn control_characters_of_a_path_are_escaped() {
        assert_eq!(printable("/shop/%C3%A9"), "/shop/%C3%A9");
        assert_eq!(
            printable("/a\u{9b}31m\u{2028}\""),
            "/a\\u{9b}31m\\u{2028}\\\""
        );
    }
}
