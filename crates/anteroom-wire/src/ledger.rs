//! The record of a ledger as a store keeps it: a version byte, then postcard.
//!
//! A record that cannot be read is an error and not an empty ledger: lending anew what may be
//! lent already is the one thing that must not happen by accident.

mod record;

use anteroom_core::ledger::Ledger;

use record::LedgerRecord;

const VERSION: u8 = 1;

/// Why a record is no ledger.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LedgerRecordError {
    /// Written by a version of this program that is not known here.
    #[error("ledger record of version {found}, this program reads version {VERSION}")]
    Version {
        /// The version byte, 0 if there is none.
        found: u8,
    },
    /// Damaged.
    #[error("ledger record is damaged")]
    Damaged,
}

/// Writes a ledger down.
///
/// # Panics
///
/// Never: a ledger has no form that cannot be written into memory.
#[must_use]
pub fn encode(ledger: &Ledger) -> Vec<u8> {
    let record = LedgerRecord::from(ledger);
    let start = vec![VERSION];
    postcard::to_extend(&record, start).expect("writing into memory cannot fail")
}

/// Reads a ledger.
///
/// # Errors
///
/// [`LedgerRecordError`] if the bytes are no ledger of this version.
pub fn decode(bytes: &[u8]) -> Result<Ledger, LedgerRecordError> {
    match bytes.split_first() {
        Some((&VERSION, rest)) => {
            let (record, left): (LedgerRecord, _) =
                postcard::take_from_bytes(rest).map_err(|_| LedgerRecordError::Damaged)?;
            if left.is_empty() {
                Ok(record.into())
            } else {
                Err(LedgerRecordError::Damaged)
            }
        }
        first => Err(LedgerRecordError::Version {
            found: first.map_or(0, |(&found, _)| found),
        }),
    }
}

#[cfg(test)]
mod tests {
    use anteroom_core::id::{Epoch, NodeId, VisitorId};
    use anteroom_core::ledger::{Child, Departed, RevokedList};
    use anteroom_core::rules::Limits;
    use anteroom_core::seats::SeatRow;
    use anteroom_core::sync::{Held, Revocation, Terms};
    use anteroom_core::time::{Millis, Minute, Span};

    use super::*;

    fn terms() -> Terms {
        Terms {
            limits: Limits {
                total_active_users: 200,
                new_users_per_minute: 100,
            },
            longest_seat: Span(310_000),
            pacing: true,
        }
    }

    /// A ledger in which no field has its default.
    fn full() -> Ledger {
        let row: SeatRow = [(Millis(70_000), 3), (Millis(75_000), -1)]
            .into_iter()
            .collect();
        let mut ledger = Ledger::new();
        ledger.epoch = Epoch(2);
        ledger.reopens_at = Some(Millis(9));
        ledger.terms = Some(terms());
        ledger.longest_seat = Span(310_000);
        ledger.generation = 5;
        let child = Child {
            generation: 5,
            number: 77,
            held: Held {
                seats: 1,
                admissions: 2,
                minute: Minute(3),
                credits: 4,
            },
            ends_at: Millis(10_000),
            longest_seat: Span(310_000),
            row: row.clone(),
            admitted: vec![(Minute(3), 4)],
            closed_through: Millis(60_000),
            waiting: [(Millis(1_000), 9)].into(),
            handed: [(Millis(500), 2)].into(),
            wants: 7,
            terms: terms(),
        };
        ledger.children.insert(NodeId(u64::MAX), child);
        ledger.departed.push(Departed {
            node: NodeId(1),
            generation: 4,
            number: 3,
            row: row.clone(),
            phantoms: 6,
            ends_at: Millis(80_000),
            admitted: vec![(Minute(2), 1)],
        });
        ledger.settled = row;
        ledger.settled_minutes.insert(Minute(1), 11);
        ledger.closed_through = Millis(60_000);
        let entry = Revocation {
            visitor: VisitorId([3; 16]),
            seat_ends_at: Millis(70_000),
            until: Millis(90_000),
        };
        ledger.revoked = RevokedList::from_parts(8, [entry]);
        ledger.left_waiting.counts.insert(Millis(2_000), 5);
        ledger.left_waiting.until = Millis(120_000);
        ledger.as_of = Millis(65_000);
        ledger
    }

    #[test]
    fn a_ledger_survives_being_written_and_read() {
        for ledger in [Ledger::new(), full()] {
            assert_eq!(decode(&encode(&ledger)), Ok(ledger));
        }
    }

    #[test]
    fn a_damaged_record_is_an_error_and_no_empty_ledger() {
        let bytes = encode(&full());
        for cut in 1..bytes.len() {
            assert_eq!(decode(&bytes[..cut]), Err(LedgerRecordError::Damaged));
        }
        let mut longer = bytes;
        longer.push(0);
        assert_eq!(decode(&longer), Err(LedgerRecordError::Damaged));
        assert_eq!(decode(&[]), Err(LedgerRecordError::Version { found: 0 }));
        assert_eq!(
            decode(&[9, 9]),
            Err(LedgerRecordError::Version { found: 9 })
        );
    }
}
