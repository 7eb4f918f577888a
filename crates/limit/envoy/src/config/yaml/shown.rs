//! Values as go formats them; two messages of the reference contain one.

use std::collections::BTreeMap;

use super::{Plain, Shape, View};

/// Formats like go's `%v`, for readers.
pub(crate) fn as_go_prints(view: View<'_>) -> String {
    let mut text = String::new();
    print(view, &mut text);
    text
}

fn print(view: View<'_>, text: &mut String) {
    match view.shape() {
        Shape::Scalar(scalar) => match scalar.plain {
            Plain::Null => text.push_str("<nil>"),
            Plain::Text | Plain::Date => text.push_str(&scalar.text),
            plain => text.push_str(&number(plain)),
        },
        Shape::List => {
            text.push('[');
            for (index, element) in view.elements().enumerate() {
                if index > 0 {
                    text.push(' ');
                }
                print(element, text);
            }
            text.push(']');
        }
        Shape::Map => {
            text.push_str("map[");
            for (index, (key, value)) in sorted(view).into_iter().enumerate() {
                if index > 0 {
                    text.push(' ');
                }
                print(key, text);
                text.push(':');
                print(value, text);
            }
            text.push(']');
        }
    }
}

/// Formats like go's `%#v`, as source code.
pub(crate) fn as_go_writes(view: View<'_>) -> String {
    match view.shape() {
        Shape::Scalar(scalar) => match scalar.plain {
            Plain::Null => "interface {}(nil)".to_owned(),
            Plain::Text | Plain::Date => format!("{:?}", scalar.text),
            Plain::Uint(value) => format!("{value:#x}"),
            plain => number(plain),
        },
        Shape::List => {
            let elements: Vec<String> = view.elements().map(as_go_writes).collect();
            format!("[]interface {{}}{{{}}}", elements.join(", "))
        }
        Shape::Map => {
            let entries = sorted(view).into_iter();
            let entries: Vec<String> = entries
                .map(|(key, value)| format!("{}:{}", as_go_writes(key), as_go_writes(value)))
                .collect();
            let entries = entries.join(", ");
            format!("map[interface {{}}]interface {{}}{{{entries}}}")
        }
    }
}

/// Returns each key once with its last value, in the order of their formatted keys.
fn sorted(view: View<'_>) -> Vec<(View<'_>, View<'_>)> {
    let entries = view.entries().into_iter();
    let by_key: BTreeMap<String, _> = entries
        .map(|(key, value)| (as_go_prints(key), (key, value)))
        .collect();
    by_key.into_values().collect()
}

fn number(plain: Plain) -> String {
    match plain {
        Plain::Bool(value) => value.to_string(),
        Plain::Int(value) => value.to_string(),
        Plain::Uint(value) => value.to_string(),
        Plain::Float(value) => float(value),
        Plain::Null | Plain::Text | Plain::Date => String::new(),
    }
}

/// Formats with the fewest digits that identify the number, and with an exponent below 1e-4 and
/// from 1e6 on.
fn float(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) {
        return value.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::super::build::parse;
    use super::*;

    #[test]
    fn values_are_formatted_like_go() {
        let check = |text: &str, expected: &str| {
            let tree = parse(text).unwrap();
            assert_eq!(as_go_prints(tree.root()), expected, "{text}");
        };
        check("~", "<nil>");
        check("yes", "true");
        check("0x10", "16");
        check("18446744073709551615", "18446744073709551615");
        check("2030-01-31", "2030-01-31");
        check(
            "[a, [b, 1.5e30], {x: z, 1: ~}]",
            "[a [b 1.5e+30] map[1:<nil> x:z]]",
        );
        check("{b: 1, a: 2, b: 3}", "map[a:2 b:3]");
    }

    #[test]
    fn floats_are_formatted_like_go() {
        for (value, expected) in [
            (1.0, "1"),
            (-0.0, "-0"),
            (0.25, "0.25"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (1e5, "100000"),
            (123456.0, "123456"),
            (1e6, "1e+06"),
            (123456789.5, "1.234567895e+08"),
            (1e21, "1e+21"),
            (1e-7, "1e-07"),
            (1.5e300, "1.5e+300"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "+Inf"),
            (f64::NEG_INFINITY, "-Inf"),
        ] {
            assert_eq!(float(value), expected);
        }
    }
}
