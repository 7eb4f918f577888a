//! Round trip of a ledger through its record.

use anteroom_room::ledger::Ledger;
use anteroom_store::wire::ledger as record;

/// Encodes and decodes a ledger, as a store does.
pub(crate) fn read(ledger: &Ledger) -> Ledger {
    let found = record::decode(&record::encode(ledger)).expect("an encoded ledger decodes");
    assert_eq!(found, *ledger, "a record has all of a ledger");
    found
}
