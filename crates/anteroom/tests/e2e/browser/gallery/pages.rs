//! Pages of visitors that do not exist, for the gallery.
//!
//! The gateway's own code makes the pages and the responses to polls, so no fault has to be caused
//! to see its page.

use std::io;
use std::net::SocketAddr;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

use anteroom_config::PageConfig;
use anteroom_config::language::Language;
use anteroom_room::queue_position::{HeldTurn, Loss, QueuePosition, QueueReason, Rise, WaitRange};
use anteroom_room::rules::{QueueingMethod, Rules};
use anteroom_room::time::{DurationMs, Timestamp};
use anteroom_room::visitor_code::VisitorCode;
use anteroom_room_http::waiting::{
    Answer, Look, RequestKind, TurnView, WaitingView, position_endpoint, respond,
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
pub(super) const STATES: [&str; 26] = [
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
    "counting",
    "lowered",
    "slower",
    "earlier",
    "near",
    "branded",
    "lost-session",
    "lost-position",
    "lost-turn",
    "revoked",
];

/// Look of the room `branded`.
static BRANDED: LazyLock<PageConfig> = LazyLock::new(|| PageConfig {
    title: Some("Nordlys Festival 2027".to_owned()),
    noun: Some("shop".to_owned()),
    help: Some("/help".to_owned()),
    imprint: Some("/imprint".to_owned()),
    facts: vec![
        "One order can hold up to 6 tickets.".to_owned(),
        "Have the names of everyone in your group ready.".to_owned(),
    ],
    ..PageConfig::default()
});

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
    let near = WaitRange {
        low: DurationMs::from_secs(20),
        middle: DurationMs::from_secs(30),
        high: DurationMs::from_secs(50),
    };
    let position = QueuePosition {
        people_ahead: is_known.then_some(if state == "near" { 2 } else { 412 }),
        people_waiting: 1_204,
        wait: is_known.then_some(if state == "near" {
            near
        } else {
            WaitRange {
                low: DurationMs::from_secs(600),
                middle: DurationMs::from_secs(840),
                high: DurationMs::from_secs(1_200),
            }
        }),
        is_counted: state != "counting",
        rise: match state {
            "lowered" => Some(Rise::LimitLowered),
            "slower" => Some(Rise::Slower),
            "earlier" => Some(Rise::EarlierVisitors),
            _ => None,
        },
        loss: loss(state),
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
        host: "shop.example.org",
        reference: Some(VisitorCode([0x3f, 0x9a, 0x12, 0xc4])),
        turn_hold: (state == "near").then_some(DurationMs::from_secs(60)),
        page: (state == "branded").then_some(&*BRANDED),
        language,
        admitted_last_minute: is_known.then_some(38),
        is_paused: state == "paused",
        message: matches!(state, "message" | "queue-all" | "paused").then_some(message),
        ..WaitingView::new(state, &rules, position, NOW)
    }
}

fn loss(state: &str) -> Option<Loss> {
    let ended_at = NOW - DurationMs::from_secs(60);
    Some(match state {
        "lost-session" => Loss::Session { ended_at },
        "lost-position" => Loss::Position {
            last_request_at: ended_at - DurationMs::from_secs(300),
            ended_at,
        },
        "lost-turn" => Loss::Turn {
            ended_at,
            is_near_front: true,
        },
        "revoked" => Loss::Revoked,
        _ => return None,
    })
}

/// Server of all states: `/STATE/TAG`. The states `turn`, `held`, `cut` and `moving` look like
/// `full`; then a poll gets a turn once there are turns, a turn that is held for a minute, no
/// response, or a position that is one less each time.
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

/// Returns the response with a turn of a minute that has just begun.
fn held_turn(language: Language, can_extend: bool) -> Response<Bytes> {
    position_endpoint::turn(&TurnView {
        turn: HeldTurn {
            ends_at: NOW + DurationMs::from_secs(60),
            can_extend,
        },
        now: NOW,
        language,
        session_duration: DurationMs::from_secs(900),
        is_renewed: true,
    })
}

/// Returns the response to the next poll of a queue that moves. Its reason changes every time.
fn move_on(mut view: WaitingView<'_>, query: &str) -> Response<Bytes> {
    static POLLS: AtomicU32 = AtomicU32::new(0);
    let known = query.split("&k=").nth(1).unwrap_or_default();
    let ahead = 411 - POLLS.fetch_add(1, Ordering::Relaxed);
    view.position.people_ahead = Some(ahead);
    view.position.refresh_after = Some(DurationMs::from_secs(1));
    if ahead.is_multiple_of(2) {
        view.position.reason = QueueReason::NotYourTurn;
    }
    position_endpoint::still_waiting_page(&view, false, known)
}

async fn serve_state(
    request: Request<Incoming>,
    mut turns: watch::Receiver<bool>,
) -> io::Result<Response<Full<Bytes>>> {
    let query = request.uri().query().unwrap_or_default();
    let path = request.uri().path();
    let is_poll = path == position_endpoint::PATH || path.ends_with("/turn");
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
    let script_states = ["turn", "held", "cut", "moving"];
    let mut known = STATES.into_iter().chain(script_states);
    let Some(state) = known.find(|state| *state == name) else {
        return Err(io::Error::other("no such state"));
    };
    let view = view(state, language);
    if request.uri().path().ends_with("/turn") {
        return Ok(held_turn(language, false).map(Full::new));
    }
    if is_poll {
        return match state {
            "turn" => {
                let is_there = turns.wait_for(|are_there| *are_there).await;
                is_there.map_err(io::Error::other)?;
                Ok(position_endpoint::entering(language).map(Full::new))
            }
            "held" => {
                let is_there = turns.wait_for(|are_there| *are_there).await;
                is_there.map_err(io::Error::other)?;
                Ok(held_turn(language, true).map(Full::new))
            }
            "moving" => Ok(move_on(view, query).map(Full::new)),
            "cut" => Err(io::Error::other("cut")),
            _ => {
                let known = query.split("&k=").nth(1).unwrap_or_default();
                Ok(position_endpoint::still_waiting_page(&view, false, known).map(Full::new))
            }
        };
    }
    let response = Answer {
        kind: if state == "after-post" {
            RequestKind::PageAfterPost
        } else {
            RequestKind::Page
        },
        is_head: false,
        has_gzip: false,
        queueing_status: StatusCode::OK,
        non_navigation_status: StatusCode::TOO_MANY_REQUESTS,
    };
    let look = Look {
        template: None,
        target: request.uri().path(),
        entry: if state == "after-post" { "/cart" } else { "" },
        brand: None,
    };
    Ok(respond(&view, response, look).map(Full::new))
}
