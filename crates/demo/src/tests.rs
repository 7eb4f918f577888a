//! Origin, checker and visitors together, through sockets, behind a correct gateway and behind
//! faulty ones.

mod fake_gateway;

use std::convert::Infallible;
use std::future::pending;
use std::net::Ipv4Addr;
use std::time::Duration;

use anteroom_room::rules::Limits;
use anteroom_room::time::DurationMs;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use tokio::net::TcpListener;
use url::Url;

use self::fake_gateway::{FakeGateway, Fault};
use super::checker::{ACCEPTED_AT, ROOM, SEAT_ENDS, VISITOR, Verdict};
use super::load::{LoadGenerator, LoadPlan, LoadReport, RequestErrorKind, Target};
use super::origin::{Origin, OriginOptions, ServiceTime};
use super::progress::Progress;
use super::{Demo, DemoOptions, Summary};

const SEATS: u32 = 5;
const SESSION: DurationMs = DurationMs(400);

/// Plan of visitors in a hurry, so that a test takes about a second.
pub(super) fn quick_plan() -> LoadPlan {
    LoadPlan {
        visitors: 30,
        arrive_over: Duration::from_millis(100),
        pages: 2..=3,
        think: Duration::from_millis(1)..=Duration::from_millis(10),
        impatient_percent: 0,
        leaves_after: Duration::from_millis(50)..=Duration::from_millis(100),
        buy_percent: 50,
        log_out_percent: 80,
        wander_percent: 50,
        first_poll_after: Duration::from_millis(20),
        response_timeout: Duration::from_secs(10),
        retry_pause: Duration::from_millis(1),
        requests_at_once: 20,
        seed: 42,
    }
}

async fn start_origin() -> Origin {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let options = OriginOptions {
        room: "demo".to_owned(),
        limits: Limits {
            total_active_users: SEATS,
            new_users_per_minute: 1_000,
        },
        session_duration: SESSION,
        service_time: ServiceTime {
            base: Duration::from_millis(1),
            capacity: SEATS,
        },
    };
    Origin::start(listener, options).unwrap()
}

fn target(urls: Vec<Url>) -> Target {
    Target {
        urls,
        room: "demo".to_owned(),
    }
}

