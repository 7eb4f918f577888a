//! Numbers for readers: `1,234`, `12.5 %`, `4 min 10 s`.

/// Formats a number as `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns a number that is not negative without its fraction.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cast of a float saturates"
)]
pub fn rounded(number: f64) -> u64 {
    number.round() as u64
}

/// Formats a share as `12.5 %`; a share too small to be seen is `<0.1 %`.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent > 0.0 && percent < 0.05 {
        "<0.1 %".to_owned()
    } else {
        format!("{percent:.1} %")
    }
}

/// Formats a duration as `850 ms`, `12.3 s`, `4 min 10 s` or `1 h 05 min`.
pub fn duration(ms: u64) -> String {
    let (tenths, secs) = (ms / 100, ms.div_ceil(1_000));
    if ms < 1_000 {
        format!("{ms} ms")
    } else if ms < 60_000 {
        format!("{}.{} s", tenths / 10, tenths % 10)
    } else if secs < 3_600 {
        format!("{} min {:02} s", secs / 60, secs % 60)
    } else {
        let minutes = secs.div_ceil(60);
        format!("{} h {:02} min", minutes / 60, minutes % 60)
    }
}

/// Formats a length of time in words, without parts that are zero: `10 min`, `2 days`, `1 h 30
/// min`.
pub fn length(ms: u64) -> String {
    let secs = ms / 1_000;
    let units = [
        (secs / 86_400, if secs < 172_800 { "day" } else { "days" }),
        (secs / 3_600 % 24, "h"),
        (secs / 60 % 60, "min"),
        (secs % 60, "s"),
    ];
    let parts: Vec<String> = units
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, unit)| format!("{count} {unit}"))
        .collect();
    if parts.is_empty() {
        return format!("{ms} ms");
    }
    parts.join(" ")
}

/// Formats the time since the start as `0:05:00`.
pub fn since_start(ms: u64) -> String {
    let secs = ms / 1_000;
    format!("{}:{:02}:{:02}", secs / 3_600, secs / 60 % 60, secs % 60)
}

/// Formats a count as `1 visitor` or `2 visitors`.
pub fn counted(number: u64, one: &str, many: &str) -> String {
    format!(
        "{} {}",
        grouped(number),
        if number == 1 { one } else { many }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_grouped() {
        let check = |number, expected: &str| assert_eq!(grouped(number), expected);
        check(0, "0");
        check(999, "999");
        check(1_000, "1,000");
        check(12_345_678, "12,345,678");
    }

    #[test]
    fn a_small_share_is_never_written_as_zero() {
        let check = |share, expected: &str| assert_eq!(percent(share), expected);
        check(0.0, "0.0 %");
        check(0.000_01, "<0.1 %");
        check(0.1249, "12.5 %");
    }

    #[test]
    fn durations_have_a_unit_that_suits_readers() {
        let check = |ms, expected: &str| assert_eq!(duration(ms), expected);
        check(0, "0 ms");
        check(12_345, "12.3 s");
        check(250_000, "4 min 10 s");
        check(3_900_000, "1 h 05 min");
        let check = |ms, expected: &str| assert_eq!(length(ms), expected);
        check(500, "500 ms");
        check(600_000, "10 min");
        check(172_800_000, "2 days");
        check(90_061_000, "1 day 1 h 1 min 1 s");
        assert_eq!(since_start(3_725_000), "1:02:05");
    }
}
