//! Compression of our own responses.
//!
//! Style, script and texts are the same for all visitors and cannot be compressed once for all of
//! them: a deflate stream refers to what came before it. So each response is compressed anew, at a
//! level that costs a fraction of a millisecond.

use std::io::Write as _;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;

/// Least size of a body that is compressed, in bytes. A smaller one fits into one packet anyway.
const BYTES_MIN: usize = 1_024;

/// Level of compression. 6 makes a page half a percent smaller than 4 and takes a third more time.
const LEVEL: u32 = 4;

/// Returns a body in gzip; `None` if that does not pay.
pub(super) fn compress(body: &[u8]) -> Option<Bytes> {
    if body.len() < BYTES_MIN {
        return None;
    }
    let buffer = Vec::with_capacity(body.len() / 2);
    let mut encoder = GzEncoder::new(buffer, Compression::new(LEVEL));
    // Writing to a buffer cannot fail; the body is sent as it is if it did.
    encoder.write_all(body).ok()?;
    encoder.finish().ok().map(Bytes::from)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::GzDecoder;

    use super::*;

    #[test]
    fn a_large_body_is_compressed_and_a_small_one_is_not() {
        let body = "waiting ".repeat(1_000);
        let packed = compress(body.as_bytes()).unwrap();
        assert!(packed.len() < body.len() / 10);
        let mut text = String::new();
        GzDecoder::new(&*packed).read_to_string(&mut text).unwrap();
        assert_eq!(text, body);
        assert_eq!(compress(&[b'x'; BYTES_MIN - 1]), None);
    }
}
