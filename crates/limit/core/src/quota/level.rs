//! Who gets how much of what is there, if all want more than that?
//!
//! Max-min fair: nobody gets more than it wants, and whoever gets less than that has, with what it
//! got before, no less than anybody else. As water finds its level in vessels of different height.

use alloc::vec::Vec;

/// What one of those wants who share.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct QuotaDemand {
    /// What it got before.
    pub got: u64,
    /// What it wants now.
    pub more: u32,
}

impl QuotaDemand {
    fn below(&self, level: u64) -> u64 {
        level.saturating_sub(self.got).min(self.more.into())
    }
}

/// What each gets of `room`, in their order: all of it if they want as much.
#[must_use]
pub fn shares(wants: &[QuotaDemand], room: u32) -> Vec<u32> {
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

/// What each of those gets of `room`, in their order, who are told now (the second figure); the
/// others' parts stay there for them, and are none here.
///
/// By level alone, whoever got much before would wait until all others have as much. So half of an
/// equal part, or one, is everybody's who wants it, and only the rest finds its level. Nobody's
/// part depends on its place, but for a single call.
#[must_use]
pub fn parts(wants: &[(QuotaDemand, bool)], room: u32) -> Vec<u32> {
    let told = wants.iter().filter(|(_, is_told)| *is_told).count();
    let told = u32::try_from(told).unwrap_or(u32::MAX).max(1);
    let least = (room / told.saturating_mul(2)).max(1);
    let mut left = room;
    let floors = wants.iter().map(|(want, is_told)| {
        let floor = if *is_told { want.more.min(least) } else { 0 };
        let floor = floor.min(left);
        left -= floor;
        floor
    });
    let floors: Vec<u32> = floors.collect();
    let rest = wants
        .iter()
        .zip(&floors)
        .map(|((want, _), floor)| QuotaDemand {
            got: want.got.saturating_add(u64::from(*floor)),
            more: want.more - floor,
        });
    let rest: Vec<QuotaDemand> = rest.collect();
    let parts = floors.iter().zip(shares(&rest, left)).zip(wants);
    let parts =
        parts.map(|((floor, share), (_, is_told))| if *is_told { floor + share } else { 0 });
    parts.collect()
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    fn check(wants: &[(u64, u32)], room: u32, expected: &[u32]) {
        let wants: Vec<QuotaDemand> = wants
            .iter()
            .map(|&(got, more)| QuotaDemand { got, more })
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
    fn the_largest_stats_do_not_overflow() {
        let most = (u64::MAX, u32::MAX);
        check(&[most, (0, u32::MAX)], u32::MAX, &[0, u32::MAX]);
        check(&[most, most], u32::MAX, &[0, 0]);
    }

    #[test]
    fn whoever_is_told_gets_some_wherever_it_stands() {
        let told = |got, more| (QuotaDemand { got, more }, true);
        let check = |wants: [(QuotaDemand, bool); 2], room, expected: [u32; 2]| {
            assert_eq!(parts(&wants, room), expected, "{wants:?} {room}");
            let (turned, expected) = ([wants[1], wants[0]], [expected[1], expected[0]]);
            assert_eq!(parts(&turned, room), expected, "{turned:?} {room}");
        };
        check([told(580, 800), told(36, 900)], 420, [105, 315]);
        check([told(580, 800), told(36, 900)], 2, [1, 1]);
        check([told(580, 50), told(36, 900)], 420, [50, 370]);
        check([told(0, 50), told(0, 50)], 420, [50, 50]);
        // The part of who is not told stays where it is.
        check(
            [(QuotaDemand { got: 0, more: 90 }, false), told(0, 90)],
            100,
            [0, 50],
        );
    }

    fn check_parts(wants: [(QuotaDemand, bool); 3], room: u32) {
        let parts = parts(&wants, room);
        let said = format!("{wants:?} {room} {parts:?}");
        assert!(parts.iter().sum::<u32>() <= room, "{said}");
        let told = wants.iter().filter(|(_, is_told)| *is_told).count();
        for ((want, is_told), part) in wants.iter().zip(&parts) {
            let most = if *is_told { want.more } else { 0 };
            assert!(*part <= most, "{said}");
            let has_place = room as usize >= told;
            assert!(*part > 0 || most == 0 || !has_place, "{said}");
        }
    }

    #[test]
    fn parts_fit_into_the_room_and_none_is_without_who_wants_some() {
        let mut each = Vec::new();
        for got in [0, 4, 50] {
            for more in [0, 1, 3, 60] {
                each.extend([true, false].map(|is_told| (QuotaDemand { got, more }, is_told)));
            }
        }
        for one in &each {
            for other in &each {
                for third in &each {
                    for room in [0, 1, 2, 3, 4, 7, 30, 500] {
                        check_parts([*one, *other, *third], room);
                    }
                }
            }
        }
    }
}
