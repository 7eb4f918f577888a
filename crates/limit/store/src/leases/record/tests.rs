//! Golden bytes of epochs, and invalid bytes.

use anteroom_limit::leases::epoch::{Before, EpochId, StoreIdentity};
use anteroom_limit::time::TimestampUs;
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
            "0107ffffffffffffffffff01ac02808081b184e9910300",
        ),
        (
            Before::Lost,
            "0107ffffffffffffffffff01ac02808081b184e9910301",
        ),
        (
            Before::Nothing,
            "0107ffffffffffffffffff01ac02808081b184e9910302",
        ),
    ];
    for (before, golden) in epochs {
        let epoch = Epoch {
            id: EpochId {
                number: 7,
                random: u64::MAX,
            },
            identity: StoreIdentity(300),
            began_at: TimestampUs(1_767_225_600_000_000),
            before,
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
fn another_version_is_no_epoch() {
    for bytes in [&b""[..], b"\x00", b"\x02", b"\xff\x01"] {
        let found = bytes.first().copied().unwrap_or(0);
        let error = RecordError::Version { found, known: 1 };
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
