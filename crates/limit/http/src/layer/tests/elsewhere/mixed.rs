//! Limits of one store that were told different things for when it is away.

use super::*;

use OnLimitStoreFailure::{Bounded, Closed, Local, Open};

/// Two limits of one store, the first with ten calls and the second with three.
fn two(far: &Arc<Far>, words: [OnLimitStoreFailure; 2]) -> Site {
    let [first, second] = words;
    Site::behind(vec![
        on_failure(far_limit("first", a_minute(10), far), first),
        on_failure(far_limit("second", a_minute(3), far), second),
    ])
}

/// What became of five calls while the store is away and has lent nothing of these limits: how many
/// went through, and what each limit noted.
async fn while_away(
    words: [OnLimitStoreFailure; 2],
    spent: &[&'static str],
) -> (usize, [Vec<(&'static str, u64)>; 2]) {
    let far = Arc::new(Far::default());
    far.is_away.store(true, Relaxed);
    far.lends.store(true, Relaxed);
    *far.spent.lock() = spent.to_vec();
    let site = two(&far, words);
    let went = site.went(5, "/", "192.0.2.7").await;
    (went, [site.events("first"), site.events("second")])
}

#[tokio::test(start_paused = true)]
async fn each_limit_follows_its_own_setting_for_unavailable_stores() {
    let check =
        async |words, spent: &[&'static str], expected: usize, events: [&[(&str, u64)]; 2]| {
            let (went, noted) = while_away(words, spent).await;
            assert_eq!(went, expected, "{words:?} {spent:?}");
            assert_eq!(noted, events, "{words:?} {spent:?}");
        };
    let both = ["first", "second"];
    // Nothing is left of the first, which lets all through; the second goes on from what was lent.
    check(
        [Open, Bounded],
        &["first"],
        3,
        [&[("uncounted", 3)], &[("admit", 3), ("reject", 2)]],
    )
    .await;
    check(
        [Local, Bounded],
        &["first"],
        3,
        [&[("admit", 3)], &[("admit", 3), ("reject", 2)]],
    )
    .await;
    // The second lets nothing through without the store, whatever the first would.
    check([Open, Bounded], &both, 0, [&[], &[("unavailable", 5)]]).await;
    check(
        [Bounded, Open],
        &["second"],
        5,
        [&[("admit", 5)], &[("uncounted", 5)]],
    )
    .await;
    check(
        [Open, Local],
        &both,
        3,
        [&[("uncounted", 3)], &[("admit", 3), ("reject", 2)]],
    )
    .await;
    check(
        [Open, Open],
        &both,
        5,
        [&[("uncounted", 5)], &[("uncounted", 5)]],
    )
    .await;
    // Closed is closed even to what was lent, and it is that limit which says so.
    check([Bounded, Closed], &[], 0, [&[], &[("unavailable", 5)]]).await;
    check([Open, Closed], &["first"], 0, [&[], &[("unavailable", 5)]]).await;
}

#[tokio::test(start_paused = true)]
async fn what_went_on_alone_is_given_back_if_another_refuses() {
    let far = Arc::new(Far::default());
    far.is_away.store(true, Relaxed);
    far.lends.store(true, Relaxed);
    *far.spent.lock() = vec!["second"];
    let limits = vec![
        far_limit("first", a_minute(10), &far),
        far_limit("second", a_minute(3), &far),
    ];
    let site = Site::behind(limits);
    assert_eq!(site.get().await, 503);
    assert_eq!(far.left(&far_limit("first", a_minute(10), &far)), 10);
    let failures = site.meter.stats().into_iter();
    let failures: Vec<u64> = failures.map(|limit| limit.store_failures).collect();
    assert_eq!(failures, [0, 1], "the first could be counted");
}

/// Whether it was charged nobody knows: asking again could charge it twice, and would take as long
/// again.
#[tokio::test(start_paused = true)]
async fn a_call_whose_answer_did_not_come_is_not_asked_for_again() {
    let far = Arc::new(Far::default());
    far.is_late.store(true, Relaxed);
    let site = two(&far, [Open, Local]);
    assert_eq!(site.get().await, 200);
    assert_eq!(far.asked.load(Relaxed), 1);
    assert_eq!(site.events("first"), [("uncounted", 1)]);
    assert_eq!(site.events("second"), [("admit", 1)]);
    let site = two(&far, [Open, Bounded]);
    assert_eq!(site.get().await, 503);
}
