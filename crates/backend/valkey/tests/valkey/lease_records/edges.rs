//! Cases that random sequences rarely reach: states ahead of the clock, and grants that the script
//! leaves to the node.

use anteroom_limit::algorithm::Algorithm as _;
use anteroom_limit::cost::Cost;
use anteroom_limit::fixed_window::FixedWindow;
use anteroom_limit::gcra::Gcra;
use anteroom_limit::leases::epoch::Before;
use anteroom_limit::leases::message::{Request, RequestId};
use anteroom_limit::leases::record::Record;
use anteroom_limit::leases::widened::LeasedLimit;
use anteroom_limit::policy::Policy;
use anteroom_limit::rate::Rate;
use anteroom_limit::sliding_log::SlidingLog;
use anteroom_limit::sliding_window::SlidingWindow;
use anteroom_limit::sub_windows::SubWindows;
use anteroom_limit::time::{DurationUs, TimestampUs};
use anteroom_limit::token_bucket::TokenBucket;
use anteroom_limit_store::lease_store::step::{Step, Stepped};
use anteroom_limit_store::lease_store::{LeaseRecords as _, Swapped, Token, Write, record};

use super::drive::{Arena, Client, EPOCH, PARTITION, START};

/// Lease request for one request.
const ONE: Request = Request {
    id: RequestId {
        incarnation: 1,
        number: 1,
    },
    least: 1,
    waiting: 1,
    most: 1,
};

fn one<'s>(client: &'s Client<'_>) -> Step<'s> {
    Step {
        epoch: &client.epoch,
        epoch_token: EPOCH,
        token: Token(8),
        leased_limit: &client.leased_limit,
        request: &ONE,
    }
}

/// Grants under longer leases may count as later than now for a limit with shorter ones.
#[tokio::test]
async fn grants_that_count_as_later_than_now_count() {
    let arena = Arena::start().await;
    let rate = Rate::new(20, DurationUs::from_secs(60)).unwrap();
    let policies = [
        Policy::SlidingLog(SlidingLog::new(rate).unwrap()),
        Policy::FixedWindow(FixedWindow::new(rate)),
        Policy::SlidingWindow(SlidingWindow::new(rate)),
        Policy::SubWindows(SubWindows::new(rate, 4).unwrap()),
        Policy::SubWindows(SubWindows::strict(rate, 4).unwrap()),
        Policy::TokenBucket(TokenBucket::new(rate, 20, 20).unwrap()),
        Policy::Gcra(Gcra::new(rate, 20).unwrap()),
    ];
    for policy in policies {
        let leased_limit = LeasedLimit::new(policy).unwrap();
        let mut client = arena.client(leased_limit, Before::Nothing).await;
        let mut record = Record::unknown_client(&leased_limit, &client.epoch);
        // One microsecond before the start of a counter that already has a count.
        let width = leased_limit.widened().counters();
        let width = width.map_or(1, |counters| counters.width().0);
        client.now = TimestampUs((START / width + 3) * width - 1);
        let later = client.now + DurationUs(1);
        leased_limit
            .widened()
            .step(&mut record.state, later, Cost::take(3));
        arena.time.set(client.now);
        let write = Write {
            expected: client.load().await.expected(),
            token: Token(99),
            value: &record::encode(&record),
        };
        let kept = DurationUs::from_secs(600);
        let swapped = arena
            .store
            .swap(PARTITION, client.name(), write, kept)
            .await;
        assert_eq!(swapped.unwrap(), Swapped::Written);
        for (wants, after) in [(2, 0), (1, 0), (1, 1), (2, 5_000_000), (900, 80_000_000)] {
            client.now = client.now + DurationUs(after);
            client.request(1, wants, wants).await;
        }
        assert_eq!(client.grants, 5, "{policy:?}");
    }
}

#[tokio::test]
async fn a_burst_that_scripts_cannot_count_is_left_to_the_node() {
    let arena = Arena::start().await;
    let year = DurationUs::from_secs(366 * 86_400);
    let gcra = |burst| Policy::Gcra(Gcra::new(Rate::new(1, year).unwrap(), burst).unwrap());
    for (burst, can) in [(140, true), (150, false)] {
        let leased_limit = LeasedLimit::new(gcra(burst)).unwrap();
        let client = arena.client(leased_limit, Before::Nothing).await;
        let stepped = arena.store.step(PARTITION, client.name(), one(&client));
        assert_eq!(stepped.is_some(), can, "{burst}");
    }
}

/// The script would read the whole log while all other clients wait.
#[tokio::test]
async fn a_long_log_is_left_to_the_node() {
    let arena = Arena::start().await;
    let rate = Rate::new(10_000, DurationUs::from_secs(60)).unwrap();
    let log = Policy::SlidingLog(SlidingLog::new(rate).unwrap());
    let leased_limit = LeasedLimit::new(log).unwrap();
    let mut client = arena.client(leased_limit, Before::Nothing).await;
    let mut longest = 0;
    for _ in 0..900 {
        client.now = client.now + DurationUs(10_000);
        client.arena.time.set(client.now);
        let found = client.load().await;
        longest = found.client.as_ref().map_or(0, |kept| kept.value.len());
        if longest > 4_500 {
            break;
        }
        client.requests += 1;
        client.grant_by_swap(&ONE, &found).await;
    }
    assert!(longest > 4_500, "{longest}");
    let stepped = arena
        .store
        .step(PARTITION, client.name(), one(&client))
        .unwrap();
    assert!(matches!(stepped.await.unwrap(), Stepped::NotTaken(_)));
}
