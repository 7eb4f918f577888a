//! Requests and responses of a visitor. Visitors share connections, not cookies.

use std::time::Duration;

use anteroom_demo::checking_origin::{CHECKER_SEAT_ENDS, CHECKER_VISITOR, SENT_AT, VIA};
use anteroom_room::time::Timestamp;
use bytes::Bytes;
use http::header::{ACCEPT, COOKIE, RETRY_AFTER, SET_COOKIE};
use http::response::Parts;
use http::{HeaderMap, HeaderValue, Request, StatusCode};
use http_body_util::{BodyExt as _, Empty};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;
use tokio::time::timeout;

use super::routes::NodeTarget;
use crate::clock::now;

/// Longest wait for a response: longer than a node takes on a busy machine, and less than the seats
/// of these runs last.
const ANSWER_WITHIN: Duration = Duration::from_secs(4);
/// Idle time after which a connection is closed, before a paused node could block all of them.
const IDLE_FOR: Duration = Duration::from_secs(5);

/// Words of the page in English: for a number that is not known, and for the shortest wait.
const UNKNOWN: &str = "Not known yet";
const LESS_THAN_A_MINUTE: &str = "Less than a minute";

/// Cookie and the known facts about its ticket.
#[derive(Clone, Debug, Default)]
pub(super) struct Jar {
    /// Cookie as `name=value`.
    pub(super) cookie: Option<String>,
    /// End of the ticket; `None` for a waiting ticket.
    pub(super) ends_at: Option<Timestamp>,
    /// Visitor of the ticket; unknown until the origin has seen it.
    pub(super) visitor: Option<String>,
}

/// Response.
#[derive(Clone, Debug)]
pub(super) enum Answer {
    /// Page of the origin.
    Page {
        seat_ends_at: Timestamp,
        visitor: String,
        cookie: Cookie,
    },
    /// Waiting page of the node, with its reason.
    Queue {
        reason: String,
        /// Poll interval that the node sends.
        ask_after: Option<Duration>,
        cookie: Cookie,
    },
    /// Other response.
    Failed(StatusCode),
    /// Missing response.
    Nothing,
}

/// Response to a poll of the position.
#[derive(Clone, Debug)]
pub(super) enum Poll {
    /// The visitor waits.
    Waits {
        /// Time until the next poll; `None` if another one is of no use.
        ask_after: Option<Duration>,
        notice: WaitNotice,
        cookie: Cookie,
    },
    /// The visitor may request the page: it is admitted, or would be.
    Enters { cookie: Cookie },
    /// Other response, or none.
    Failed,
}

/// Facts in a response to a waiting visitor.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct WaitNotice {
    /// Whether visitors go in at present.
    pub is_moving: bool,
    /// Waiting visitors ahead, shown or not; `None` where there is no order.
    pub people_ahead: Option<u64>,
    /// Position as the page shows it, 1 = next; `None` without an order, and while those who came
    /// before are counted.
    pub position: Option<u64>,
    /// Estimated wait; `None` if nothing is known of it.
    pub wait: Option<NoticedWait>,
    /// Whether the page names a reason why it takes longer than before.
    pub has_reason: bool,
}

/// Estimated wait in a response.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct NoticedWait {
    /// Shorter end.
    pub low: Duration,
    /// Middle.
    pub middle: Duration,
    /// Longer end.
    pub high: Duration,
    /// Whole minutes that the sentence of the page names, from and to; `None` if it names others.
    pub minutes: Option<(u64, u64)>,
}

/// Effect of a response on the jar.
#[derive(Clone, Debug)]
pub(super) enum Cookie {
    Kept,
    Deleted,
    Given(String),
}

/// Purpose of a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PageRequest {
    /// Page as the main document.
    Page,
    /// Picture on a page.
    Picture,
}

impl PageRequest {
    /// Returns a browser's `Accept` and `Sec-Fetch-Dest` for it.
    const fn headers(self) -> (&'static str, &'static str) {
        match self {
            Self::Page => ("text/html", "document"),
            Self::Picture => ("image/*", "image"),
        }
    }
}

/// Sender of requests. Clones share connections.
#[derive(Clone, Debug)]
pub(super) struct Browser {
    client: Client<HttpConnector, Empty<Bytes>>,
}

impl Browser {
    pub(super) fn new() -> Self {
        let client = Client::builder(TokioExecutor::new())
            .pool_idle_timeout(IDLE_FOR)
            .pool_timer(hyper_util::rt::TokioTimer::new())
            .build_http();
        Self { client }
    }

    /// Sends a request with this cookie.
    pub(super) async fn ask(
        &self,
        goal: &NodeTarget,
        path: &str,
        cookie: Option<&str>,
        what: PageRequest,
    ) -> Answer {
        let response = self.send(goal, path, cookie, what.headers()).await;
        response.map_or(Answer::Nothing, |(head, body)| {
            understand(head.status, &head.headers, &body)
        })
    }

