//! Whatever is said about a client, by whoever can write JSON.

use anteroom_config::RateText;
use proptest::prelude::*;
use serde_json::Value;

use super::*;

/// Anything that JSON can say.
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
    /// A store may hold anything.
    #[test]
    fn any_record_is_read_or_damaged(
        limit in "(api|login|[a-z]{0,9})",
        client in any_json(),
        values in any_json(),
        bytes in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let _ = LimitOverrides::decode(&bytes);
        let said = json!({ "limit": limit, "client": client, "values": { "limit": values } });
        let record = json!({ "form": 1, "version": 1, "overrides": [said] }).to_string();
        if let Ok(orders) = LimitOverrides::decode(record.as_bytes()) {
            let file = file(&[API, LOGIN]);
            for problem in orders.applied_to(&file, ALL_FIT).misfits {
                prop_assert!(!problem.to_string().contains(['\n', '\r']));
            }
            let shown = ShownLimits::of(&orders, &file, ALL_FIT, None);
            prop_assert!(serde_json::to_string(&shown).is_ok());
        }
    }

    /// Whatever is said, it is taken and then holds, or refused on lines of their own.
    #[test]
    fn anything_is_taken_or_refused(
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
        let order = LimitCommand::Set { limit: name(limit), typed };
        match LimitOverrides::default().after(&order, &file, ALL_FIT, &Actor::default(), NOW) {
            Ok(orders) => {
                let applied = orders.applied_to(&file, ALL_FIT);
                prop_assert!(applied.misfits.is_empty());
                prop_assert_ne!(applied.limits, file);
                prop_assert_eq!(LimitOverrides::decode(&orders.encode()), Ok(orders));
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
