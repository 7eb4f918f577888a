//! Lines of the log on their way to standard error.
//!
//! A line is only appended to a buffer. A thread writes the buffer, many lines at a time: a write
//! and a wake-up for each line would cost more than the request that the line is about. If the
//! reader is slow or gone, lines are dropped and counted, so that no visitor waits for it.

use std::io::Write;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use tracing::warn;
use tracing_subscriber::fmt::MakeWriter;

/// Most bytes that wait for a reader: some 20,000 lines.
const WAITING_BYTES_MAX: usize = 4 << 20;
/// Bytes that are written without waiting for more.
const WRITE_BYTES: usize = 64 << 10;
/// Longest time that a line waits for others.
const GATHER: Duration = Duration::from_millis(20);
/// Longest time in which the last lines are written. A reader that does not read stops no exit.
const FLUSH: Duration = Duration::from_secs(1);

/// Buffer of lines. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Lines(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    /// Signals the thread that there are lines, many lines, or an end.
    arrived: Condvar,
    /// Signals that the thread has ended.
    ended: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    bytes: Vec<u8>,
    /// Lines dropped since the last report.
    dropped: u64,
    is_ending: bool,
    has_ended: bool,
}

/// Writes the remaining lines when it is dropped; keep it until the end.
#[derive(Debug)]
#[must_use = "lines that are still to be written are lost when it is dropped"]
pub struct Flush(Lines);

impl Lines {
    /// Starts the thread that writes the lines to `out`.
    pub(super) fn write_to(&self, out: impl Write + Send + 'static) -> std::io::Result<Flush> {
        let lines = self.clone();
        std::thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || lines.0.run(out))?;
        Ok(Flush(self.clone()))
    }

    /// Appends a line with its end.
    pub(super) fn push(&self, line: &[u8]) {
        let mut waiting = self.0.waiting.lock();
        let before = waiting.bytes.len();
        if before >= WAITING_BYTES_MAX {
            waiting.dropped += 1;
            return;
        }
        waiting.bytes.extend_from_slice(line);
        let is_first = before == 0;
        let is_much = before < WRITE_BYTES && waiting.bytes.len() >= WRITE_BYTES;
        drop(waiting);
        if is_first || is_much {
            self.0.arrived.notify_one();
        }
    }
}

impl Shared {
    fn run(&self, mut out: impl Write) {
        let mut bytes = Vec::new();
        loop {
            let (dropped, is_ending) = self.gather(&mut bytes);
            // A closed standard error changes nothing for visitors.
            let _ = out.write_all(&bytes).and_then(|()| out.flush());
            bytes.clear();
            if is_ending {
                break;
            }
            if dropped > 0 {
                warn!(dropped, "log lines dropped: their reader is too slow");
            }
        }
        self.waiting.lock().has_ended = true;
        self.ended.notify_all();
    }

    /// Waits for lines and takes them. Returns how many were dropped, and whether these are the
    /// last ones.
    fn gather(&self, bytes: &mut Vec<u8>) -> (u64, bool) {
        let mut waiting = self.waiting.lock();
        while waiting.bytes.is_empty() && !waiting.is_ending {
            self.arrived.wait(&mut waiting);
        }
        if waiting.bytes.len() < WRITE_BYTES && !waiting.is_ending {
            self.arrived.wait_for(&mut waiting, GATHER);
        }
        mem::swap(&mut waiting.bytes, bytes);
        (mem::take(&mut waiting.dropped), waiting.is_ending)
    }
}

impl Drop for Flush {
    fn drop(&mut self) {
        let Lines(shared) = &self.0;
        let mut waiting = shared.waiting.lock();
        waiting.is_ending = true;
        shared.arrived.notify_one();
        let is_running = |waiting: &mut Waiting| !waiting.has_ended;
        shared.ended.wait_while_for(&mut waiting, is_running, FLUSH);
    }
}

/// One event of `tracing`.
#[derive(Debug)]
pub(super) struct Event<'a>(&'a Lines);

impl Write for Event<'_> {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        self.0.push(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Event<'a>;

    fn make_writer(&'a self) -> Event<'a> {
        Event(self)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// Output whose reader takes each write when it likes.
    struct Slow(mpsc::SyncSender<Vec<u8>>);

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            // Nobody reads on after the test.
            let _ = self.0.send(bytes.to_vec());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// Output whose reader reads nothing before the test ends.
    struct Stuck {
        has_begun: mpsc::Sender<()>,
        goes_on: mpsc::Receiver<()>,
    }

    impl Write for Stuck {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            // Both fail at the end of the test.
            let _ = self.has_begun.send(());
            let _ = self.goes_on.recv();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_keep_their_order_and_the_last_ones_are_written_at_the_end() {
        let lines = Lines::default();
        let (writer, reader) = mpsc::sync_channel(1_000);
        let flush = lines.write_to(Slow(writer)).unwrap();
        let mut expected = Vec::new();
        for at in 0..1_000 {
            let line = format!("line {at}\n");
            lines.push(line.as_bytes());
            expected.extend_from_slice(line.as_bytes());
        }
        drop(flush);
        let written: Vec<u8> = reader.try_iter().flatten().collect();
        assert_eq!(written, expected);
    }

    #[test]
    fn a_reader_that_does_not_read_costs_bounded_memory_and_no_wait() {
        let lines = Lines::default();
        let (has_begun, begun) = mpsc::channel();
        let (go_on, goes_on) = mpsc::channel::<()>();
        let out = Stuck { has_begun, goes_on };
        let _flush = lines.write_to(out).unwrap();
        let line = [b'x'; 1_024];
        lines.push(&line);
        // From here on the thread takes nothing: it would forget how many lines were dropped.
        begun.recv().unwrap();
        let count = 4 * WAITING_BYTES_MAX / line.len();
        for _ in 0..count {
            lines.push(&line);
        }
        let waiting = lines.0.waiting.lock();
        assert!(waiting.bytes.len() <= WAITING_BYTES_MAX + line.len());
        let kept = waiting.bytes.len() / line.len();
        assert_eq!(waiting.dropped, (count - kept) as u64);
        drop(waiting);
        drop(go_on);
    }
}
