//! Encoding of a ticket's bytes in a cookie: base64url without padding (RFC 4648, section 5).
//!
//! It uses the processor's SIMD instructions where there are any. Each request of each visitor
//! carries a ticket, and scalar decoding cost as much as the cipher.

use std::sync::LazyLock;

use base64::engine::general_purpose::NO_PAD;
use base64::{DecodeSliceError, Engine as _};

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
type Base64Engine = base64::engine::Simd;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
type Base64Engine = base64::engine::GeneralPurpose;

/// Engine that detects the processor's features once.
static ENGINE: LazyLock<Base64Engine> = LazyLock::new(|| {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    return Base64Engine::url_safe(NO_PAD);
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    return Base64Engine::new(&base64::alphabet::URL_SAFE, NO_PAD);
});

/// Encodes bytes as text.
pub(crate) fn encode(bytes: &[u8]) -> String {
    ENGINE.encode(bytes)
}

/// Decodes a text into a buffer and returns the number of bytes. Only the canonical text of some
/// bytes is valid: padding and trailing bits are errors.
pub(crate) fn decode(text: &str, buffer: &mut [u8]) -> Result<usize, DecodeSliceError> {
    ENGINE.decode_slice(text, buffer)
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn encoding_matches_the_scalar_engine(
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
        ) {
            prop_assert_eq!(encode(&bytes), URL_SAFE_NO_PAD.encode(&bytes));
        }

        #[test]
        fn decoding_matches_the_scalar_engine(
            text in prop_oneof!["[A-Za-z0-9_-]{0,200}", "[A-Za-z0-9_=+/-]{0,90}", "\\PC{0,90}"],
        ) {
            let [mut ours, mut theirs] = [[0; 256]; 2];
            let length = decode(&text, &mut ours).ok();
            prop_assert_eq!(length, URL_SAFE_NO_PAD.decode_slice(&text, &mut theirs).ok());
            let length = length.unwrap_or_default();
            prop_assert_eq!(&ours[..length], &theirs[..length]);
        }
    }

    #[test]
    fn non_canonical_text_is_rejected() {
        let mut buffer = [0; 64];
        for text in ["QQ==", "QR", "Q", "Q+Q/", "QQ\n"] {
            assert!(decode(text, &mut buffer).is_err(), "{text:?}");
        }
    }
}
