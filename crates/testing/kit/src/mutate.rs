//! Mutator that damages inputs, in the same way for the same seed.
//!
//! It knows some of the language of its inputs, so that most results remain inputs. A fuzzer that
//! meets only syntax errors tests only the first line of a parser.

/// Knowledge about the inputs.
#[derive(Clone, Copy, Debug)]
pub struct Language<'a> {
    /// Pieces with a meaning, inserted at random. At least one.
    pub pieces: &'a [&'a [u8]],
    /// Position of values in an input, if known.
    pub field: Option<Field>,
}

/// Position of a value: after one byte, up to another one or to the end.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Byte before a value, such as `=`.
    pub begins_after: u8,
    /// Byte after it, such as a line end.
    pub ends_before: u8,
}

/// Mutator with a small random generator.
#[derive(Clone, Debug)]
pub struct Mutator {
    state: u64,
}

impl Mutator {
    /// Creates a mutator with this seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Returns one input of the corpus, or two spliced, with some damage.
    ///
    /// # Panics
    ///
    /// If the corpus is empty or the language has no pieces.
    pub fn damage(&mut self, corpus: &[Vec<u8>], language: &Language<'_>) -> Vec<u8> {
        assert!(!corpus.is_empty(), "there is nothing to damage");
        assert!(!language.pieces.is_empty(), "a language has pieces");
        let mut bytes = corpus[self.below(corpus.len())].clone();
        if self.below(4) == 0 {
            let other = &corpus[self.below(corpus.len())];
            bytes.truncate(self.below(bytes.len() + 1));
            bytes.extend_from_slice(&other[self.below(other.len() + 1)..]);
        }
        for _ in 0..=self.below(4) {
            self.mutate(&mut bytes, language);
        }
        bytes
    }

    fn mutate(&mut self, bytes: &mut Vec<u8>, language: &Language<'_>) {
        let from = self.below(bytes.len() + 1);
        let length = self.below(12).min(bytes.len() - from);
        let piece = language.pieces[self.below(language.pieces.len())];
        match self.below(7) {
            0 => drop(bytes.drain(from..from + length)),
            1 => drop(bytes.splice(from..from, piece.iter().copied())),
            2 => drop(bytes.splice(from..from + length, piece.iter().copied())),
            3 => {
                let copy = bytes[from..from + length].to_vec();
                drop(bytes.splice(from..from, copy.into_iter().cycle().take(length * 40)));
            }
            4 => {
                // Replace a whole value, which often leaves the input valid.
                if let Some(field) = language.field {
                    self.replace_value(bytes, field, piece);
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

    fn replace_value(&mut self, bytes: &mut Vec<u8>, field: Field, piece: &[u8]) {
        let is_start = |at: &usize| bytes[*at] == field.begins_after;
        let starts: Vec<usize> = (0..bytes.len()).filter(is_start).collect();
        if starts.is_empty() {
            return;
        }
        let from = starts[self.below(starts.len())] + 1;
        let length = bytes[from..]
            .iter()
            .position(|byte| *byte == field.ends_before);
        let end = length.map_or(bytes.len(), |length| from + length);
        drop(bytes.splice(from..end, piece.iter().copied()));
    }

    /// Returns a number below `end`: SplitMix64 with its published constants; modulo is uniform
    /// enough here.
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

#[cfg(test)]
mod tests {
    use super::*;

    const COOKIES: Language<'_> = Language {
        pieces: &[b"new"],
        field: Some(Field {
            begins_after: b'=',
            ends_before: b';',
        }),
    };

    #[test]
    fn an_empty_input_can_be_damaged() {
        for seed in 0..1000 {
            let _ = Mutator::new(seed).damage(&[Vec::new()], &COOKIES);
        }
    }

    #[test]
    fn damage_differs_between_seeds_and_has_a_limit() {
        let corpus = [b"a=1; b=2".to_vec()];
        let mut results: Vec<_> = (0..1000)
            .map(|seed| Mutator::new(seed).damage(&corpus, &COOKIES))
            .collect();
        // Five changes that each repeat eleven bytes forty times, and two inputs.
        assert!(results.iter().all(|bytes| bytes.len() <= 5 * 11 * 40 + 16));
        results.sort();
        results.dedup();
        assert!(results.len() > 500, "{} different results", results.len());
    }

    #[test]
    fn a_value_is_replaced_up_to_its_end_and_no_further() {
        let field = COOKIES.field.unwrap();
        let check = |input: &str, expected: &str| {
            let mut bytes = input.as_bytes().to_vec();
            Mutator::new(1).replace_value(&mut bytes, field, b"new");
            assert_eq!(String::from_utf8(bytes).unwrap(), expected);
        };
        check("a=1; b", "a=new; b");
        check("a=1", "a=new");
        check("a=", "a=new");
        check("a", "a");
    }
}
