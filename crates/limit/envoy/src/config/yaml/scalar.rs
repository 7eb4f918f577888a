//! Meaning of a scalar: a number, a boolean or a string, by the rules of go's `yaml.v2`. They are
//! mostly those of YAML 1.1: `yes` and `on` are true, `010` is eight, `1_000` a thousand.

/// Scalar, and its meaning.
#[derive(Debug)]
pub(crate) struct Scalar {
    /// Text without quotes.
    pub(crate) text: Box<str>,
    /// Meaning of the text.
    pub(crate) plain: Plain,
    /// Tag before it, as messages show it (`!!int`), if there is one.
    pub(crate) tag: Option<Box<str>>,
    /// Whether it has neither quotes nor a tag.
    pub(crate) is_implicit: bool,
}

/// Meaning of a scalar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Plain {
    Null,
    Bool(bool),
    Int(i64),
    /// A whole number that is too large to be signed.
    Uint(u64),
    Float(f64),
    /// A date, which is a string unless a date is expected.
    Date,
    Text,
}

impl Plain {
    /// Returns its tag in `yaml.v2`.
    pub(crate) const fn tag(self) -> &'static str {
        match self {
            Self::Null => "!!null",
            Self::Bool(_) => "!!bool",
            Self::Int(_) | Self::Uint(_) => "!!int",
            Self::Float(_) => "!!float",
            Self::Date => "!!timestamp",
            Self::Text => "!!str",
        }
    }

    pub(crate) const fn is_text(self) -> bool {
        matches!(self, Self::Date | Self::Text)
    }
}

impl Scalar {
    pub(super) fn null() -> Self {
        Self {
            text: "".into(),
            plain: Plain::Null,
            tag: None,
            is_implicit: true,
        }
    }

    /// Whether it is a key that merges another map in.
    pub(super) fn is_merge(&self) -> bool {
        let is_tagged = self.tag.as_deref() == Some("!!merge");
        &*self.text == "<<" && (self.is_implicit || is_tagged)
    }
}

/// Returns the meaning of a scalar with this tag, or the message of `yaml.v2`.
pub(super) fn resolve_tagged(tag: &str, text: &str) -> Result<Plain, String> {
    let plain = resolve(text);
    let is_right = match (tag, plain) {
        ("!!str", _) => return Ok(Plain::Text),
        ("!!float", Plain::Int(value)) => {
            #[expect(clippy::cast_precision_loss, reason = "yaml.v2 rounds it, too")]
            let value = value as f64;
            return Ok(Plain::Float(value));
        }
        ("!!bool" | "!!int" | "!!float" | "!!null" | "!!timestamp", _) => tag == plain.tag(),
        // Descriptors have no use for Base64, so it is not decoded and not accepted either.
        ("!!binary", _) => return Err("!!binary is not supported".to_owned()),
        // With any other tag the scalar is a string.
        _ => return Ok(Plain::Text),
    };
    if is_right {
        return Ok(plain);
    }
    let is = plain.tag();
    Err(format!("cannot decode {is} `{text}` as a {tag}"))
}

/// Returns the meaning of a scalar without quotes and without a tag.
pub(super) fn resolve(text: &str) -> Plain {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Plain::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            return Plain::Bool(true);
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return Plain::Bool(false);
        }
        ".nan" | ".NaN" | ".NAN" => return Plain::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => {
            return Plain::Float(f64::INFINITY);
        }
        "-.inf" | "-.Inf" | "-.INF" => return Plain::Float(f64::NEG_INFINITY),
        _ => {}
    }
    match text.as_bytes()[0] {
        b'.' => float(text).unwrap_or(Plain::Text),
        b'0'..=b'9' | b'+' | b'-' => number(text),
        _ => Plain::Text,
    }
}

fn number(text: &str) -> Plain {
    if is_date(text) {
        return Plain::Date;
    }
    let plain = text.replace('_', "");
    let (is_negative, unsigned) = match plain.as_bytes().first() {
        Some(b'-') => (true, &plain[1..]),
        Some(b'+') => (false, &plain[1..]),
        _ => (false, &*plain),
    };
    let is_signed = unsigned.len() < plain.len();
    if let Some(value) = magnitude(unsigned) {
        let signed = if is_negative {
            0_i64.checked_sub_unsigned(value)
        } else {
            i64::try_from(value).ok()
        };
        match signed {
            Some(value) => return Plain::Int(value),
            None if !is_signed => return Plain::Uint(value),
            None => {}
        }
    }
    if is_float(unsigned) {
        return float(&plain).unwrap_or(Plain::Text);
    }
    Plain::Text
}

/// Parses a whole number without a sign, with the prefixes that go knows.
fn magnitude(text: &str) -> Option<u64> {
    let bytes = text.as_bytes();
    let (radix, digits) = match bytes {
        [b'0', b'x' | b'X', ..] => (16, &text[2..]),
        [b'0', b'b' | b'B', ..] => (2, &text[2..]),
        [b'0', b'o' | b'O', ..] => (8, &text[2..]),
        [b'0', _, ..] => (8, &text[1..]),
        _ => (10, text),
    };
    // Rust accepts a sign here, go does not.
    let is_digits = digits.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let value = u64::from_str_radix(digits, radix);
    value.ok().filter(|_| is_digits)
}

