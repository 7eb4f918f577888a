//! What must hold for any bytes whatever; called by fuzzers and by the tests.

use crate::lent::record as client;
use anteroom_limit::lending::epoch::{Before, Epoch, EpochId, StoreIdentity};
use anteroom_limit::lending::message::{Request, RequestId};
use anteroom_limit::lending::parent::lend;
use anteroom_limit::time::TimestampUs;

use crate::lending::record;

/// Reads `data` as records of a client and of an epoch, and lends by what is found.
///
/// # Panics
///
/// If what was read is something else when it is written and read again, or if more is lent than is
/// wanted. Any other panic is a mistake too.
pub fn records(data: &[u8]) {
    if let Ok(epoch) = record::decode_epoch(data) {
        let bytes = record::encode_epoch(&epoch);
        assert_eq!(record::decode_epoch(&bytes), Ok(epoch), "another epoch");
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
        };
        for now in [0, 1_700_000_000_000_000, found.as_of.0, u64::MAX >> 1] {
            let request = Request {
                id: RequestId {
                    incarnation: 1,
                    number: 1,
                },
                least: 1,
                wants: 2,
                most: 50,
            };
            let lent = lend(
                &found.lent_by,
                &epoch,
                Some(&found),
                &request,
                TimestampUs(now),
            );
            assert!(lent.answer.held <= request.most, "{lent:?}");
            if let Some(write) = lent.write {
                let bytes = client::encode(&write.record);
                assert_eq!(client::decode(&bytes), Ok(write.record), "another record");
            }
        }
    }
}