/// Sends all visitors of a plan through a gateway and returns both counts.
async fn outcome(fault: Fault, plan: LoadPlan) -> (Verdict, LoadReport) {
    let origin = start_origin().await;
    let seats = usize::try_from(SEATS).unwrap();
    let gateway = FakeGateway::start(origin.address(), seats, SESSION, fault).await;
    let mut load = LoadGenerator::start(target(gateway.urls()), plan);
    load.all_left().await;
    let record = load.stop().await;
    let verdict = origin.verdict();
    origin.stop().await;
    (verdict, record)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behind_a_correct_gateway_all_are_admitted_and_the_limit_holds() {
    let (verdict, record) = outcome(Fault::None, quick_plan()).await;
    assert!(verdict.is_within_limits(), "{verdict:?}");
    assert_eq!(verdict.most_inside, 5, "{verdict:?}");
    assert_eq!((record.arrived, record.admitted), (30, 30), "{record:?}");
    assert_eq!(
        (record.finished, record.queued_with_ticket),
        (30, 0),
        "{record:?}"
    );
    assert_eq!(record.wait.unwrap().count, 30);
    assert!(record.errors.is_empty(), "{record:?}");
    assert!(verdict.revoked > 0, "{verdict:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn visitors_use_all_nodes_and_each_knows_them() {
    let origin = start_origin().await;
    let seats = usize::try_from(SEATS).unwrap();
    let gateway = FakeGateway::start(origin.address(), seats, SESSION, Fault::None).await;
    let gateway = gateway
        .with_another_listener()
        .await
        .with_another_listener()
        .await;
    let mut load = LoadGenerator::start(target(gateway.urls()), quick_plan());
    load.all_left().await;
    let record = load.stop().await;
    assert_eq!(
        (record.admitted, record.queued_with_ticket),
        (30, 0),
        "{record:?}"
    );
    let verdict = origin.verdict();
    assert!(verdict.is_within_limits(), "{verdict:?}");
    let requests = gateway.requests();
    assert_eq!(requests.len(), 3);
    assert!(requests.iter().all(|count| *count >= 10), "{requests:?}");
    assert_eq!(requests.iter().sum::<u64>(), record.requests);
    assert_eq!(gateway.visitors(), 30, "cookies of one node go to all");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_checker_notices_a_gateway_that_admits_everybody() {
    let plan = LoadPlan {
        log_out_percent: 0,
        ..quick_plan()
    };
    let (verdict, record) = outcome(Fault::AdmitsEverybody, plan).await;
    assert!(verdict.is_over_total_active_users(), "{verdict:?}");
    assert!(verdict.most_inside > 5, "{verdict:?}");
    assert_eq!(record.queued_with_ticket, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn visitors_notice_that_one_with_a_seat_is_queued() {
    let (_, record) = outcome(Fault::Forgets, quick_plan()).await;
    assert!(record.queued_with_ticket > 0, "{record:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_checker_proves_nothing_without_headers() {
    let (verdict, _) = outcome(Fault::SendsNoHeaders, quick_plan()).await;
    assert_eq!(verdict.unjudged_requests, verdict.requests);
    assert!(!verdict.is_within_limits());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_checker_notices_a_gateway_that_lets_visitors_overstay() {
    let (verdict, _) = outcome(Fault::LetsOverstay, quick_plan()).await;
    assert_eq!(verdict.late_requests, verdict.requests, "{verdict:?}");
    assert!(verdict.late_ms_max >= 2_000, "{verdict:?}");
    assert!(!verdict.is_within_limits());
}

#[tokio::test]
async fn impatient_visitors_leave_a_queue_that_does_not_move() {
    let origin = start_origin().await;
    let gateway = FakeGateway::start(origin.address(), 0, SESSION, Fault::None).await;
    let plan = LoadPlan {
        impatient_percent: 100,
        ..quick_plan()
    };
    let mut load = LoadGenerator::start(target(gateway.urls()), plan);
    load.all_left().await;
    let record = load.stop().await;
    assert_eq!((record.gave_up, record.admitted), (30, 0), "{record:?}");
    assert_eq!(origin.verdict().requests, 0);
}

#[tokio::test]
async fn stopped_visitors_are_counted_by_stage() {
    let origin = start_origin().await;
    let gateway = FakeGateway::start(origin.address(), 0, SESSION, Fault::None).await;
    let plan = LoadPlan {
        visitors: 4,
        arrive_over: Duration::ZERO,
        ..quick_plan()
    };
    let load = LoadGenerator::start(target(gateway.urls()), plan);
    gateway.polled_by(4).await;
    let record = load.stop().await;
    assert_eq!((record.arrived, record.waiting), (4, 4), "{record:?}");
}

#[tokio::test]
async fn visitors_without_a_gateway_count_errors_and_leave() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let url = Url::parse(&format!("http://{address}/")).unwrap();
    let plan = LoadPlan {
        visitors: 3,
        ..quick_plan()
    };
    let mut load = LoadGenerator::start(target(vec![url]), plan);
    load.all_left().await;
    let record = load.stop().await;
    assert_eq!((record.failed, record.requests), (3, 15), "{record:?}");
    assert_eq!(record.errors[&RequestErrorKind::Connect], 15);
}

/// Sends a request to the origin, as visitor 1 if `is_visitor`.
async fn send(origin: &Origin, method: &str, path: &str, is_visitor: bool) -> Response<Incoming> {
    let mut request = Request::builder()
        .method(method)
        .uri(format!("http://{}{path}", origin.address()));
    if is_visitor {
        let far_ahead = "99999999999999";
        request = request
            .header(VISITOR, format!("{:032x}", 1))
            .header(SEAT_ENDS, far_ahead)
            .header(ACCEPTED_AT, "1700000000000")
            .header(ROOM, "demo");
    }
    let request = request.body(Full::<Bytes>::default()).unwrap();
    let client = Client::builder(TokioExecutor::new()).build_http();
    client.request(request).await.unwrap()
}

#[tokio::test]
async fn the_origin_serves_a_visitor_and_shows_its_count() {
    let origin = start_origin().await;
    let page = send(&origin, "GET", "/item/3", true).await;
    assert_eq!(page.headers()["shop-seat-ends"], "99999999999999");
    assert_eq!(origin.verdict().inside, 1);
    assert_eq!(origin.response_times().unwrap().count, 1);

    let goodbye = send(&origin, "POST", "/logout", true).await;
    assert_eq!(goodbye.headers()["anteroom-command"], "revoke");
    assert_eq!(origin.verdict().inside, 0);

    let judgement = send(&origin, "GET", "/judge", false).await;
    let json = judgement.into_body().collect().await.unwrap().to_bytes();
    let value: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(value["requests"], 2);
    assert_eq!(value["unjudged_requests"], 0);

    let unknown = send(&origin, "GET", "/nothing", false).await;
    assert_eq!(unknown.status(), StatusCode::NOT_FOUND);
    assert_eq!(origin.verdict().unjudged_requests, 1);
    origin.stop().await;
}

#[tokio::test]
async fn the_origin_streams_events_and_closes_although_a_stream_is_open() {
    let origin = start_origin().await;
    let mut events = send(&origin, "GET", "/events", true).await.into_body();
    let first = events.frame().await.unwrap().unwrap();
    assert_eq!(
        &first.into_data().unwrap()[..],
        b"data: {\"inside\":1,\"pageMs\":1}\n\n"
    );
    origin.stop().await;
    let rest = tokio::time::timeout(Duration::from_secs(10), events.collect()).await;
    assert!(rest.expect("the stream ends with the origin").is_err());
}

fn options(run_for: Duration, is_json: bool) -> DemoOptions {
    DemoOptions {
        run_for,
        visitors: 20,
        total_active_users: SEATS,
        new_users_per_minute: 1_000,
        session_duration: Duration::from_secs(1),
        nodes: 1,
        data_centers: 1,
        json: is_json,
    }
}

async fn run_demo(
    options: &DemoOptions,
    fault: Fault,
    interrupted: impl Future<Output = ()>,
) -> (Summary, String) {
    let start_gateways = async |plan: super::GatewayPlan| {
        let seats = usize::try_from(plan.limits.total_active_users).unwrap();
        let gateway = FakeGateway::start(plan.origin, seats, plan.session_duration, fault).await;
        Ok::<_, Infallible>(gateway.into_running(plan.layout).await)
    };
    let mut out = Vec::new();
    let mut demo = Demo::start(options, start_gateways).await.unwrap();
    let progress = if options.json {
        Progress::Hidden
    } else {
        Progress::lines()
    };
    demo.show(progress, interrupted, &mut out).await.unwrap();
    let summary = demo.end().await;
    summary.print(options.json, &mut out).unwrap();
    (summary, String::from_utf8(out).unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_demo_of_a_second_prints_one_json_object_and_nothing_else() {
    let options = options(Duration::from_secs(1), true);
    let (summary, out) = run_demo(&options, Fault::None, pending()).await;
    let value: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(value["is_interrupted"], false);
    assert_eq!(value["origin"]["most_inside"], 5, "{out}");
    assert!(summary.is_good(), "{out}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_demo_that_exceeds_a_limit_says_so_and_is_not_good() {
    let options = options(Duration::from_secs(1), false);
    let (summary, out) = run_demo(&options, Fault::AdmitsEverybody, pending()).await;
    assert!(!summary.is_good());
    assert!(out.contains("in a browser"), "{out}");
    assert!(out.contains("EXCEEDED"), "{out}");
    assert!(out.ends_with("A limit was exceeded.\n"), "{out}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_demo_with_several_nodes_names_one_of_each_data_center() {
    let options = DemoOptions {
        nodes: 2,
        data_centers: 2,
        ..options(Duration::from_secs(1), false)
    };
    let (summary, out) = run_demo(&options, Fault::None, pending()).await;
    assert!(summary.is_good(), "{out}");
    let shared = "4 nodes in 2 data centers share these limits; 25 % of the visitors go to another \
                  node with each request.\n";
    assert!(out.contains(shared), "{out}");
    assert!(out.contains("has a seat in each of them"), "{out}");
    let line = out.lines().find(|line| line.contains("in a browser"));
    assert_eq!(line.unwrap().matches("http://").count(), 2, "{out}");
    assert!(out.contains(" on 4 nodes in 2 data centers:\n"), "{out}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_demo_that_is_interrupted_ends_at_once_with_its_summary() {
    let options = options(Duration::from_secs(3_600), false);
    let (summary, out) = run_demo(&options, Fault::None, std::future::ready(())).await;
    assert!(summary.is_interrupted);
    assert!(out.contains("ended early"), "{out}");
}

#[tokio::test]
async fn a_gateway_that_does_not_start_ends_the_demo_with_its_reason() {
    let options = options(Duration::from_secs(1), true);
    let start_gateways = async |_| Err::<super::RunningGateways, _>("the port is taken");
    let outcome = Demo::start(&options, start_gateways).await;
    let error = outcome.err().expect("there is no gateway");
    assert_eq!(error.to_string(), "cannot start the gateway");
    let source = std::error::Error::source(&error).expect("the reason is kept");
    assert_eq!(source.to_string(), "the port is taken");
}
