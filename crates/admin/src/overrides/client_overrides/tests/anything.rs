//! Property tests: arbitrary commands and records.

use anteroom_config::RateText;
use proptest::prelude::*;
use serde_json::Value;

use super::*;

/// Generates any JSON value.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
        (0_u32..2_000).prop_map(|calls| Value::from(RateText::to_string(
            &format!("{calls}/5m").parse().unwrap()
        ))),
    ];
    leaf.prop_recursive(2, 8, 4, |inner| {
        prop::collection::vec(inner, 0..4).prop_map(Value::from)
    })
}

proptest! {
    /// The store may contain any bytes.
    #[test]
    fn any_record_is_read_or_damaged(
        limit in "(api|login|[a-z]{0,9})",
        client in any_json(),
        values in any_json(),
        bytes in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let _ = LimitOverrides::decode(&bytes);
        let entry = json!({ "limit": limit, "client": client, "values": { "limit": values } });
        let record = json!({ "form": 1, "version": 1, "overrides": [entry] }).to_string();
        if let Ok(record) = LimitOverrides::decode(record.as_bytes()) {
            let file = file(&[API, LOGIN]);
            for problem in record.applied_to(&file, ALL_FIT).misfits {
                prop_assert!(!problem.to_string().contains(['\n', '\r']));
            }
            let shown = ShownLimits::of(&record, &file, ALL_FIT, None);
            prop_assert!(serde_json::to_string(&shown).is_ok());
        }
    }

    /// Any command is accepted and applies, or is rejected with one problem per line.
    #[test]
    fn any_command_applies_or_is_rejected(
        typed in prop::collection::btree_map(
            prop_oneof![
                Just("key".to_owned()),
                Just("limit".to_owned()),
                Just("burst".to_owned()),
                "[a-z]{1,5}",
            ],
            any_json(),
            0..4,
        ),
        limit in prop_oneof![Just("api"), Just("login"), Just("none")],
    ) {
        let file = file(&[API, LOGIN]);
        let command = LimitCommand::Set { limit: name(limit), typed };
        match LimitOverrides::default().after(&command, &file, ALL_FIT, &Actor::default(), NOW) {
            Ok(record) => {
                let applied = record.applied_to(&file, ALL_FIT);
                prop_assert!(applied.misfits.is_empty());
                prop_assert_ne!(applied.limits, file);
                prop_assert_eq!(LimitOverrides::decode(&record.encode()), Ok(record));
            }
            Err(RejectedCommand::NotAllowed(problems)) => {
                prop_assert!(!problems.0.is_empty());
                for problem in problems.0 {
                    prop_assert!(!problem.to_string().contains(['\n', '\r']));
                }
            }
            Err(_) => prop_assert_eq!(limit, "none"),
        }
    }
}
