//! Test of connections per thread.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{join, join_all};

use crate::origin::frames::Frames;
use crate::origin::retries::{ALWAYS, origin_with};
use crate::origin::support::{get, in_time};

#[tokio::test]
async fn each_thread_has_its_own_connections_which_end_unused() {
    let (listener, group) = origin_with(ALWAYS, Duration::from_millis(500)).await;
    // The response stays unread, so that the connection stays open.
    let serve = async {
        let mut frames = Frames::accept(&listener).await;
        let stream = frames.request().await;
        frames.respond(stream).await;
        frames
    };
    let (first, mut frames) = join(get(&group), serve).await;
    let other = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let on_other_thread = || {
        let group = Arc::clone(&group);
        let requests = other.spawn(async move { join_all([get(&group), get(&group)]).await });
        async { requests.await.unwrap() }
    };
    let serve = async {
        let mut next = tokio::select! {
            next = Frames::accept(&listener) => next,
            _ = frames.request() => panic!("the request used another thread's connection"),
        };
        for _ in 0..2 {
            let stream = next.request().await;
            next.respond(stream).await;
        }
        next
    };
    let (responses, mut next) = in_time("requests arrive", join(on_other_thread(), serve)).await;
    assert!(responses.iter().all(Result::is_ok));
    // From now on each thread uses its own connection.
    let serve = async {
        let stream = frames.request().await;
        frames.respond(stream).await;
        for _ in 0..2 {
            let stream = next.request().await;
            next.respond(stream).await;
        }
    };
    let requests = join(join(get(&group), on_other_thread()), serve);
    let ((here, there), ()) = in_time("requests arrive again", requests).await;
    assert!(here.is_ok() && there.iter().all(Result::is_ok));
    // All responses are dropped and the other thread sends nothing, so both connections end.
    drop((first, responses, here, there));
    in_time("both are closed", join(frames.ends(), next.ends())).await;
    other.shutdown_background();
}
