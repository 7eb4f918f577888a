//! Compression of our own responses.
//!
//! A page comes in parts. Its constant ones are compressed already, so only the rest is compressed
//! for each visitor.

use std::cell::RefCell;

use bytes::Bytes;
use crc32fast::hash as crc32;

use crate::page::{Deflater, Page, Part};

/// Least size of a body that is compressed, in bytes. A smaller one fits into one packet anyway.
const BYTES_MIN: usize = 1_024;

/// Level of compression, the fastest one. It makes a page one percent larger than level 4.
const LEVEL: u32 = 1;

/// Least size of a part that is compressed. A smaller one is stored.
const DEFLATED_BYTES_MIN: usize = 64;

/// Header of a gzip stream (RFC 1952, section 2.3): deflate, no name, no time, any system.
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
/// Last block of a deflate stream: it is empty.
const LAST_BLOCK: [u8; 2] = [3, 0];

thread_local! {
    // A new one clears a quarter of a megabyte.
    static DEFLATER: RefCell<Deflater> = RefCell::new(Deflater::new(LEVEL));
}

/// Returns a body in gzip; `None` if that does not pay.
pub(super) fn compress(body: &[u8]) -> Option<Bytes> {
    compress_parts(body, [Part::Own(body)])
}

/// Returns a page in gzip; `None` if that does not pay.
pub(super) fn compress_page(page: &Page<'_>) -> Option<Bytes> {
    compress_parts(page.text.as_bytes(), page.parts())
}

fn compress_parts<'p>(text: &[u8], parts: impl IntoIterator<Item = Part<'p>>) -> Option<Bytes> {
    if text.len() < BYTES_MIN {
        return None;
    }
    let mut out = Vec::with_capacity(text.len() / 2);
    out.extend_from_slice(&HEADER);
    for part in parts {
        match part {
            Part::Own([]) => {}
            Part::Own(text) if text.len() < DEFLATED_BYTES_MIN => store(text, &mut out),
            Part::Own(text) => DEFLATER.with_borrow_mut(|deflater| deflater.append(text, &mut out)),
            Part::Deflated(blocks) => out.extend_from_slice(blocks),
        }
    }
    out.extend_from_slice(&LAST_BLOCK);
    out.extend_from_slice(&crc32(text).to_le_bytes());
    // The length modulo 2^32, as the format wants it.
    #[expect(clippy::cast_possible_truncation, reason = "modulo 2^32 by the format")]
    let length = text.len() as u32;
    out.extend_from_slice(&length.to_le_bytes());
    Some(out.into())
}

/// Appends a text of less than 64 KiB as a stored block (RFC 1951, section 3.2.4).
fn store(text: &[u8], out: &mut Vec<u8>) {
    let length = u16::try_from(text.len()).expect("the caller stores short texts");
    out.push(0);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&(!length).to_le_bytes());
    out.extend_from_slice(text);
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use anteroom_config::language::Language;
    use flate2::read::GzDecoder;

    use super::*;
    use crate::page::{self, samples};

    fn unpacked(packed: &[u8]) -> String {
        let mut text = String::new();
        GzDecoder::new(packed).read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn a_large_body_is_compressed_and_a_small_one_is_not() {
        let body = "waiting ".repeat(1_000);
        let packed = compress(body.as_bytes()).unwrap();
        assert!(packed.len() < body.len() / 10);
        assert_eq!(unpacked(&packed), body);
        assert_eq!(compress(&[b'x'; BYTES_MIN - 1]), None);
    }

    #[test]
    fn a_page_is_the_same_after_it_was_compressed_and_its_largest_parts_were_before() {
        for language in Language::ALL {
            for reason in samples::REASONS {
                let mut view = samples::view(reason);
                view.language = language;
                let page = page::page(&view, samples::LINKS, false);
                let packed = compress_page(&page).unwrap();
                assert_eq!(unpacked(&packed), page.text);
                let own = page.parts().filter_map(|part| match part {
                    Part::Own(text) => Some(text.len()),
                    Part::Deflated(_) => None,
                });
                let own: usize = own.sum();
                assert!(
                    own < 6_000,
                    "{own} bytes of {language:?} are compressed each time"
                );
            }
        }
    }
}
