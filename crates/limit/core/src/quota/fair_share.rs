//! Max-min fair shares of a limit among members that want more than there is.
//!
//! No member gets more than it wants. A member that gets less has, with what it got before, at
//! least as much as any other: requests find a level, like water in vessels of different height.

use alloc::vec::Vec;

/// Demand of one member.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct QuotaDemand {
    /// Requests it got before.
    pub got: u64,
    /// Requests it wants now.
    pub more: u32,
}

impl QuotaDemand {
    fn below(&self, level: u64) -> u64 {
        level.saturating_sub(self.got).min(self.more.into())
    }
}

/// Divides `available` among `wants`, in their order. All of it is divided if they want as much.
#[must_use]
pub fn shares(wants: &[QuotaDemand], available: u32) -> Vec<u32> {
    let sum = |level: u64| -> u64 { wants.iter().map(|want| want.below(level)).sum() };
    let available = u64::from(available);
    let highest = wants
        .iter()
        .map(|want| want.got.saturating_add(want.more.into()));
    let (mut fits, mut above) = (0, highest.max().unwrap_or(0).saturating_add(1));
    // Bisects: the highest level that fits is in `fits..above`.
    while above - fits > 1 {
        let middle = fits + (above - fits) / 2;
        if sum(middle) <= available {
            fits = middle;
        } else {
            above = middle;
        }
    }
    // Less than one request for each member is left.
    let mut left = available.saturating_sub(sum(fits));
    let shares = wants.iter().map(|want| {
        let share = want.below(fits);
        let takes_one_more = left > 0 && want.below(fits + 1) > share;
        left -= u64::from(takes_one_more);
        let share = share + u64::from(takes_one_more);
        u32::try_from(share).unwrap_or(u32::MAX)
    });
    shares.collect()
}

/// Divides `available` among all members of `wants`, and returns the parts of those that are due
/// (the second value). The other parts stay reserved and are zero here.
///
/// With a level alone, a member that got much before would wait until all others have as much. So
/// each member that wants it gets half of an equal part, at least one request. Only the rest is
/// divided by level. The order of members shifts parts by at most one request.
#[must_use]
pub fn parts(wants: &[(QuotaDemand, bool)], available: u32) -> Vec<u32> {
    let due = wants.iter().filter(|(_, is_due)| *is_due).count();
    let due = u32::try_from(due).unwrap_or(u32::MAX).max(1);
    let least = (available / due.saturating_mul(2)).max(1);
    let mut left = available;
    let floors = wants.iter().map(|(want, is_due)| {
        let floor = if *is_due { want.more.min(least) } else { 0 };
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
    let parts = parts.map(|((floor, share), (_, is_due))| if *is_due { floor + share } else { 0 });
    parts.collect()
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    fn check(wants: &[(u64, u32)], available: u32, expected: &[u32]) {
        let wants: Vec<QuotaDemand> = wants
            .iter()
            .map(|&(got, more)| QuotaDemand { got, more })
            .collect();
        assert_eq!(shares(&wants, available), expected, "{wants:?} {available}");
    }

    #[test]
    fn small_demands_are_met_and_others_share_the_rest() {
        check(&[(0, 10), (0, 100), (0, 100)], 100, &[10, 45, 45]);
        check(&[(0, 10), (0, 20)], 100, &[10, 20]);
        check(&[(0, 5), (0, 5), (0, 5)], 7, &[3, 2, 2]);
        check(&[(0, 5)], 0, &[0]);
        check(&[], 9, &[]);
    }

    #[test]
    fn a_member_that_got_more_before_gets_less_now() {
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
    fn each_due_member_gets_some_in_any_order() {
        let due = |got, more| (QuotaDemand { got, more }, true);
        let check = |wants: [(QuotaDemand, bool); 2], available, expected: [u32; 2]| {
            assert_eq!(parts(&wants, available), expected, "{wants:?} {available}");
            let (turned, expected) = ([wants[1], wants[0]], [expected[1], expected[0]]);
            assert_eq!(
                parts(&turned, available),
                expected,
                "{turned:?} {available}"
            );
        };
        check([due(580, 800), due(36, 900)], 420, [105, 315]);
        check([due(580, 800), due(36, 900)], 2, [1, 1]);
        check([due(580, 50), due(36, 900)], 420, [50, 370]);
        check([due(0, 50), due(0, 50)], 420, [50, 50]);
        // The part of a member that is not due stays reserved.
        check(
            [(QuotaDemand { got: 0, more: 90 }, false), due(0, 90)],
            100,
            [0, 50],
        );
    }

    fn check_parts(wants: [(QuotaDemand, bool); 3], available: u32) {
        let parts = parts(&wants, available);
        let context = format!("{wants:?} {available} {parts:?}");
        assert!(parts.iter().sum::<u32>() <= available, "{context}");
        let due = wants.iter().filter(|(_, is_due)| *is_due).count();
        for ((want, is_due), part) in wants.iter().zip(&parts) {
            let most = if *is_due { want.more } else { 0 };
            assert!(*part <= most, "{context}");
            let is_enough = available as usize >= due;
            assert!(*part > 0 || most == 0 || !is_enough, "{context}");
        }
    }

    #[test]
    fn parts_fit_and_each_due_member_with_demand_gets_some() {
        let mut each = Vec::new();
        for got in [0, 4, 50] {
            for more in [0, 1, 3, 60] {
                each.extend([true, false].map(|is_due| (QuotaDemand { got, more }, is_due)));
            }
        }
        for one in &each {
            for other in &each {
                for third in &each {
                    for available in [0, 1, 2, 3, 4, 7, 30, 500] {
                        check_parts([*one, *other, *third], available);
                    }
                }
            }
        }
    }
}
