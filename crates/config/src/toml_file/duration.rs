//! Text form of a duration: `90s`, `5m`, `1h30m`, `250ms`.
//!
//! A number without a unit is not accepted: some products count in minutes, others in seconds.

use anteroom_room::time::DurationMs;

/// Units from long to short, each in milliseconds.
const UNITS: [(&str, u64); 5] = [
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1_000),
    ("ms", 1),
];

/// Reads a duration: whole numbers with units, the longer unit first, each at most once.
///
/// `None` for everything else, also for what does not fit 64 bits of milliseconds.
#[must_use]
pub fn parse(text: &str) -> Option<DurationMs> {
    let mut rest = text.trim();
    let mut units = UNITS.iter();
    let mut total: u64 = 0;
    let mut is_empty = true;
    while !rest.is_empty() {
        let (number, after) = split_while(rest, |byte| byte.is_ascii_digit());
        let (unit, after) = split_while(after.trim_start(), |byte| byte.is_ascii_alphabetic());
        // `units` only moves forward, so an earlier or longer unit is not found again.
        let (_, millis) = units.find(|(name, _)| name.eq_ignore_ascii_case(unit))?;
        let number: u64 = number.parse().ok()?;
        total = total.checked_add(number.checked_mul(*millis)?)?;
        rest = after.trim_start();
        is_empty = false;
    }
    (!is_empty).then_some(DurationMs(total))
}

/// Formats a duration in the way that [`parse`] reads it, in the fewest exact units.
#[must_use]
pub fn text(span: DurationMs) -> String {
    let mut rest = span.0;
    let mut out = String::new();
    // A day stays `24h`, as people write it.
    for (unit, millis) in UNITS.iter().skip(1) {
        let number = rest / millis;
        rest %= millis;
        if number > 0 {
            out.push_str(&number.to_string());
            out.push_str(unit);
        }
    }
    if out.is_empty() { "0s".to_owned() } else { out }
}

fn split_while(text: &str, accept: impl Fn(&u8) -> bool) -> (&str, &str) {
    let end = text.bytes().take_while(|byte| accept(byte)).count();
    text.split_at(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_with_units_are_added_up() {
        let check = |input: &str, millis: u64| assert_eq!(parse(input), Some(DurationMs(millis)));
        check("250ms", 250);
        check("90s", 90_000);
        check("5m", 300_000);
        check("5 M", 300_000);
        check("1h30m", 5_400_000);
        check(" 1h 30m ", 5_400_000);
        check("1d", 86_400_000);
        check("0s", 0);
    }

    #[test]
    fn what_is_not_clearly_a_duration_is_none() {
        for input in [
            "",
            " ",
            "5",
            "m",
            "5x",
            "-5m",
            "1.5h",
            "30m1h",
            "5m5m",
            "5é",
            "５m",
            "1m 2",
            "99999999999999999999s",
            "18446744073709551615d",
        ] {
            assert_eq!(parse(input), None, "{input:?}");
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        for millis in [
            0,
            1,
            999,
            1_000,
            61_000,
            300_000,
            5_400_000,
            86_400_000,
            u64::MAX,
        ] {
            assert_eq!(parse(&text(DurationMs(millis))), Some(DurationMs(millis)));
        }
        assert_eq!(text(DurationMs(86_400_000)), "24h");
    }
}
