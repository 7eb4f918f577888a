//! Buffers of one thread. A connection has one only while bytes wait in it, so that an idle
//! connection costs no buffer.

use std::cell::RefCell;
use std::io::Error as IoError;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

/// Most bytes of one read.
const READ_BYTES: usize = 64 * 1024;
/// Capacity of a new buffer: a head and a small page.
const BUFFER_BYTES: usize = 8 * 1024;
/// Largest buffer that is kept.
const KEPT_BYTES_MAX: usize = 80 * 1024;
/// Most buffers that a thread keeps: 1 MiB of new ones. Each request that waits for an origin has
/// two.
const KEPT_MAX: usize = 128;

thread_local! {
    /// Memory for one read; free again when the read returns.
    static SCRATCH: RefCell<Vec<u8>> = RefCell::new(vec![0; READ_BYTES]);
    static KEPT: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// Buffer that goes back to its thread.
#[derive(Debug, Default)]
pub(super) struct Buffer(Vec<u8>);

impl Buffer {
    /// Returns the bytes, to append some.
    pub(super) fn bytes(&mut self) -> &mut Vec<u8> {
        if self.0.capacity() == 0 {
            let kept = KEPT.with_borrow_mut(Vec::pop);
            self.0 = kept.unwrap_or_else(|| Vec::with_capacity(BUFFER_BYTES));
        }
        &mut self.0
    }

    /// Removes all bytes. The buffer goes back.
    pub(super) fn clear(&mut self) {
        let mut bytes = std::mem::take(&mut self.0);
        if bytes.capacity() == 0 || bytes.capacity() > KEPT_BYTES_MAX {
            return;
        }
        bytes.clear();
        KEPT.with_borrow_mut(|kept| {
            if kept.len() < KEPT_MAX {
                kept.push(bytes);
            }
        });
    }

    /// Removes the first bytes.
    pub(super) fn consume(&mut self, count: usize) {
        if count == self.0.len() {
            self.clear();
        } else {
            self.0.drain(..count);
        }
    }

    /// Splits off the first bytes. What follows stays.
    pub(super) fn split_to(&mut self, count: usize) -> Self {
        let mut first = std::mem::take(self);
        if first.len() > count {
            self.bytes().extend_from_slice(&first[count..]);
            first.0.truncate(count);
        }
        first
    }

    /// Puts bytes in that were taken out.
    pub(super) fn put(&mut self, bytes: Vec<u8>) {
        debug_assert!(self.0.is_empty(), "no byte is lost");
        self.0 = bytes;
        if self.0.is_empty() {
            self.clear();
        }
    }

    /// Takes the bytes out, with room for more.
    pub(super) fn take(&mut self) -> Vec<u8> {
        std::mem::take(self.bytes())
    }
}

impl std::ops::Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Reads once, and passes the bytes on. Returns what `use_bytes` returns; it gets no bytes at the
/// end of the stream.
pub(super) fn poll_read_with<I: AsyncRead + Unpin, R>(
    io: &mut I,
    cx: &mut Context<'_>,
    use_bytes: impl FnOnce(&[u8]) -> R,
) -> Poll<Result<R, IoError>> {
    SCRATCH.with_borrow_mut(|scratch| {
        let mut read = ReadBuf::new(scratch);
        ready!(Pin::new(io).poll_read(cx, &mut read))?;
        Poll::Ready(Ok(use_bytes(read.filled())))
    })
}

/// Reads once into a buffer. Returns the number of bytes; 0 at the end of the stream.
pub(super) fn poll_read<I: AsyncRead + Unpin>(
    io: &mut I,
    cx: &mut Context<'_>,
    buffer: &mut Buffer,
) -> Poll<Result<usize, IoError>> {
    poll_read_with(io, cx, |bytes| {
        if !bytes.is_empty() {
            buffer.bytes().extend_from_slice(bytes);
        }
        bytes.len()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_buffer_holds_no_memory_and_is_used_again() {
        let mut first = Buffer::default();
        assert_eq!(first.0.capacity(), 0);
        first.bytes().extend_from_slice(b"abc");
        let at = first.0.as_ptr();
        first.consume(1);
        assert_eq!(&*first, b"bc");
        first.consume(2);
        assert_eq!(first.0.capacity(), 0);
        let mut second = Buffer::default();
        assert_eq!(second.bytes().as_ptr(), at);
        assert!(second.is_empty());
    }
}
