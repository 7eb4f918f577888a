//! Golden bytes, and records that come back as they were.

use anteroom_limits::algorithm::Algorithm as _;
use anteroom_limits::cost::Cost;
use anteroom_limits::fixed_window::FixedWindow;
use anteroom_limits::gcra::Gcra;
use anteroom_limits::lending::epoch::{Before, EpochId, StoreIdentity};
use anteroom_limits::lending::widened::Lending;
use anteroom_limits::policy::{Policy, State};
use anteroom_limits::rate::Rate;
use anteroom_limits::sliding_log::SlidingLog;
use anteroom_limits::sliding_window::SlidingWindow;
use anteroom_limits::sub_windows::SubWindows;
use anteroom_limits::sub_windows_strict::SubWindowsStrict;
use anteroom_limits::time::{MicroSpan, Micros};
use anteroom_limits::token_bucket::TokenBucket;
use proptest::prelude::*;

use super::*;

fn policies(calls: u32, secs: u64, burst: u32, parts: u32) -> [Policy; 7] {
    let rate = Rate::new(calls, MicroSpan::from_secs(secs)).unwrap();
    [
        Policy::SlidingLog(SlidingLog::new(rate).unwrap()),
        Policy::FixedWindow(FixedWindow::new(rate)),
        Policy::SlidingWindow(SlidingWindow::new(rate)),
        Policy::SubWindows(SubWindows::new(rate, parts).unwrap()),
        Policy::SubWindowsStrict(SubWindowsStrict::new(rate, parts).unwrap()),
        Policy::TokenBucket(TokenBucket::new(rate, burst, burst + 1).unwrap()),
        Policy::Gcra(Gcra::new(rate, burst).unwrap()),
    ]
}

/// A record after these steps of the widened limit.
fn record(policy: Policy, steps: &[(u64, u32)]) -> Record {
    let lent_by = Lending::new(policy).unwrap();
    let (mut state, mut now) = (State::New, Micros(1_000_000));
    for (after, calls) in steps {
        now = now + MicroSpan(*after);
        lent_by.widened().step(&mut state, now, Cost::take(*calls));
    }
    Record {
        epoch: EpochId {
            number: 3,
            random: 0x0102_0304,
        },
        as_of: now,
        nothing_until: Micros(5),
        lent_by,
        state,
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What was written once is read for ever, or the version is another one.
#[test]
fn the_bytes_are_these() {
    let steps = [(7, 2), (300, 1)];
    let golden = [
        "010384868808f3863d05c08db7010a808ece1c000102c7843d02ac0201",
        "010384868808f3863d05c08db7010a808ece1c01020003",
        "010384868808f3863d05c08db7010a808ece1c0203000300",
        "010384868808f3863d05c08db7010a808ece1c03040400050300000000",
        "010384868808f3863d05c08db7010a808ece1c04040400050300000000",
        "010384868808f3863d05c08db7010a808ece1c05080905f3863db8170501",
        "010384868808f3863d05c08db7010a808ece1c060806c7d5870900",
    ];
    for (policy, golden) in policies(10, 60, 8, 4).into_iter().zip(golden) {
        let record = record(policy, &steps);
        let bytes = encode(&record);
        assert_eq!(hex(&bytes), golden, "{policy:?}");
        assert_eq!(decode(&bytes), Ok(record));
    }
    let epochs = [
        (
            Before::Unknown,
            "0107ffffffffffffffffff01ac02808081b184e9910300",
        ),
        (
            Before::Lost,
            "0107ffffffffffffffffff01ac02808081b184e9910301",
        ),
        (
            Before::Nothing,
            "0107ffffffffffffffffff01ac02808081b184e9910302",
        ),
    ];
    for (before, golden) in epochs {
        let epoch = Epoch {
            id: EpochId {
                number: 7,
                random: u64::MAX,
            },
            identity: StoreIdentity(300),
            began_at: Micros(1_767_225_600_000_000),
            before,
        };
        let bytes = encode_epoch(&epoch);
        assert_eq!(hex(&bytes), golden);
        assert_eq!(decode_epoch(&bytes), Ok(epoch));
    }
}

#[test]
fn what_is_cut_off_or_too_long_or_of_another_version_is_no_record() {
    for policy in policies(10, 60, 8, 4) {
        let bytes = encode(&record(policy, &[(1, 1), (2, 2)]));
        for length in 1..bytes.len() {
            assert_eq!(decode(&bytes[..length]), Err(RecordError::Damaged));
        }
        let long = [&bytes[..], &[0]].concat();
        assert_eq!(decode(&long), Err(RecordError::Damaged));
        for found in [0, 2, 255] {
            let other = [&[found], &bytes[1..]].concat();
            let error = RecordError::Version { found, known: 1 };
            assert_eq!(decode(&other), Err(error));
        }
    }
    let error = RecordError::Version { found: 0, known: 1 };
    assert_eq!(decode(&[]), Err(error));
    assert_eq!(decode_epoch(&[]), Err(error));
}

proptest! {
    #[test]
    fn records_come_back_as_they_were(
        which in 0_usize..7,
        calls in 0_u32..100_000,
        secs in 60_u64..86_400,
        burst in 10_000_u32..1_000_000,
        parts in prop::sample::select(vec![1_u32, 2, 4, 60]),
        steps in prop::collection::vec((0_u64..100_000_000, 0_u32..1_000), 0..40),
    ) {
        let secs = secs / 60 * 60;
        let policy = policies(calls, secs, burst, parts)[which];
        prop_assume!(Lending::new(policy).is_ok());
        let record = record(policy, &steps);
        prop_assert_eq!(decode(&encode(&record)), Ok(record));
    }

    #[test]
    fn any_bytes_are_a_record_or_none(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        crate::fuzz::records(&bytes);
        let ours = [&[1], &bytes[..]].concat();
        crate::fuzz::records(&ours);
    }
}
