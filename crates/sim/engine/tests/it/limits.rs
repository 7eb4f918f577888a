//! Any sequence of visits, returns, logouts, lost replies, crashes and pauses keeps the limits:
//! active visitors, admissions in a minute, and counts that are never too low.
//!
//! The naive model remembers every visitor; the room and its ledger do not.

mod model;

use anteroom_room::rules::{QueueingMethod, SeatNeedsCookie};
use anteroom_room::time::DurationMs;
use model::{Model, Setup, Step};
use proptest::prelude::*;

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => Just(Step::NewVisitor),
        4 => (0usize..64).prop_map(Step::WaitingPolls),
        2 => (0usize..64).prop_map(Step::WaitingTicketReplayed),
        6 => (0usize..64, any::<bool>()).prop_map(|(who, page)| Step::ActiveReturns(who, page)),
        2 => (0usize..64).prop_map(Step::OldTicketReturns),
        1 => (0usize..64).prop_map(Step::Logout),
        1 => (0usize..64).prop_map(Step::LogoutReplayed),
        6 => (1u64..3_000).prop_map(|ms| Step::TimePasses(DurationMs(ms))),
        1 => (5_000u64..90_000).prop_map(|ms| Step::TimePasses(DurationMs(ms))),
        8 => Just(Step::Sync),
        1 => Just(Step::SyncReplyLost),
        1 => Just(Step::SyncRequestLost),
        1 => Just(Step::Crash),
        1 => Just(Step::Goodbye),
        1 => (1u32..12, 1u32..40).prop_map(|(total, rate)| Step::Limits(total, rate)),
        1 => (1u64..60).prop_map(|secs| Step::SessionDuration(DurationMs::from_secs(secs))),
    ]
}

fn setup() -> impl Strategy<Value = Setup> {
    (
        1u32..12,
        1u32..40,
        prop_oneof![Just(1u64), Just(10), Just(90), Just(300)],
        any::<bool>(),
        prop_oneof![Just(QueueingMethod::Fifo), Just(QueueingMethod::Random)],
        prop_oneof![
            Just(SeatNeedsCookie::Never),
            Just(SeatNeedsCookie::NearLimit),
            Just(SeatNeedsCookie::Always)
        ],
    )
        .prop_map(|(total, rate, secs, renewal, method, cookie)| Setup {
            total,
            rate,
            session: DurationMs::from_secs(secs),
            renewal,
            method,
            cookie,
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn limits_hold_and_counts_are_never_too_low(
        setup in setup(),
        steps in prop::collection::vec(step(), 1..160),
    ) {
        let mut model = Model::new(setup);
        for step in steps {
            model.perform(step);
            if let Err(broken) = model.check() {
                return Err(TestCaseError::fail(broken));
            }
        }
    }
}
