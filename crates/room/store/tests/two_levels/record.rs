//! Every ledger of these schedules passes through the form in which stores keep it.

use anteroom_room::ledger::Ledger;
use anteroom_store::wire::ledger as record;

/// A ledger as a store gives it back.
pub(crate) fn read(ledger: &Ledger) -> Ledger {
    let found = record::decode(&record::encode(ledger)).expect("what was written is read");
    assert_eq!(found, *ledger, "a record says all that a ledger says");
    found
}
