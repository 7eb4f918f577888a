//! Pages of visitors that do not exist, for the gallery.
//!
//! The gateway's own code makes the pages and the responses to polls, so no fault has to be caused
//! to see its page.

use std::io;
use std::net::SocketAddr;

use anteroom_config::language::Language;
use anteroom_room::queue_position::{QueuePosition, QueueReason, WaitRange};
use anteroom_room::rules::{QueueingMethod, Rules};
use anteroom_room::time::{DurationMs, Timestamp};
use anteroom_room_http::waiting::{
    Answer, Look, RequestKind, WaitingView, position_endpoint, respond,
};
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Saturday, 1 August 2026, 09:41:48 UTC, in a queue of 1,204.
const NOW: Timestamp = Timestamp(1_785_578_400_000 - 1_092_000);

/// Names of all states, which are names of rooms too.
pub(super) const STATES: [&str; 16] = [
    "full",
    "your-turn-soon",
    "unknown",
    "lot",
    "draw",
    "queue-all",
    "paused",
    "early",
    "early-unknown",
    "rejecting",
    "store-away",
    "recovering",
    "recovering-unknown",
    "origin-down",
    "after-post",
    "message",
];

fn view(state: &'static str, language: Language) -> WaitingView<'static> {
    let opening = NOW + DurationMs::from_secs(1_092);
    let reason = match state {
        "your-turn-soon" | "lot" => QueueReason::NotYourTurn,
        "queue-all" | "paused" => QueueReason::QueueAll,
        "early" | "draw" => QueueReason::NotOpenYet { opens_at: opening },
        "early-unknown" => QueueReason::NotOpenYet {
            opens_at: Timestamp::NEVER,
        },
        "rejecting" => QueueReason::Rejecting,
        "store-away" => QueueReason::StoreUnavailable,
        "recovering" => QueueReason::Recovering {
            reopens_at: opening,
        },
        "recovering-unknown" => QueueReason::Recovering {
            reopens_at: Timestamp::NEVER,
        },
        "origin-down" => QueueReason::OriginDown,
        _ => QueueReason::Full,
    };
    let is_known = state != "unknown";
    let position = QueuePosition {
        people_ahead: is_known.then_some(412),
        people_waiting: 1_204,
        wait: is_known.then_some(WaitRange {
            low: DurationMs::from_secs(600),
            middle: DurationMs::from_secs(840),
            high: DurationMs::from_secs(1_200),
        }),
        refresh_after: (reason != QueueReason::Rejecting).then_some(DurationMs::from_secs(60)),
        ..QueuePosition::unknown(reason, NOW - DurationMs::from_secs(95))
    };
    let rules = Rules {
        queueing_method: if state == "lot" {
            QueueingMethod::Random
        } else {
            QueueingMethod::Fifo
        },
        draw: state == "draw",
        ..Rules::default()
    };
    let message = "The payment service is being mended. Next news by 10:40.";
    WaitingView {
        language,
        admitted_last_minute: is_known.then_some(38),
        is_paused: state == "paused",
        message: matches!(state, "message" | "queue-all" | "paused").then_some(message),
        ..WaitingView::new(state, &rules, position, NOW)
    }
}

/// Server of all states: `/STATE/TAG`. The states `turn` and `cut` look like `full`; then a poll
/// gets a turn once there are turns, or no response.
pub(super) struct Gallery {
    address: SocketAddr,
    pub(super) are_there_turns: watch::Sender<bool>,
    serving: JoinHandle<()>,
}

impl Gallery {
    pub(super) async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (are_there_turns, turns) = watch::channel(false);
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let turns = turns.clone();
                let service = service_fn(move |request| serve_state(request, turns.clone()));
                let connection = http1::Builder::new();
                tokio::spawn(connection.serve_connection(TokioIo::new(stream), service));
            }
        });
        Self {
            address,
            are_there_turns,
            serving,
        }
    }

    pub(super) fn url(&self, state: &str, language: Language) -> String {
        format!("http://{}/{state}/{}", self.address, language.tag())
    }
}

impl Drop for Gallery {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve_state(
    request: Request<Incoming>,
    mut turns: watch::Receiver<bool>,
) -> io::Result<Response<Full<Bytes>>> {
    let query = request.uri().query().unwrap_or_default();
    let is_poll = request.uri().path() == position_endpoint::PATH;
    let (name, language) = if is_poll {
        let room = position_endpoint::room_of(query).unwrap();
        (room, position_endpoint::language_of(query).unwrap())
    } else {
        let mut parts = request.uri().path().trim_start_matches('/').split('/');
        let name = parts.next().unwrap().to_owned();
        (
            name,
            Language::of_tag(parts.next().unwrap_or("en")).unwrap(),
        )
    };
    let script_states = ["turn", "cut"];
    let mut known = STATES.into_iter().chain(script_states);
    let Some(state) = known.find(|state| *state == name) else {
        return Err(io::Error::other("no such state"));
    };
    let view = view(state, language);
    if is_poll {
        return match state {
            "turn" => {
                let is_there = turns.wait_for(|are_there| *are_there).await;
                is_there.map_err(io::Error::other)?;
                Ok(position_endpoint::not_waiting().map(Full::new))
            }
            "cut" => Err(io::Error::other("cut")),
            _ => Ok(position_endpoint::still_waiting(&view, false).map(Full::new)),
        };
    }
    let response = Answer {
        kind: if state == "after-post" {
            RequestKind::PageAfterPost
        } else {
            RequestKind::Page
        },
        is_head: false,
        queueing_status: StatusCode::OK,
        non_navigation_status: StatusCode::TOO_MANY_REQUESTS,
    };
    let look = Look {
        template: None,
        target: request.uri().path(),
    };
    Ok(respond(&view, response, look).map(Full::new))
}
