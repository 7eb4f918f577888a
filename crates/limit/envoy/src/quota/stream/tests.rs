//! Lifetime of a stream.

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::iter;
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use prost::Message as _;
use tokio::sync::watch;
use tokio::time::sleep;

use super::*;
use crate::request_handler::tests::handler;

const FILE: &str = "{domain: d, descriptors: [{key: k}]}";

/// Returns how many seconds a stream lasts with reports at these seconds, and nothing more.
async fn lasts(reports: &[u64]) -> u64 {
    let handler = Arc::new(handler(FILE, false));
    let (_stop, stopped) = watch::channel(false);
    let (quotas, actor) = Quotas::start(&handler, stopped);
    let report = RateLimitQuotaUsageReports {
        domain: "d".to_owned(),
        ..RateLimitQuotaUsageReports::default()
    };
    let report = report.encode_to_vec();
    let length = u32::try_from(report.len()).unwrap().to_be_bytes();
    let frame = Bytes::from([&[0], &length[..], &report].concat());
    let began = Instant::now();
    let sent = iter(reports.to_vec()).then(move |second| {
        let frame = frame.clone();
        async move {
            sleep_until(began + Duration::from_secs(second)).await; // tidy: paused time
            Ok::<_, Status>(Frame::data(frame))
        }
    });
    let body = StreamBody::new(Box::pin(sent.chain(futures_util::stream::pending())));
    let request = http::Request::builder()
        .header("content-type", "application/grpc")
        .body(body)
        .unwrap();
    let response = quotas.serve(request).await;
    let collected = response.into_body().collect().await.unwrap();
    let code = collected.trailers().unwrap()["grpc-status"].clone();
    assert_eq!(code, "0", "the stream ends without an error");
    while handler.counters.quota.read().streams > 0 {
        sleep(Duration::from_millis(1)).await; // tidy: paused time
    }
    actor.abort();
    began.elapsed().as_secs()
}

// tidy: paused time
#[tokio::test(start_paused = true)]
async fn a_stream_without_a_report_for_ten_minutes_ends() {
    let minutes = async |reports: &[u64]| lasts(reports).await / 60;
    assert_eq!(minutes(&[]).await, 10);
    assert_eq!(minutes(&[0, 599, 1_170]).await, 29);
}
