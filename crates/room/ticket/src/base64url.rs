//! How do the bytes of a ticket stand in a cookie? As base64url without padding (RFC 4648, section
//! 5).
//!
//! By the processor's wide instructions where there are any: each request of each visitor carries a
//! ticket, and letter by letter this cost as much as the cipher.

use std::sync::LazyLock;

use base64::engine::general_purpose::NO_PAD;
use base64::{DecodeSliceError, Engine as _};

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
type Letters = base64::engine::Simd;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
type Letters = base64::engine::GeneralPurpose;

/// It finds out once what the processor can do.
static LETTERS: LazyLock<Letters> = LazyLock::new(|| {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    return Letters::url_safe(NO_PAD);
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    return Letters::new(&base64::alphabet::URL_SAFE, NO_PAD);
});

/// Bytes as text.
pub(crate) fn written(bytes: &[u8]) -> String {
    LETTERS.encode(bytes)
}

/// Reads a text into a buffer, and says how many bytes it was. One text for the same bytes: what no
/// writer writes (padding, bits left over) is an error.
pub(crate) fn read(text: &str, buffer: &mut [u8]) -> Result<usize, DecodeSliceError> {
    LETTERS.decode_slice(text, buffer)
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bytes_are_written_as_letter_by_letter(
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
        ) {
            prop_assert_eq!(written(&bytes), URL_SAFE_NO_PAD.encode(&bytes));
        }

        #[test]
        fn any_text_is_read_as_letter_by_letter(
            text in prop_oneof!["[A-Za-z0-9_-]{0,200}", "[A-Za-z0-9_=+/-]{0,90}", "\\PC{0,90}"],
        ) {
            let [mut ours, mut theirs] = [[0; 256]; 2];
            let length = read(&text, &mut ours).ok();
            prop_assert_eq!(length, URL_SAFE_NO_PAD.decode_slice(&text, &mut theirs).ok());
            let length = length.unwrap_or_default();
            prop_assert_eq!(&ours[..length], &theirs[..length]);
        }
    }

    #[test]
    fn a_text_that_nobody_writes_is_not_read() {
        let mut buffer = [0; 64];
        for text in ["QQ==", "QR", "Q", "Q+Q/", "QQ\n"] {
            assert!(read(text, &mut buffer).is_err(), "{text:?}");
        }
    }
}
