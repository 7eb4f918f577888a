//! Changes to a scenario from the command line: `room.shop.new_users_per_minute=900`, or several
//! values, which are compared.
//!
//! A setting goes into the file before the file is read. The reader of the file then checks the key
//! and the value.

/// Most combinations of values: each is simulated under every allocation.
pub const COMBINATIONS_MAX: usize = 64;

/// Key of a scenario and its new value.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Setting {
    /// Origin of the setting in messages, such as `--set`.
    pub source: &'static str,
    /// Path of the key, such as `room.shop.new_users_per_minute` or `fault[1].at`.
    pub key: String,
    /// Value as TOML; anything else is text.
    pub value: String,
}

/// Error of reading settings.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SettingError {
    /// The text has no `=`, or nothing before it.
    #[error(
        "{text:?} is not a setting: write KEY=VALUE, such as room.shop.new_users_per_minute=900"
    )]
    NotASetting {
        /// Text as typed.
        text: String,
    },
    /// The values of all keys make too many combinations.
    #[error(
        "the values of --set make {count} combinations: at most {COMBINATIONS_MAX} are compared"
    )]
    TooMany {
        /// Number of combinations.
        count: usize,
    },
}

/// Returns every combination of the typed values: `a=1,2` and `b=3` make two. A key that comes
/// again adds values. No settings make one combination without any.
///
/// # Errors
///
/// Returns [`SettingError`] for the first text that is no setting, or if there are too many
/// combinations.
pub fn combinations(typed: &[String]) -> Result<Vec<Vec<Setting>>, SettingError> {
    let mut keys: Vec<(&str, Vec<&str>)> = Vec::new();
    for text in typed {
        let (key, values) = text
            .split_once('=')
            .map(|(key, values)| (key.trim(), split(values)))
            .filter(|(key, _)| !key.is_empty())
            .ok_or_else(|| SettingError::NotASetting { text: text.clone() })?;
        match keys.iter_mut().find(|(known, _)| *known == key) {
            Some((_, known)) => known.extend(values),
            None => keys.push((key, values)),
        }
    }
    let counts = keys.iter().map(|(_, values)| values.len());
    let count = counts.fold(1, usize::saturating_mul);
    if count > COMBINATIONS_MAX {
        return Err(SettingError::TooMany { count });
    }
    let mut all: Vec<Vec<Setting>> = vec![Vec::new()];
    for (key, values) in keys {
        let longer = all.iter().flat_map(|settings| {
            values.iter().map(|value| {
                let setting = Setting {
                    source: "--set",
                    key: key.to_owned(),
                    value: (*value).to_owned(),
                };
                settings.iter().cloned().chain([setting]).collect()
            })
        });
        all = longer.collect();
    }
    Ok(all)
}

/// Splits at commas outside quotes and brackets.
fn split(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut begin = 0;
    let mut depth: usize = 0;
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => depth = depth.saturating_sub(1),
            (None, ',') if depth == 0 => {
                pieces.push(text[begin..at].trim());
                begin = at + 1;
            }
            _ => {}
        }
    }
    pieces.push(text[begin..].trim());
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(texts: &[&str]) -> Result<Vec<String>, SettingError> {
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        let all = combinations(&texts)?;
        let line = |settings: &Vec<Setting>| {
            let each = settings.iter().map(|s| format!("{}={}", s.key, s.value));
            each.collect::<Vec<_>>().join(" ")
        };
        Ok(all.iter().map(line).collect())
    }

    #[test]
    fn several_values_make_a_combination_each() {
        assert_eq!(typed(&[]).unwrap(), [""]);
        assert_eq!(typed(&["a=1,2", "b=x"]).unwrap(), ["a=1 b=x", "a=2 b=x"]);
        assert_eq!(typed(&["a=1", "a = 2"]).unwrap(), ["a=1", "a=2"]);
        let two = ["a=1 b=3", "a=1 b=4", "a=2 b=3", "a=2 b=4"];
        assert_eq!(typed(&["a=1,2", "b=3,4"]).unwrap(), two);
    }

    #[test]
    fn commas_in_lists_and_quotes_are_part_of_the_value() {
        assert_eq!(
            split("[\"1ms\", \"3ms\"], 5ms"),
            ["[\"1ms\", \"3ms\"]", "5ms"]
        );
        assert_eq!(split("'a,b',{c = 1, d = 2}"), ["'a,b'", "{c = 1, d = 2}"]);
        assert_eq!(split(""), [""]);
        assert_eq!(split("]],\"a,"), ["]]", "\"a,"]);
    }

    #[test]
    fn invalid_settings_and_too_many_combinations_are_rejected() {
        for text in ["a", "=1", " = 1", ""] {
            let error = typed(&[text]).unwrap_err();
            assert!(matches!(error, SettingError::NotASetting { .. }), "{text}");
        }
        let many = "a=1,2,3,4,5,6,7,8,9";
        let error = typed(&[many, &many.replace('a', "b")]).unwrap_err();
        assert_eq!(error, SettingError::TooMany { count: 81 });
    }
}
