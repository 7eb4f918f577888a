//! Invariants that hold for any bytes; called by fuzzers and by the tests.

use crate::lease_store::record as client;
use anteroom_limit::leases::epoch::{Before, Epoch, EpochId, StoreIdentity};
use anteroom_limit::leases::message::{Request, RequestId};
use anteroom_limit::leases::parent::grant;
use anteroom_limit::time::TimestampUs;

use crate::leases::record;

/// Decodes `data` as records of a client, an epoch and members, and grants from what is found.
///
/// # Panics
///
/// If a record changes in a round trip, or if more is granted than requested. Any other panic is a
/// defect, too.
pub fn records(data: &[u8]) {
    if let Ok(epoch) = record::decode_epoch(data) {
        let bytes = record::encode_epoch(&epoch);
        assert_eq!(record::decode_epoch(&bytes), Ok(epoch), "another epoch");
    }
    if let Ok(members) = record::decode_members(data) {
        let bytes = record::encode_members(&members);
        assert_eq!(record::decode_members(&bytes), Ok(members), "other members");
    }
    let Ok(found) = client::decode(data) else {
        return;
    };
    let bytes = client::encode(&found);
    assert_eq!(client::decode(&bytes), Ok(found.clone()), "another record");
    let epochs = [
        found.epoch,
        EpochId {
            number: 1,
            random: 1,
        },
    ];
    for id in epochs {
        let epoch = Epoch {
            id,
            identity: StoreIdentity(1),
            began_at: TimestampUs(1),
            before: Before::Lost,
            longest_loss: None,
        };
        for now in [0, 1_700_000_000_000_000, found.as_of.0, u64::MAX >> 1] {
            let request = Request {
                id: RequestId {
                    incarnation: 1,
                    number: 1,
                },
                least: 1,
                waiting: 2,
                most: 50,
            };
            let outcome = grant(
                &found.lent_by,
                &epoch,
                Some(&found),
                &request,
                TimestampUs(now),
            );
            assert!(outcome.reply.granted <= request.most, "{outcome:?}");
            if let Some(write) = outcome.write {
                let bytes = client::encode(&write.record);
                assert_eq!(client::decode(&bytes), Ok(write.record), "another record");
            }
        }
    }
}
