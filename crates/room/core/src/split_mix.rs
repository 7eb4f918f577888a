//! Repeatable random numbers for models and simulated visitors; no decision draws from here.

/// Stream of numbers that a seed repeats (`SplitMix64`: Steele, Lea, Flood, "Fast splittable
/// pseudorandom number generators", 2014). Neighboring seeds get unrelated streams.
///
/// Not for secrets: one number reveals all that follow.
#[derive(Clone, Copy, Debug)]
pub struct SplitMix(pub u64);

impl SplitMix {
    /// Returns the next number: all values are equally likely.
    pub const fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_are_those_of_the_reference() {
        // First outputs of Sebastiano Vigna's splitmix64.c from 0.
        let mut stream = SplitMix(0);
        let expected = [
            0xe220_a839_7b1d_cdaf,
            0x6e78_9e6a_a1b9_65f4,
            0x06c4_5d18_8009_454f,
        ];
        assert_eq!([(); 3].map(|()| stream.next_u64()), expected);
    }
}
