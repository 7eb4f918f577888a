//! One part in 2^76 over the limit, or short of a token: a double cannot represent it, but the
//! scripts must decide correctly.
//!
//! Random tests do not find such numbers, so they are constructed: for coprime numbers there is a
//! multiple of one that is next to a multiple of the other.

use anteroom_limit::cost::Cost;
use anteroom_limit::gcra::Gcra;
use anteroom_limit::policy::Policy;
use anteroom_limit::rate::{Rate, WINDOW_LONGEST};
use anteroom_limit::sliding_window::SlidingWindow;
use anteroom_limit::time::{DurationUs, TimestampUs};
use anteroom_limit::token_bucket::TokenBucket;
use anteroom_limit::verdict::{Outcome, Verdict};

use super::drive::Arena;

/// Prime that is coprime to all windows.
const PRIME: u32 = 2_147_483_647;
const WINDOW: u64 = WINDOW_LONGEST.0;

/// Returns the modular inverse of `number`.
fn inverse(number: u64, modulus: u64) -> u64 {
    let (mut rest, mut next_rest) = (i128::from(modulus), i128::from(number));
    let (mut found, mut next) = (0_i128, 1_i128);
    while next_rest != 0 {
        let times = rest / next_rest;
        (rest, next_rest) = (next_rest, rest - times * next_rest);
        (found, next) = (next, found - times * next);
    }
    assert_eq!(rest, 1, "they have a common divisor");
    u64::try_from(found.rem_euclid(i128::from(modulus))).unwrap()
}

fn rate(requests: u32) -> Rate {
    Rate::new(requests, DurationUs(WINDOW)).unwrap()
}

fn small(number: u64) -> u32 {
    u32::try_from(number).unwrap()
}

fn check_rejected_for_a_microsecond(verdict: Verdict) {
    let retry_after = Some(DurationUs(1));
    assert_eq!(verdict.outcome, Outcome::Reject { retry_after });
}

#[tokio::test]
async fn a_sliding_window_with_one_part_too_many_is_full() {
    let arena = Arena::start().await;
    // `left` requests would fit but for one part.
    let still = inverse(u64::from(PRIME), WINDOW);
    let left = (u128::from(PRIME) * u128::from(still) - 1) / u128::from(WINDOW);
    let left = u32::try_from(left).unwrap();
    let policy = |requests| Policy::SlidingWindow(SlidingWindow::new(rate(requests)));
    let begins = WINDOW * 56;
    let mut client = arena.client(policy(PRIME), TimestampUs(begins));
    client.step(Cost::take(PRIME)).await;
    client.now = TimestampUs(begins + 2 * WINDOW - still);
    client.policy = policy(left + 1);
    check_rejected_for_a_microsecond(client.step(Cost::ONE).await);
    client.now = client.now + DurationUs(1);
    assert!(client.step(Cost::ONE).await.is_allowed());
}

#[tokio::test]
async fn a_burst_one_part_too_far_ahead_is_rejected() {
    let arena = Arena::start().await;
    let ahead = inverse(WINDOW % u64::from(PRIME), u64::from(PRIME));
    let elapsed = (u128::from(ahead) * u128::from(WINDOW) - 1) / u128::from(PRIME);
    let elapsed = u64::try_from(elapsed).unwrap();
    let gcra = |burst| Policy::Gcra(Gcra::new(rate(PRIME), burst).unwrap());
    let burst = PRIME;
    let taken = burst + small(ahead);
    let begins = TimestampUs(WINDOW * 56);
    let mut client = arena.client(gcra(taken), begins);
    assert!(client.step(Cost::take(taken)).await.is_allowed());
    client.now = begins + DurationUs(elapsed);
    client.policy = gcra(burst + 1);
    check_rejected_for_a_microsecond(client.step(Cost::ONE).await);
    client.now = client.now + DurationUs(1);
    assert!(client.step(Cost::ONE).await.is_allowed());
}

#[tokio::test]
async fn a_token_that_lacks_one_part_is_not_usable() {
    let arena = Arena::start().await;
    let elapsed = WINDOW - inverse(u64::from(PRIME), WINDOW);
    let tokens = (u128::from(elapsed) * u128::from(PRIME)).div_ceil(u128::from(WINDOW));
    let tokens = u32::try_from(tokens).unwrap();
    let begins = TimestampUs(WINDOW * 56);
    let bucket = TokenBucket::new(rate(PRIME), PRIME, PRIME).unwrap();
    let mut client = arena.client(Policy::TokenBucket(bucket), begins);
    assert!(client.step(Cost::take(PRIME)).await.is_allowed());
    client.now = begins + DurationUs(elapsed);
    check_rejected_for_a_microsecond(client.step(Cost::take(tokens)).await);
    client.step(Cost::take(tokens - 1)).await;
    client.now = client.now + DurationUs(1);
    assert!(client.step(Cost::ONE).await.is_allowed());
}
