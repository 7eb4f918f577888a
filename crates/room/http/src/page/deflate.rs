//! Deflate streams in pieces that need nothing of each other.

use flate2::{Compress, Compression, FlushCompress};

/// Capacity that a piece needs beside its text: the headers of its blocks.
const HEADERS_BYTES: usize = 64;

/// Compressor of pieces. They can be put together in any order, with other pieces between them.
pub(crate) struct Deflater(Compress);

impl Deflater {
    /// Creates a compressor of this level, 1 to 9.
    pub(crate) fn new(level: u32) -> Self {
        Self(Compress::new(Compression::new(level), false))
    }

    /// Appends a piece: blocks that end at a byte, and none of them is the last of a stream.
    pub(crate) fn append(&mut self, mut text: &[u8], out: &mut Vec<u8>) {
        loop {
            out.reserve(text.len() + HEADERS_BYTES);
            let before = self.0.total_in();
            // Forgets the text, so that later pieces do not refer to it.
            let status = self.0.compress_vec(text, out, FlushCompress::Full);
            status.expect("a compressor that never ends takes every input");
            let taken = usize::try_from(self.0.total_in() - before).unwrap_or(text.len());
            text = &text[taken..];
            // With room left, everything is out.
            if text.is_empty() && out.len() < out.capacity() {
                return;
            }
        }
    }
}
