//! Lines of the access log, formatted like the other lines of the log.

use std::io::Write as _;
use std::time::SystemTime;

use anteroom_proxy::access_log::{AccessLine, TARGET};
use humantime::format_rfc3339_micros;

/// Appends a line of text for people.
pub(super) fn append_text(bytes: &mut Vec<u8>, at: SystemTime, line: &AccessLine<'_>) {
    let at = format_rfc3339_micros(at);
    put(bytes, format_args!("{at}  INFO {TARGET}:"));
    if let Some(client) = line.client {
        put(bytes, format_args!(" client={client}"));
    }
    for (name, value) in [("method", line.method), ("path", line.path)] {
        put(bytes, format_args!(" {name}={value}"));
    }
    if let Some(status) = line.status {
        put(bytes, format_args!(" status={status}"));
    }
    if let Some(is_gone) = line.is_client_gone {
        put(bytes, format_args!(" is_client_gone={is_gone}"));
    }
    put(bytes, format_args!(" verdict={:?}", line.verdict));
    let words = [
        ("limit", line.limit),
        ("room", line.room),
        ("reason", line.reason),
    ];
    for (name, word) in words {
        if let Some(word) = word {
            put(bytes, format_args!(" {name}={word:?}"));
        }
    }
    if let Some(position) = line.position {
        put(bytes, format_args!(" position={position}"));
    }
    if let Some(micros) = line.micros {
        put(bytes, format_args!(" micros={micros}"));
    }
    bytes.push(b'\n');
}

/// Appends a line as a JSON object.
pub(super) fn append_json(bytes: &mut Vec<u8>, at: SystemTime, line: &AccessLine<'_>) {
    let at = format_rfc3339_micros(at);
    put(
        bytes,
        format_args!("{{\"timestamp\":\"{at}\",\"level\":\"INFO\","),
    );
    // The fields of the line become fields of this object, so its braces go.
    let start = bytes.len();
    serde_json::to_writer(&mut *bytes, line).expect("a Vec takes numbers and texts");
    bytes.remove(start);
    bytes.pop();
    put(bytes, format_args!(",\"target\":\"{TARGET}\"}}\n"));
}

fn put(bytes: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    bytes.write_fmt(text).expect("a Vec takes every text");
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::{Duration, UNIX_EPOCH};

    use anteroom_proxy::access_log;
    use parking_lot::Mutex;
    use serde_json::Value;

    use super::*;

    const FULL: AccessLine<'_> = AccessLine {
        client: Some(std::net::IpAddr::V6(std::net::Ipv6Addr::LOCALHOST)),
        method: "GET",
        path: "/shop\\u{9b}",
        status: Some(429),
        is_client_gone: Some(true),
        verdict: "queue",
        limit: Some("api"),
        room: Some("main"),
        reason: Some("full"),
        position: Some(7),
        micros: Some(123),
    };
    const SHORT: AccessLine<'_> = AccessLine {
        client: None,
        status: None,
        is_client_gone: None,
        limit: None,
        room: None,
        reason: None,
        position: None,
        micros: None,
        ..FULL
    };

    /// Output of `tracing`.
    #[derive(Clone, Default)]
    struct Captured(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Captured {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// Returns the line as an event of `tracing` writes it.
    fn of_tracing(line: &AccessLine<'_>, is_json: bool) -> String {
        let captured = Captured::default();
        let writer = captured.clone();
        let builder = tracing_subscriber::fmt().with_ansi(false);
        let builder = builder.with_writer(move || writer.clone());
        let write = || access_log::write(line);
        if is_json {
            let subscriber = builder.json().flatten_event(true).finish();
            tracing::subscriber::with_default(subscriber, write);
        } else {
            tracing::subscriber::with_default(builder.finish(), write);
        }
        let bytes = captured.0.lock().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_line_of_text_is_that_of_tracing() {
        for line in [FULL, SHORT] {
            let mut bytes = Vec::new();
            append_text(&mut bytes, UNIX_EPOCH, &line);
            let text = String::from_utf8(bytes).unwrap();
            let (_, own) = text.split_at("2026-11-28T10:00:00.000000Z".len());
            let expected = of_tracing(&line, false);
            let (_, expected) = expected.split_once('Z').unwrap();
            assert_eq!(own, expected);
        }
    }

    #[test]
    fn a_line_of_json_has_the_fields_of_tracing() {
        for line in [FULL, SHORT] {
            let mut bytes = Vec::new();
            append_json(&mut bytes, UNIX_EPOCH, &line);
            assert!(bytes.ends_with(b"}\n"));
            let mut own: Value = serde_json::from_slice(&bytes).unwrap();
            let mut expected: Value = serde_json::from_str(&of_tracing(&line, true)).unwrap();
            for line in [&mut own, &mut expected] {
                let timestamp = line["timestamp"].take();
                humantime::parse_rfc3339(timestamp.as_str().unwrap()).unwrap();
            }
            assert_eq!(own, expected);
        }
    }

    #[test]
    fn times_have_microseconds() {
        let at = UNIX_EPOCH + Duration::from_micros(1_700_000_000_000_045);
        let mut bytes = Vec::new();
        append_text(&mut bytes, at, &SHORT);
        let text = String::from_utf8(bytes).unwrap();
        let expected = "2023-11-14T22:13:20.000045Z  INFO access: \
                        method=GET path=/shop\\u{9b} verdict=\"queue\"\n";
        assert_eq!(text, expected);
    }
}
