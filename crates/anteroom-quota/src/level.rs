//! Who gets how much of what is there, if all want more than that?
//!
//! Max-min fair: nobody gets more than it wants, and whoever gets less than that has, with what it got before, no less than
//! anybody else. As water finds its level in vessels of different height.

use alloc::vec::Vec;

/// What one of those wants who share.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Want {
    /// What it got before.
    pub got: u64,
    /// What it wants now.
    pub more: u32,
}

impl Want {
    fn below(&self, level: u64) -> u64 {
        level.saturating_sub(self.got).min(self.more.into())
    }
}

/// What each gets of `room`, in their order: all of it if they want as much.
#[must_use]
pub fn shares(wants: &[Want], room: u32) -> Vec<u32> {
    let sum = |level: u64| -> u64 { wants.iter().map(|want| want.below(level)).sum() };
    let room = u64::from(room);
    let highest = wants
        .iter()
        .map(|want| want.got.saturating_add(want.more.into()));
    let (mut fits, mut above) = (0, highest.max().unwrap_or(0).saturating_add(1));
    // The highest level that fits lies in `fits..above`.
    while above - fits > 1 {
        let middle = fits + (above - fits) / 2;
        if sum(middle) <= room {
            fits = middle;
        } else {
            above = middle;
        }
    }
    // Less than one for each is left.
    let mut left = room.saturating_sub(sum(fits));
    let shares = wants.iter().map(|want| {
        let share = want.below(fits);
        let takes_one_more = left > 0 && want.below(fits + 1) > share;
        left -= u64::from(takes_one_more);
        let share = share + u64::from(takes_one_more);
        u32::try_from(share).unwrap_or(u32::MAX)
    });
    shares.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(wants: &[(u64, u32)], room: u32, expected: &[u32]) {
        let wants: Vec<Want> = wants
            .iter()
            .map(|&(got, more)| Want { got, more })
            .collect();
        assert_eq!(shares(&wants, room), expected, "{wants:?} {room}");
    }

    #[test]
    fn whoever_wants_little_gets_it_and_the_others_share_what_is_left() {
        check(&[(0, 10), (0, 100), (0, 100)], 100, &[10, 45, 45]);
        check(&[(0, 10), (0, 20)], 100, &[10, 20]);
        check(&[(0, 5), (0, 5), (0, 5)], 7, &[3, 2, 2]);
        check(&[(0, 5)], 0, &[0]);
        check(&[], 9, &[]);
    }

    #[test]
    fn whoever_got_more_before_gets_less_now() {
        check(&[(50, 100), (0, 100)], 50, &[0, 50]);
        check(&[(50, 100), (0, 100)], 100, &[25, 75]);
        check(&[(50, 100), (0, 20)], 50, &[30, 20]);
    }

    #[test]
    fn the_largest_figures_do_not_overflow() {
        let most = (u64::MAX, u32::MAX);
        check(&[most, (0, u32::MAX)], u32::MAX, &[0, u32::MAX]);
        check(&[most, most], u32::MAX, &[0, 0]);
    }
}