/// Whether it consists of digits with a point or an exponent among them.
fn is_float(text: &str) -> bool {
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let is_exponent = exponent.is_none_or(|exponent| {
        let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        !digits.is_empty() && is_digits(digits)
    });
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_mantissa = is_digits(whole) && is_digits(fraction);
    is_exponent && is_mantissa && !(whole.is_empty() && fraction.is_empty())
}

/// Parses a float; a number that is too large is none.
fn float(text: &str) -> Option<Plain> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let value: f64 = text.parse().ok().filter(|_| is_float(unsigned))?;
    value.is_finite().then_some(Plain::Float(value))
}

/// Whether it is a date as in `2030-01-31`. `yaml.v2` also knows times of day. No setting expects
/// either, and only messages about wrong types distinguish them from strings.
fn is_date(text: &str) -> bool {
    let mut parts = text.split('-');
    let mut number = |lengths: std::ops::RangeInclusive<usize>| {
        let part = parts.next().filter(|part| lengths.contains(&part.len()))?;
        let is_digits = part.bytes().all(|byte| byte.is_ascii_digit());
        part.parse::<u32>().ok().filter(|_| is_digits)
    };
    let date = (number(4..=4), number(1..=2), number(1..=2));
    let is_end = parts.next().is_none();
    is_end && matches!(date, (Some(_), Some(1..=12), Some(1..=31)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Plain) {
        let plain = resolve(text);
        assert_eq!(format!("{plain:?}"), format!("{expected:?}"), "{text:?}");
    }

    #[test]
    fn words_are_resolved_like_in_yaml_v2() {
        for text in ["", "~", "null", "Null", "NULL"] {
            check(text, Plain::Null);
        }
        for text in ["y", "Y", "yes", "on", "TRUE", "On"] {
            check(text, Plain::Bool(true));
        }
        for text in ["n", "N", "no", "off", "FALSE", "Off"] {
            check(text, Plain::Bool(false));
        }
        for text in ["nULL", "yEs", "tRUE", "abc", "<<", "*", "é", "_1", "e5"] {
            check(text, Plain::Text);
        }
    }

    #[test]
    fn whole_numbers_are_read_in_every_notation_of_go() {
        for (text, value) in [
            ("0", 0),
            ("5", 5),
            ("+5", 5),
            ("-5", -5),
            ("1_000", 1_000),
            ("1__0_", 10),
            ("-_1", -1),
            ("010", 8),
            ("0o10", 8),
            ("0x1F", 31),
            ("0X_1", 1),
            ("0b11", 3),
            ("-0b11", -3),
            ("-0x10", -16),
            ("9223372036854775807", i64::MAX),
            ("-9223372036854775808", i64::MIN),
        ] {
            check(text, Plain::Int(value));
        }
        check("9223372036854775808", Plain::Uint(1 << 63));
        check("18446744073709551615", Plain::Uint(u64::MAX));
    }

    #[test]
    fn other_numbers_are_floats_and_what_is_no_number_a_text() {
        for (text, value) in [
            ("1.5", 1.5),
            ("-1.5e3", -1_500.0),
            ("1.", 1.0),
            (".5", 0.5),
            ("018", 18.0),
            ("1e3", 1_000.0),
            ("1_0.5", 10.5),
            ("18446744073709551616", 18_446_744_073_709_551_616.0),
            ("+9223372036854775808", 9_223_372_036_854_775_808.0),
            (".inf", f64::INFINITY),
            ("-.INF", f64::NEG_INFINITY),
            (".NaN", f64::NAN),
        ] {
            check(text, Plain::Float(value));
        }
        for text in [
            "0b",
            "0x",
            "0xg",
            "-",
            "+",
            "--1",
            "+-1",
            "1.2.3",
            "1e",
            "1e+",
            "e1",
            ".",
            ".e1",
            "1e400",
            "inf",
            "1:30",
            "127.0.0.1",
            "0x+1",
            "-0x-1",
            "._5",
            "5m",
        ] {
            check(text, Plain::Text);
        }
    }

    #[test]
    fn dates_are_distinguished_from_strings() {
        for text in ["2030-01-31", "2030-1-1"] {
            check(text, Plain::Date);
        }
        for text in [
            "2030-13-01",
            "2030-01-32",
            "203-01-01",
            "2030-01",
            "2030-01-01-01",
        ] {
            check(text, Plain::Text);
        }
    }

    #[test]
    fn a_tag_is_obeyed_or_the_file_is_rejected() {
        let check = |tag, text, expected: Result<Plain, &str>| {
            let expected = expected.map_err(str::to_owned);
            assert_eq!(resolve_tagged(tag, text), expected, "{tag} {text}");
        };
        check("!!str", "5", Ok(Plain::Text));
        check("!!int", "5", Ok(Plain::Int(5)));
        check("!!float", "5", Ok(Plain::Float(5.0)));
        check("!!null", "~", Ok(Plain::Null));
        check("!foo", "5", Ok(Plain::Text));
        check("!!bool", "x", Err("cannot decode !!str `x` as a !!bool"));
        check(
            "!!int",
            "1.5",
            Err("cannot decode !!float `1.5` as a !!int"),
        );
        check("!!binary", "eA==", Err("!!binary is not supported"));
    }
}