    /// Polls the position, as the script of the waiting page does.
    pub(super) async fn poll(&self, goal: &NodeTarget, room: &str, cookie: Option<&str>) -> Poll {
        let path = format!("/.well-known/anteroom/position?room={room}&lang=en");
        let headers = ("application/json", "empty");
        let response = self.send(goal, &path, cookie, headers).await;
        response.map_or(Poll::Failed, |(head, body)| {
            understand_poll(&head.headers, &body)
        })
    }

    /// Sends a request with these values of `Accept` and `Sec-Fetch-Dest`; returns `None` without a
    /// response in time.
    async fn send(
        &self,
        goal: &NodeTarget,
        path: &str,
        cookie: Option<&str>,
        (accept, dest): (&str, &str),
    ) -> Option<(Parts, Bytes)> {
        let mut request = Request::get(format!("http://{}{path}", goal.address))
            .header(ACCEPT, accept)
            .header("sec-fetch-dest", dest)
            .header(VIA, &goal.name)
            .header(SENT_AT, now().0);
        if let Some(cookie) = cookie {
            request = request.header(COOKIE, cookie);
        }
        let request = request
            .body(Empty::new())
            .expect("addresses, names and cookies of nodes are fit for a request");
        let answering = async {
            let response = self.client.request(request).await.ok()?;
            let (head, body) = response.into_parts();
            Some((head, body.collect().await.ok()?.to_bytes()))
        };
        timeout(ANSWER_WITHIN, answering).await.ok().flatten()
    }
}

/// Reads the response to a poll.
fn understand_poll(headers: &HeaderMap, body: &[u8]) -> Poll {
    let cookie = handed_out(headers);
    let body: Option<Value> = serde_json::from_slice(body).ok();
    let room = body.as_ref().and_then(|body| body.get("cfWaitingRoom"));
    let ask_after = body.as_ref().and_then(|body| body.get("askAfterMs"));
    let ask_after = ask_after.and_then(Value::as_u64);
    let is_waiting = room.and_then(|room| room.get("inWaitingRoom")?.as_bool());
    match is_waiting {
        Some(true) => Poll::Waits {
            ask_after: ask_after.map(Duration::from_millis),
            notice: body.as_ref().map(notice).unwrap_or_default(),
            cookie,
        },
        Some(false) => Poll::Enters { cookie },
        None => Poll::Failed,
    }
}

/// Reads the facts for a waiting visitor.
fn notice(body: &Value) -> WaitNotice {
    let field = |key: &str| body.get("cfWaitingRoom")?.get(key);
    let word = |key: &str| body.get("words")?.get(key)?.as_str();
    let people_ahead = field("peopleAhead").and_then(Value::as_u64);
    let reason = field("reason").and_then(Value::as_str);
    // Before all who came earlier are counted, the page does not show the number.
    let is_shown = word("ahead").is_some_and(|text| text != UNKNOWN);
    let millis = |key: &str| {
        let millis = body.get("waitMs")?.get(key)?.as_u64();
        millis.map(Duration::from_millis)
    };
    let wait = || {
        Some(NoticedWait {
            low: millis("low")?,
            middle: millis("middle")?,
            high: millis("high")?,
            minutes: word("wait").and_then(minutes),
        })
    };
    WaitNotice {
        is_moving: matches!(reason, Some("full" | "not_your_turn")),
        people_ahead,
        position: people_ahead.filter(|_| is_shown).map(|ahead| ahead + 1),
        wait: wait(),
        has_reason: word("rise").is_some(),
    }
}

/// Reads a range of minutes from the page's sentence, which is in English.
fn minutes(sentence: &str) -> Option<(u64, u64)> {
    if sentence == LESS_THAN_A_MINUTE {
        return Some((0, 1));
    }
    let (rest, unit) = sentence.rsplit_once(' ')?;
    if !matches!(unit, "minute" | "minutes") {
        return None;
    }
    if let Some(to) = rest.strip_prefix("Up to ") {
        return Some((0, to.parse().ok()?));
    }
    if let Some(about) = rest.strip_prefix("About ") {
        let about = about.parse().ok()?;
        return Some((about, about));
    }
    let (from, to) = rest.split_once('\u{2013}')?;
    Some((from.parse().ok()?, to.parse().ok()?))
}

/// Returns the poll interval of the page's script, to the millisecond.
fn poll_interval(page: &[u8]) -> Option<Duration> {
    let page = std::str::from_utf8(page).ok()?;
    let (_, rest) = page.split_once("data-ask=\"")?;
    let (millis, _) = rest.split_once('"')?;
    millis.parse().ok().map(Duration::from_millis)
}

