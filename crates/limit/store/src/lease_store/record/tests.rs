//! Golden bytes, and round trips.

use anteroom_limit::algorithm::Algorithm as _;
use anteroom_limit::cost::Cost;
use anteroom_limit::fixed_window::FixedWindow;
use anteroom_limit::gcra::Gcra;
use anteroom_limit::leases::epoch::EpochId;
use anteroom_limit::leases::widened::LeasedLimit;
use anteroom_limit::policy::{Policy, State};
use anteroom_limit::rate::Rate;
use anteroom_limit::sliding_log::SlidingLog;
use anteroom_limit::sliding_window::SlidingWindow;
use anteroom_limit::sub_windows::SubWindows;
use anteroom_limit::time::{DurationUs, TimestampUs};
use anteroom_limit::token_bucket::TokenBucket;
use proptest::prelude::*;

use super::*;

fn policies(requests: u32, secs: u64, burst: u32, parts: u32) -> [Policy; 7] {
    let rate = Rate::new(requests, DurationUs::from_secs(secs)).unwrap();
    [
        Policy::SlidingLog(SlidingLog::new(rate).unwrap()),
        Policy::FixedWindow(FixedWindow::new(rate)),
        Policy::SlidingWindow(SlidingWindow::new(rate)),
        Policy::SubWindows(SubWindows::new(rate, parts).unwrap()),
        Policy::SubWindows(SubWindows::strict(rate, parts).unwrap()),
        Policy::TokenBucket(TokenBucket::new(rate, burst, burst + 1).unwrap()),
        Policy::Gcra(Gcra::new(rate, burst).unwrap()),
    ]
}

/// Returns a record after these steps of the widened limit.
fn record(policy: Policy, steps: &[(u64, u32)]) -> Record {
    let lent_by = LeasedLimit::new(policy).unwrap();
    let (mut state, mut now) = (State::New, TimestampUs(1_000_000));
    for (after, requests) in steps {
        now = now + DurationUs(*after);
        lent_by
            .widened()
            .step(&mut state, now, Cost::take(*requests));
    }
    Record {
        epoch: EpochId {
            number: 3,
            random: 0x0102_0304,
        },
        as_of: now,
        nothing_until: TimestampUs(5),
        lent_by,
        state,
    }
}

/// Encoding is stable; a change needs a new version.
#[test]
fn the_encoding_is_stable() {
    let steps = [(7, 2), (300, 1)];
    let golden = [
        "\u{2}3 16909060 3000000 10 60000000 e;1000307 5;d 1000007 2 300 1;",
        "\u{2}3 16909060 3000000 10 60000000 f;1000307 5;f 1 0 3;",
        "\u{2}3 16909060 3000000 10 60000000 s;1000307 5;s 2 0 3;",
        "\u{2}3 16909060 3000000 10 60000000 w 4;1000307 5;w 5 0 3;",
        "\u{2}3 16909060 3000000 10 60000000 x 4;1000307 5;w 5 0 3;",
        "\u{2}3 16909060 3000000 10 60000000 t 8 9;1000307 5;t 1000307 3000 5;",
        "\u{2}3 16909060 3000000 10 60000000 g 8;1000307 5;g 19000007 0;",
    ];
    for (policy, golden) in policies(10, 60, 8, 4).into_iter().zip(golden) {
        let record = record(policy, &steps);
        let bytes = encode(&record);
        let text = String::from_utf8(bytes.clone()).unwrap();
        assert_eq!(text, golden, "{policy:?}");
        assert!(golden.starts_with(&head(record.epoch, &record.lent_by)));
        assert_eq!(decode(&bytes), Ok(record));
    }
}

#[test]
fn a_truncated_long_or_foreign_record_is_none() {
    for policy in policies(10, 60, 8, 4) {
        let bytes = encode(&record(policy, &[(1, 1), (2, 2)]));
        for length in 1..bytes.len() {
            assert_eq!(decode(&bytes[..length]), Err(RecordError::Damaged));
        }
        for more in [&b"\0"[..], b";", b" "] {
            let long = [&bytes[..], more].concat();
            assert_eq!(decode(&long), Err(RecordError::Damaged));
        }
        for found in [0, 1, 255] {
            let other = [&[found], &bytes[1..]].concat();
            let error = RecordError::Version { found, known: 2 };
            assert_eq!(decode(&other), Err(error));
        }
    }
    let error = RecordError::Version { found: 0, known: 2 };
    assert_eq!(decode(&[]), Err(error));
}

proptest! {
    #[test]
    fn records_survive_a_round_trip(
        which in 0_usize..7,
        requests in 0_u32..100_000,
        secs in 60_u64..86_400,
        burst in 10_000_u32..1_000_000,
        parts in prop::sample::select(vec![1_u32, 2, 4, 60]),
        steps in prop::collection::vec((0_u64..100_000_000, 0_u32..1_000), 0..40),
    ) {
        let secs = secs / 60 * 60;
        let policy = policies(requests, secs, burst, parts)[which];
        prop_assume!(LeasedLimit::new(policy).is_ok());
        let record = record(policy, &steps);
        prop_assert_eq!(decode(&encode(&record)), Ok(record));
    }
}

#[test]
fn an_invalid_limit_is_no_record() {
    let record = |head: &str| decode(format!("\u{2}1 1 {head};5 5;;").as_bytes());
    assert!(record("3000000 10 60000000 g 8").is_ok());
    for head in [
        "3000000 10 60000000 g 0",
        "3000000 10 60000000 g",
        "3000000 10 60000000 g 8 8",
        "3000000 10 60000000 l 8",
        "3000000 10 60000000 x 7",
        "3000000 10 60000000 e ",
        "3000000 4294967296 60000000 f",
        "3000000 10 +60000000 f",
        "3000000 10 600 f",
        "6000000 10 60000000 f",
        "3000000 10 60000000",
    ] {
        assert_eq!(record(head), Err(RecordError::Damaged), "{head}");
    }
}

#[test]
fn a_state_that_cannot_be_leased_is_no_record() {
    let record =
        |state: &str| decode(format!("\u{2}1 1 3000000 10 60000000 g 8;5 5;{state};").as_bytes());
    assert!(record("g 1 0").is_ok());
    assert_eq!(record("l 1 0"), Err(RecordError::Damaged));
}
