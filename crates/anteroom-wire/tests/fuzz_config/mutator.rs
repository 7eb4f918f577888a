//! Damages files, the same way every time for the same seed.
//!
//! It knows a little TOML, so that most results still are some: a fuzzer that only ever meets
//! syntax errors tests the parser of somebody else.

/// A small generator of damage.
pub(crate) struct Mutator {
    state: u64,
}

/// Pieces that mean something to a config file.
const PIECES: &[&str] = &[
    "\n",
    "\n\n",
    "[[room]]\n",
    "[server]\n",
    "[room.",
    "]",
    "[",
    "{",
    "}",
    "=",
    ",",
    ".",
    "\"",
    "'",
    "\"\"\"",
    "#",
    "\\u0000",
    "\\n",
    "\u{2028}",
    "\r\n",
    "é",
    "\u{10FFFF}",
    "-1",
    "0",
    "1e400",
    "nan",
    "inf",
    "0xffffffffffffffffffff",
    "true",
    "2030-01-31T10:00:00",
    "1969-12-31T23:59:59Z",
    "9999-12-31T23:59:59.999999999+23:59",
    "\"5m\"",
    "\"99999999999999999999d\"",
    "\"[::1]:0\"",
    "\"http://a\"",
    "\"%\"",
    "\"/..//%2e\"",
    "host",
    "path",
    "bypass",
    "ticket_keys",
    "room",
    "additional_routes",
    "q7TzN0mK2xVbYw8rLh5uJc1eAo9sGd3fPi6kRt4nXyE=",
];

impl Mutator {
    pub(crate) const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// One file of the corpus, or two spliced, with a few wounds.
    pub(crate) fn damage(&mut self, corpus: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = corpus[self.below(corpus.len())].clone();
        if self.below(4) == 0 {
            let other = &corpus[self.below(corpus.len())];
            bytes.truncate(self.below(bytes.len() + 1));
            bytes.extend_from_slice(&other[self.below(other.len() + 1)..]);
        }
        for _ in 0..=self.below(4) {
            self.wound(&mut bytes);
        }
        bytes
    }

    fn wound(&mut self, bytes: &mut Vec<u8>) {
        let from = self.below(bytes.len() + 1);
        let length = self.below(12).min(bytes.len() - from);
        let piece = PIECES[self.below(PIECES.len())].as_bytes();
        match self.below(7) {
            0 => drop(bytes.drain(from..from + length)),
            1 => drop(bytes.splice(from..from, piece.iter().copied())),
            2 => drop(bytes.splice(from..from + length, piece.iter().copied())),
            3 => {
                let copy = bytes[from..from + length].to_vec();
                drop(bytes.splice(from..from, copy.into_iter().cycle().take(length * 40)));
            }
            4 => {
                // A whole value, which most often leaves the file legal.
                let lines: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at] == b'=').collect();
                if !lines.is_empty() {
                    let value = lines[self.below(lines.len())] + 1;
                    let end = bytes[value..]
                        .iter()
                        .position(|byte| *byte == b'\n')
                        .map_or(bytes.len(), |length| value + length);
                    drop(bytes.splice(value..end, piece.iter().copied()));
                }
            }
            5 => {
                if let Some(byte) = bytes.get_mut(from) {
                    *byte = u8::try_from(self.below(256)).expect("below 256");
                }
            }
            _ => {
                if let Some(byte) = bytes.get_mut(from) {
                    *byte ^= 1 << self.below(8);
                }
            }
        }
    }

    /// SplitMix64, from its published constants; modulo is even enough here.
    fn below(&mut self, end: usize) -> usize {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        let end = u64::try_from(end).expect("a length fits into 64 bits");
        usize::try_from(mixed % end).expect("below a length")
    }
}