fn understand(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Answer {
    let text = |value: &HeaderValue| value.to_str().ok().map(str::to_owned);
    let cookie = handed_out(headers);
    if headers.get("anteroom-verdict").is_some() {
        let reason = headers.get("anteroom-reason").and_then(text);
        let seconds = headers.get(RETRY_AFTER).and_then(text);
        let seconds = seconds.and_then(|text| text.parse().ok());
        let ask_after = poll_interval(body).or_else(|| seconds.map(Duration::from_secs));
        return Answer::Queue {
            reason: reason.unwrap_or_default(),
            ask_after,
            cookie,
        };
    }
    let seat_ends_at = headers
        .get(CHECKER_SEAT_ENDS)
        .and_then(text)
        .and_then(|text| text.parse().ok());
    match seat_ends_at {
        Some(ends_at) => Answer::Page {
            seat_ends_at: Timestamp(ends_at),
            visitor: headers
                .get(CHECKER_VISITOR)
                .and_then(text)
                .unwrap_or_default(),
            cookie,
        },
        None => Answer::Failed(status),
    }
}

fn handed_out(headers: &HeaderMap) -> Cookie {
    let line = headers.get(SET_COOKIE).and_then(|line| line.to_str().ok());
    let Some(line) = line else {
        return Cookie::Kept;
    };
    let (pair, attributes) = line.split_once(';').unwrap_or((line, ""));
    if attributes.contains("Max-Age=0") {
        Cookie::Deleted
    } else {
        Cookie::Given(pair.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let lines = lines.iter();
        lines
            .map(|&(name, value)| {
                let name = http::HeaderName::from_static(name);
                (name, HeaderValue::from_static(value))
            })
            .collect()
    }

    #[test]
    fn responses_of_origin_and_node_are_distinguished() {
        let page = headers(&[
            ("judge-seat-ends", "17"),
            ("judge-visitor", "0a"),
            ("set-cookie", "a=b; Path=/"),
        ]);
        let Answer::Page {
            seat_ends_at,
            visitor,
            cookie,
        } = understand(StatusCode::OK, &page, b"")
        else {
            panic!("the origin's");
        };
        assert_eq!((seat_ends_at, visitor.as_str()), (Timestamp(17), "0a"));
        assert!(matches!(cookie, Cookie::Given(pair) if pair == "a=b"));
        let queue = headers(&[
            ("anteroom-verdict", "queue"),
            ("anteroom-reason", "full"),
            ("retry-after", "7"),
        ]);
        let interval = |page: &[u8]| match understand(StatusCode::OK, &queue, page) {
            Answer::Queue {
                reason, ask_after, ..
            } => (reason, ask_after),
            answer => panic!("not the node's: {answer:?}"),
        };
        let full = |after| ("full".to_owned(), Some(after));
        assert_eq!(interval(b"<html>"), full(Duration::from_secs(7)));
        let page = b"<html data-ask=\"6012\" data-now=\"1\">";
        assert_eq!(interval(page), full(Duration::from_millis(6_012)));
        let answer = understand(StatusCode::BAD_GATEWAY, &headers(&[]), b"");
        assert!(matches!(answer, Answer::Failed(StatusCode::BAD_GATEWAY)));
    }

    #[test]
    fn a_poll_tells_how_many_are_ahead_and_when_to_poll_again() {
        let none = headers(&[]);
        let noticed = |more: &str| {
            let body = format!(
                r#"{{"cfWaitingRoom":{{"inWaitingRoom":true,"peopleAhead":3,"reason":"full"}},
                "askAfterMs":1907,{more}}}"#
            );
            match understand_poll(&none, body.as_bytes()) {
                Poll::Waits {
                    ask_after, notice, ..
                } => {
                    assert_eq!(ask_after, Some(Duration::from_millis(1_907)));
                    notice
                }
                poll => panic!("it waits: {poll:?}"),
            }
        };
        let early = noticed(r#""words":{"ahead":"Not known yet","rise":null},"waitMs":null"#);
        let expected = WaitNotice {
            is_moving: true,
            people_ahead: Some(3),
            ..WaitNotice::default()
        };
        assert_eq!(early, expected);
        let counted = noticed(
            r#""words":{"ahead":"3","wait":"1–2 minutes","rise":"People"},
            "waitMs":{"low":61000,"middle":80000,"high":99000}"#,
        );
        let wait = NoticedWait {
            low: Duration::from_secs(61),
            middle: Duration::from_secs(80),
            high: Duration::from_secs(99),
            minutes: Some((1, 2)),
        };
        let expected = WaitNotice {
            position: Some(4),
            wait: Some(wait),
            has_reason: true,
            ..expected
        };
        assert_eq!(counted, expected);
        let body = br#"{"cfWaitingRoom":{"inWaitingRoom":false}}"#;
        assert!(matches!(understand_poll(&none, body), Poll::Enters { .. }));
        assert!(matches!(understand_poll(&none, b"<html>"), Poll::Failed));
    }

    #[test]
    fn a_sentence_about_the_wait_names_whole_minutes() {
        let check = |sentence, expected| assert_eq!(minutes(sentence), expected, "{sentence}");
        check("Less than a minute", Some((0, 1)));
        check("Up to 2 minutes", Some((0, 2)));
        check("10–20 minutes", Some((10, 20)));
        check("About 5 minutes", Some((5, 5)));
        check("40 minutes – 3 hours", None);
        check("Not known yet", None);
    }

    #[test]
    fn an_expired_cookie_is_deleted() {
        let answer = headers(&[("judge-seat-ends", "1"), ("set-cookie", "a=; Max-Age=0")]);
        assert!(matches!(handed_out(&answer), Cookie::Deleted));
        assert!(matches!(handed_out(&headers(&[])), Cookie::Kept));
    }
}
