//! Requests and responses of a visitor. Visitors share connections, not cookies.

use std::time::Duration;

use anteroom_demo::checking_origin::{CHECKER_SEAT_ENDS, CHECKER_VISITOR, VIA};
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

/// Longest wait for a response: longer than a node takes on a busy machine, and less than the seats
/// of these runs last.
const ANSWER_WITHIN: Duration = Duration::from_secs(4);
/// Idle time after which a connection is closed, before a paused node could block all of them.
const IDLE_FOR: Duration = Duration::from_secs(5);

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
        /// Waiting visitors ahead; `None` where there is no order.
        people_ahead: Option<u64>,
        cookie: Cookie,
    },
    /// The visitor may request the page: it is admitted, or would be.
    Enters { cookie: Cookie },
    /// Other response, or none.
    Failed,
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
        let path = format!("/.well-known/anteroom/position?room={room}");
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
            .header(VIA, &goal.name);
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
    let number = |key: &str| room.and_then(|room| room.get(key)?.as_u64());
    let is_waiting = room.and_then(|room| room.get("inWaitingRoom")?.as_bool());
    match is_waiting {
        Some(true) => Poll::Waits {
            ask_after: number("askAfterMs").map(Duration::from_millis),
            people_ahead: number("peopleAhead"),
            cookie,
        },
        Some(false) => Poll::Enters { cookie },
        None => Poll::Failed,
    }
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
        let body = br#"{"cfWaitingRoom":{"inWaitingRoom":true,"askAfterMs":1907,"peopleAhead":3}}"#;
        let Poll::Waits {
            ask_after,
            people_ahead,
            ..
        } = understand_poll(&none, body)
        else {
            panic!("it waits");
        };
        assert_eq!(ask_after, Some(Duration::from_millis(1_907)));
        assert_eq!(people_ahead, Some(3));
        let body = br#"{"cfWaitingRoom":{"inWaitingRoom":false}}"#;
        assert!(matches!(understand_poll(&none, body), Poll::Enters { .. }));
        assert!(matches!(understand_poll(&none, b"<html>"), Poll::Failed));
    }

    #[test]
    fn an_expired_cookie_is_deleted() {
        let answer = headers(&[("judge-seat-ends", "1"), ("set-cookie", "a=; Max-Age=0")]);
        assert!(matches!(handed_out(&answer), Cookie::Deleted));
        assert!(matches!(handed_out(&headers(&[])), Cookie::Kept));
    }
}
