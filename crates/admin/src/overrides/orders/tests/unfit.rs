//! What the store of a limit cannot count.

use super::*;

/// A store that counts no more than a thousand calls.
const SMALL: Fits<'static> = &|limit, policy| {
    if policy.rate().calls() <= 1_000 {
        return Ok(());
    }
    Err(format!("{} is too much for this store", limit.name))
};

fn set_to(client: &str, limit: &str) -> LimitCommand {
    set("api", json!({ "key": client, "limit": limit }))
}

#[test]
fn what_a_store_cannot_count_is_refused_in_its_words() {
    let file = file(&[API]);
    let refused = LimitOverrides::default().after(
        &set_to("gold", "1001/min"),
        &file,
        SMALL,
        &Actor::default(),
        NOW,
    );
    let Err(RejectedCommand::NotAllowed(problems)) = refused else {
        panic!("{refused:?}");
    };
    let told = problems.to_string();
    assert!(
        told.contains("limit \"api\": limit: api is too much for this store"),
        "{told}"
    );
    let taken = set_to("gold", "1000/min");
    let taken = LimitOverrides::default().after(&taken, &file, SMALL, &Actor::default(), NOW);
    assert_eq!(taken.unwrap().overrides.len(), 1);
}

#[test]
fn what_no_longer_fits_a_store_is_left_out_alone_and_shown() {
    let file = file(&[API]);
    // Said where the limit was counted in another store.
    let orders = after(&[set_to("gold", "5000/min"), set_to("tin", "7/min")], &file);
    let applied = orders.applied_to(&file, SMALL);
    assert_eq!(applied.misfits.len(), 1);
    let own = |client: &str| {
        let client = Client(vec![client.to_owned()]);
        applied.limits[0].overrides[&client].rate().calls()
    };
    assert_eq!((own("gold"), own("tin")), (900, 7), "the file says 900");
    let shown = ShownLimits::of(&orders, &file, SMALL, None);
    let [gold, tin, _of_the_file] = &shown.limits[0].overrides[..] else {
        panic!("{shown:?}");
    };
    assert!(
        gold.problems[0].contains("too much for this store"),
        "{gold:?}"
    );
    assert_eq!(gold.values.as_ref().unwrap()["limit"], "900/m");
    assert_eq!(tin.problems, [""; 0]);
    // It can be taken back, and others can be said beside it.
    let more = set_to("iron", "8/min");
    let more = orders
        .after(&more, &file, SMALL, &Actor::default(), NOW)
        .unwrap();
    let back = more
        .after(&unset("api", "gold"), &file, SMALL, &Actor::default(), NOW)
        .unwrap();
    assert_eq!(back.applied_to(&file, SMALL).misfits, []);
}
