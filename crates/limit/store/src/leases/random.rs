//! Random numbers that cannot be guessed and do not repeat: for incarnations, tokens, epochs and
//! retries.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use siphasher::sip::SipHasher24;

/// Source of random numbers. The system provides a secret once; all numbers derive from it.
pub(crate) struct Draws {
    secret: [u8; 16],
    drawn: AtomicU64,
}

impl Draws {
    pub(crate) fn new() -> Result<Self, getrandom::Error> {
        let mut secret = [0; 16];
        getrandom::fill(&mut secret)?;
        Ok(Self {
            secret,
            drawn: AtomicU64::new(0),
        })
    }

    pub(crate) fn number(&self) -> u64 {
        let at = self.drawn.fetch_add(1, Ordering::Relaxed);
        SipHasher24::new_with_key(&self.secret).hash(&at.to_le_bytes())
    }

    /// Returns the token of a write; never zero, which stands for none.
    pub(crate) fn token(&self) -> u128 {
        (u128::from(self.number()) << 64 | u128::from(self.number())).max(1)
    }

    /// Returns a number below `bound`, or zero if `bound` is zero.
    pub(crate) fn below(&self, bound: u64) -> u64 {
        self.number().checked_rem(bound).unwrap_or(0)
    }
}

impl fmt::Debug for Draws {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Draws")
    }
}
