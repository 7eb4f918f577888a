//! Overrides that the store of a limit cannot count.

use super::*;

/// Check of a store that counts at most a thousand requests.
const SMALL: Fits<'static> = &|limit, policy| {
    if policy.rate().requests() <= 1_000 {
        return Ok(());
    }
    Err(format!("{} is too much for this store", limit.name))
};

fn set_to(client: &str, limit: &str) -> LimitCommand {
    set("api", json!({ "key": client, "limit": limit }))
}

#[test]
fn a_rate_beyond_the_store_is_rejected_with_its_text() {
    let file = file(&[API]);
    let result = LimitOverrides::default().after(
        &set_to("gold", "1001/min"),
        &file,
        SMALL,
        &Actor::default(),
        NOW,
    );
    let Err(RejectedCommand::NotAllowed(problems)) = result else {
        panic!("{result:?}");
    };
    let text = problems.to_string();
    assert!(
        text.contains("limit \"api\": limit: api is too much for this store"),
        "{text}"
    );
    let fitting = set_to("gold", "1000/min");
    let fitting = LimitOverrides::default().after(&fitting, &file, SMALL, &Actor::default(), NOW);
    assert_eq!(fitting.unwrap().overrides.len(), 1);
}

#[test]
fn only_the_override_that_no_longer_fits_is_ignored_and_shown() {
    let file = file(&[API]);
    // Set while the limit was counted in another store.
    let record = after(&[set_to("gold", "5000/min"), set_to("tin", "7/min")], &file);
    let applied = record.applied_to(&file, SMALL);
    assert_eq!(applied.misfits.len(), 1);
    let own = |client: &str| {
        let client = Client(vec![client.to_owned()]);
        applied.limits[0].overrides[&client].rate().requests()
    };
    assert_eq!((own("gold"), own("tin")), (900, 7), "the file says 900");
    let shown = ShownLimits::of(&record, &file, SMALL, None);
    let [gold, tin, _of_the_file] = &shown.limits[0].overrides[..] else {
        panic!("{shown:?}");
    };
    assert!(
        gold.problems[0].contains("too much for this store"),
        "{gold:?}"
    );
    assert_eq!(gold.values.as_ref().unwrap()["limit"], "900/m");
    assert_eq!(tin.problems, [""; 0]);
    // It can be unset, and others can be set beside it.
    let more = set_to("iron", "8/min");
    let more = record
        .after(&more, &file, SMALL, &Actor::default(), NOW)
        .unwrap();
    let back = more
        .after(&unset("api", "gold"), &file, SMALL, &Actor::default(), NOW)
        .unwrap();
    assert_eq!(back.applied_to(&file, SMALL).misfits, []);
}
