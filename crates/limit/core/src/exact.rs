//! Products and quotients that are exact, or saturate.
//!
//! Most numbers fit into 64 bits, where a division is many times cheaper than in 128.

/// Divides `a` by `b`, rounded down. `b` is not zero.
pub(crate) fn div_floor(a: u128, b: u64) -> u64 {
    match u64::try_from(a) {
        Ok(a) => a / b,
        Err(_) => saturate(a / u128::from(b)),
    }
}

/// Divides `a` by `b`, rounded up. `b` is not zero.
pub(crate) fn div_ceil(a: u128, b: u64) -> u64 {
    match u64::try_from(a) {
        Ok(a) => a.div_ceil(b),
        Err(_) => saturate(a.div_ceil(u128::from(b))),
    }
}

/// Multiplies `a` and `b`. The product always fits into 128 bits.
pub(crate) fn product(a: u64, b: u64) -> u128 {
    u128::from(a) * u128::from(b)
}

/// Saturates a count at what a verdict can carry.
pub(crate) fn saturate_u32(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn saturate(a: u128) -> u64 {
    u64::try_from(a).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_are_the_same_above_64_bits_and_below() {
        for (a, b, floor, ceil) in [
            (0, 1, 0, 0),
            (7, 2, 3, 4),
            (8, 2, 4, 4),
            (1 << 64, 2, 1 << 63, 1 << 63),
            ((1 << 64) + 1, 2, 1 << 63, (1 << 63) + 1),
            (u128::MAX, 1, u64::MAX, u64::MAX),
        ] {
            assert_eq!((div_floor(a, b), div_ceil(a, b)), (floor, ceil), "{a}/{b}");
        }
    }
}
