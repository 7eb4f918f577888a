//! Words that a seed repeats, for models and crowds: nothing that is decided draws from here.

/// A stream of words that a seed repeats (`SplitMix64`: Steele, Lea, Flood, "Fast splittable
/// pseudorandom number generators", 2014). Neighbours among seeds get streams that have nothing
/// visible in common.
///
/// Not for secrets: who sees one word knows all that follow.
#[derive(Clone, Copy, Debug)]
pub struct SplitMix(pub u64);

impl SplitMix {
    /// The next word: all values are equally likely.
    pub const fn word(&mut self) -> u64 {
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
        // What Sebastiano Vigna's splitmix64.c says from 0.
        let mut stream = SplitMix(0);
        let expected = [
            0xe220_a839_7b1d_cdaf,
            0x6e78_9e6a_a1b9_65f4,
            0x06c4_5d18_8009_454f,
        ];
        assert_eq!([(); 3].map(|()| stream.word()), expected);
    }
}
