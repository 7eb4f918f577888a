//! Identity of a counter: bytes that differ whenever domain, keys or values do.

use std::fmt;

use smallvec::SmallVec;

/// Identity of a counter: the domain and all entries of the descriptor, with a shared pattern in
/// place of its values.
///
/// The unit is not part of it: limits of different units are kept apart elsewhere. Neither is the
/// limit itself, so that a changed limit keeps its counts.
///
/// # Invariants
///
/// - Two are equal only if domain and entries are. Every text follows its length, so no request can
///   imitate another identity. The reference service joins the texts by `_`.
/// - It is the same on every node and after every restart.
#[derive(Clone, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct CounterIdentity(SmallVec<[u8; USUAL_BYTES]>);

/// Bytes that fit without the heap: a domain, a key or two, an address. Each request makes one
/// identity per descriptor.
const USUAL_BYTES: usize = 48;

impl CounterIdentity {
    pub(crate) fn new<'a>(
        domain: &str,
        pairs: impl Iterator<Item = (&'a str, &'a str)> + Clone,
    ) -> Self {
        let texts = pairs
            .clone()
            .map(|(key, value)| encoded_len(key) + encoded_len(value));
        let mut buffer = SmallVec::with_capacity(encoded_len(domain) + texts.sum::<usize>());
        push(&mut buffer, domain);
        for (key, value) in pairs {
            push(&mut buffer, key);
            push(&mut buffer, value);
        }
        Self(buffer)
    }

    /// Returns the bytes, for use as a store's key or part of one.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Returns how many bytes [`push`] adds.
fn encoded_len(text: &str) -> usize {
    text.len() + text.len().checked_ilog2().unwrap_or_default() as usize / 7 + 1
}

/// Appends the length in groups of seven bits, the lowest first, and the text.
fn push(buffer: &mut SmallVec<[u8; USUAL_BYTES]>, text: &str) {
    let mut rest = text.len();
    while rest > 0x7f {
        buffer.push(0x80 | rest.to_le_bytes()[0]);
        rest >>= 7;
    }
    buffer.push(rest.to_le_bytes()[0]);
    buffer.extend_from_slice(text.as_bytes());
}

impl fmt::Debug for CounterIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CounterIdentity({})", self.0.escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn identity(domain: &str, pairs: &[(&str, &str)]) -> CounterIdentity {
        CounterIdentity::new(domain, pairs.iter().copied())
    }

    #[test]
    fn texts_that_join_alike_have_different_identities() {
        let all = [
            identity("d", &[("a_b", "")]),
            identity("d", &[("a", "b")]),
            identity("d", &[("a", ""), ("b", "")]),
            identity("d_a", &[("b", "")]),
            identity("d", &[("a", "b_c")]),
            identity("d", &[("a_b", "c")]),
            identity("d", &[("a", "b"), ("c", "")]),
            identity("d", &[]),
        ];
        for (index, one) in all.iter().enumerate() {
            assert!(!all[index + 1..].contains(one), "{one:?}");
        }
    }

    #[test]
    fn the_bytes_are_lengths_and_texts() {
        let bytes = identity("d", &[("key", "")]).0;
        assert_eq!(&*bytes, b"\x01d\x03key\x00");
        let long = "x".repeat(300);
        let bytes = identity("", &[(&long, "")]).0;
        assert_eq!(&bytes[..4], b"\x00\xac\x02x");
        assert_eq!(bytes.len(), 1 + 2 + 300 + 1);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]

        #[test]
        fn identities_are_equal_only_if_all_texts_are(
            one in proptest::collection::vec("[a\\x00\\x01]{0,2}", 1..6),
            other in proptest::collection::vec("[a\\x00\\x01]{0,2}", 1..6),
        ) {
            let of = |texts: &[String]| {
                let pairs: Vec<(&str, &str)> = texts[1..]
                    .chunks(2)
                    .map(|pair| (&*pair[0], pair.get(1).map_or("", |value| value)))
                    .collect();
                (identity(&texts[0], &pairs), format!("{:?} {pairs:?}", texts[0]))
            };
            let ((one, one_texts), (other, other_texts)) = (of(&one), of(&other));
            prop_assert_eq!(one == other, one_texts == other_texts);
        }
    }
}
