//! Trace of the last decisions for a reader, and a digest of all decisions that compares two runs.

use std::collections::VecDeque;

use anteroom_room::time::DurationMs;

/// Newest lines of a run.
#[derive(Debug)]
pub struct Trace {
    lines: VecDeque<String>,
    capacity: usize,
}

impl Trace {
    /// Creates a trace that keeps the newest `capacity` lines.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self {
            lines: VecDeque::new(),
            capacity,
        }
    }

    /// Returns the lines, oldest first.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().map(String::as_str)
    }

    pub(crate) fn note(&mut self, at: DurationMs, line: &str) {
        if self.lines.len() >= self.capacity {
            self.lines.pop_front();
        }
        let (secs, ms) = (at.0 / 1_000, at.0 % 1_000);
        self.lines.push_back(format!("{secs}.{ms:03} s  {line}"));
    }
}

/// Fingerprint of all decisions until now, in order.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    pub(crate) fn add(&mut self, word: u64) {
        let mixed = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 29);
    }

    pub(crate) fn value(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_lines_are_kept() {
        let mut trace = Trace::new(2);
        for (at, line) in [(1, "one"), (12_250, "two"), (60_000, "three")] {
            trace.note(DurationMs(at), line);
        }
        let lines: Vec<_> = trace.lines().collect();
        assert_eq!(lines, ["12.250 s  two", "60.000 s  three"]);
    }

    #[test]
    fn a_digest_depends_on_the_order() {
        let of = |words: &[u64]| {
            let mut digest = Digest::default();
            words.iter().for_each(|word| digest.add(*word));
            digest.value()
        };
        assert_ne!(of(&[1, 2]), of(&[2, 1]));
        assert_eq!(of(&[1, 2]), of(&[1, 2]));
    }
}
