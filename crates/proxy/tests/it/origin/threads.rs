//! Which thread's connection takes a request.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{join, join_all};

use crate::origin::again::{ALWAYS, origin_with};
use crate::origin::frames::Frames;
use crate::origin::support::{ask, in_time};

#[tokio::test]
async fn each_thread_has_its_own_connections_which_end_unused() {
    let (listener, group) = origin_with(ALWAYS, Duration::from_millis(500)).await;
    // Kept unread, so that the connection does not end before its time.
    let serve = async {
        let mut frames = Frames::accept(&listener).await;
        let stream = frames.request().await;
        frames.answer(stream).await;
        frames
    };
    let (first, mut frames) = join(ask(&group), serve).await;
    let other = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let elsewhere = || {
        let group = Arc::clone(&group);
        let asked = other.spawn(async move { join_all([ask(&group), ask(&group)]).await });
        async { asked.await.unwrap() }
    };
    let serve = async {
        let mut next = tokio::select! {
            next = Frames::accept(&listener) => next,
            _ = frames.request() => panic!("it came by another thread's connection"),
        };
        for _ in 0..2 {
            let stream = next.request().await;
            next.answer(stream).await;
        }
        next
    };
    let (answers, mut next) = in_time("they come", join(elsewhere(), serve)).await;
    assert!(answers.iter().all(Result::is_ok));
    // From now on each goes by its own.
    let serve = async {
        let stream = frames.request().await;
        frames.answer(stream).await;
        for _ in 0..2 {
            let stream = next.request().await;
            next.answer(stream).await;
        }
    };
    let asked = join(join(ask(&group), elsewhere()), serve);
    let ((here, there), ()) = in_time("they come again", asked).await;
    assert!(here.is_ok() && there.iter().all(Result::is_ok));
    // Nobody reads an answer any more, nobody asks on the other thread, and its connection ends,
    // too.
    drop((first, answers, here, there));
    in_time("both are closed", join(frames.ends(), next.ends())).await;
    other.shutdown_background();
}
