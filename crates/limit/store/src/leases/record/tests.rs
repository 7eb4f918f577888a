//! Golden bytes of epochs, and invalid bytes.

use anteroom_limit::leases::epoch::{Before, EpochId, StoreIdentity};
use anteroom_limit::leases::members::Member;
use anteroom_limit::time::{DurationUs, TimestampUs};
use proptest::prelude::*;

use super::*;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Encoding is stable; a change needs a new version.
#[test]
fn the_encoding_is_stable() {
    let epochs = [
        (
            Before::Unknown,
            None,
            "0207ffffffffffffffffff01ac02808081b184e991030000",
        ),
        (
            Before::Lost,
            None,
            "0207ffffffffffffffffff01ac02808081b184e991030100",
        ),
        (
            Before::Nothing,
            Some(DurationUs(7)),
            "0207ffffffffffffffffff01ac02808081b184e99103020107",
        ),
    ];
    for (before, longest_loss, golden) in epochs {
        let epoch = Epoch {
            id: EpochId {
                number: 7,
                random: u64::MAX,
            },
            identity: StoreIdentity(300),
            began_at: TimestampUs(1_767_225_600_000_000),
            before,
            longest_loss,
        };
        let bytes = encode_epoch(&epoch);
        assert_eq!(hex(&bytes), golden);
        assert_eq!(decode_epoch(&bytes), Ok(epoch));
        for length in 1..bytes.len() {
            assert_eq!(decode_epoch(&bytes[..length]), Err(RecordError::Damaged));
        }
        let long = [&bytes[..], &[0]].concat();
        assert_eq!(decode_epoch(&long), Err(RecordError::Damaged));
    }
}

#[test]
fn the_encoding_of_members_is_stable() {
    let members = Members(vec![Member {
        node: u64::MAX,
        renewals: 300,
        reported_to: StoreIdentity(5),
    }]);
    let bytes = encode_members(&members);
    assert_eq!(hex(&bytes), "0201ffffffffffffffffff01ac0205");
    assert_eq!(decode_members(&bytes), Ok(members));
    for length in 1..bytes.len() {
        assert_eq!(decode_members(&bytes[..length]), Err(RecordError::Damaged));
    }
    // A length beyond the bytes takes no memory.
    let long = [&[2][..], &[0xff; 9], &[1]].concat();
    assert_eq!(decode_members(&long), Err(RecordError::Damaged));
}

#[test]
fn another_version_is_no_epoch() {
    for bytes in [&b""[..], b"\x00", b"\x01", b"\x03", b"\xff\x01"] {
        let found = bytes.first().copied().unwrap_or(0);
        let error = RecordError::Version { found, known: 2 };
        assert_eq!(decode_epoch(bytes), Err(error));
    }
}

proptest! {
    #[test]
    fn any_bytes_are_a_record_or_none(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        crate::leases::fuzz::records(&bytes);
        for version in [1, 2] {
            let ours = [&[version], &bytes[..]].concat();
            crate::leases::fuzz::records(&ours);
        }
    }
}
