//! Compression of our own pages.
//!
//! Style, script and texts are the same for all visitors, and compressed once. What differs is
//! stored as it is: to compress it would cost ten times as much as the rest of the response.

use bytes::Bytes;
use crc32fast::Hasher;

use crate::page::{Page, Part};

/// Least size of a page that is compressed, in bytes. A smaller one fits into one packet anyway.
const BYTES_MIN: usize = 1_024;

/// Header of a gzip stream (RFC 1952, section 2.3): deflate, no name, no time, any system.
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
/// Last block of a deflate stream: it is empty.
const LAST_BLOCK: [u8; 2] = [3, 0];

/// Returns a page in gzip; `None` if that does not pay.
pub(super) fn compress(page: &Page<'_>) -> Option<Bytes> {
    let length = page.len();
    if length < BYTES_MIN {
        return None;
    }
    let mut out = Vec::with_capacity(length / 2);
    let mut crc = Hasher::new();
    out.extend_from_slice(&HEADER);
    for part in page.parts() {
        match part {
            Part::Own(text) => {
                crc.update(text);
                store(text, &mut out);
            }
            Part::Constant(text, deflated) => {
                // To add a known checksum would take as long.
                crc.update(text);
                out.extend_from_slice(deflated);
            }
        }
    }
    out.extend_from_slice(&LAST_BLOCK);
    out.extend_from_slice(&crc.finalize().to_le_bytes());
    #[expect(clippy::cast_possible_truncation, reason = "modulo 2^32 by the format")]
    let length_mod = length as u32;
    out.extend_from_slice(&length_mod.to_le_bytes());
    Some(out).filter(|out| out.len() < length).map(Bytes::from)
}

/// Appends a text as stored blocks (RFC 1951, section 3.2.4).
fn store(text: &[u8], out: &mut Vec<u8>) {
    for block in text.chunks(usize::from(u16::MAX)) {
        let length = u16::try_from(block.len()).unwrap_or(u16::MAX);
        out.push(0);
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(&(!length).to_le_bytes());
        out.extend_from_slice(block);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use anteroom_config::language::Language;
    use flate2::read::GzDecoder;

    use super::*;
    use crate::page::{self, CustomPage, samples};

    fn unpacked(packed: &[u8]) -> Vec<u8> {
        let mut text = Vec::new();
        GzDecoder::new(packed).read_to_end(&mut text).unwrap();
        text
    }

    /// Returns the size of a page in gzip, if it pays, after a check that nothing is lost.
    fn packed_bytes(template: &str) -> Option<usize> {
        let template = CustomPage::new(template).unwrap();
        let page = template.page(&samples::view(samples::REASONS[0]), samples::LINKS, false);
        let packed = compress(&page)?;
        assert_eq!(unpacked(&packed), page.into_bytes());
        Some(packed.len())
    }

    #[test]
    fn a_large_page_is_compressed_and_a_small_one_is_not() {
        assert_eq!(packed_bytes(&"x".repeat(BYTES_MIN - 1)), None);
        assert!(packed_bytes(&"waiting ".repeat(1_000)).unwrap() < 200);
        // Nothing to gain: each word is constant, and each has its tag.
        assert_eq!(packed_bytes(&"word {{waitTime}} ".repeat(100)), None);
    }

    #[test]
    fn values_longer_than_a_block_are_stored() {
        let long = format!("{}{}", "x".repeat(1_000), "{{waitTime}} ".repeat(40_000));
        let bytes = packed_bytes(&long).unwrap();
        assert!(bytes > usize::from(u16::MAX), "{bytes}");
    }

    #[test]
    fn a_page_is_the_same_after_it_was_compressed_and_its_largest_parts_were_before() {
        for language in Language::ALL {
            for reason in samples::REASONS {
                let mut view = samples::view(reason);
                view.language = language;
                let page = page::page(&view, samples::LINKS, false);
                let packed = compress(&page).unwrap();
                assert_eq!(unpacked(&packed), page.into_bytes());
                assert!(
                    packed.len() < 11_000,
                    "{} bytes in {language:?}",
                    packed.len()
                );
            }
        }
    }
}
