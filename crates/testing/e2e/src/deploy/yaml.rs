//! YAML files as JSON, which is the form that their readers use.

use saphyr::{LoadableYamlNode as _, ScalarOwned, YamlOwned};
use serde_json::{Map, Value};

/// Returns all documents of a file.
///
/// # Errors
///
/// Returns the first mistake with its position; also for a repeated key, and for a value that JSON
/// lacks.
pub fn parse(text: &str) -> Result<Vec<Value>, String> {
    let documents = YamlOwned::load_from_str(text).map_err(|error| error.to_string())?;
    documents.into_iter().map(value_of).collect()
}

fn value_of(yaml: YamlOwned) -> Result<Value, String> {
    Ok(match yaml {
        YamlOwned::Value(ScalarOwned::Null) => Value::Null,
        YamlOwned::Value(ScalarOwned::Boolean(value)) => value.into(),
        YamlOwned::Value(ScalarOwned::Integer(value)) => value.into(),
        YamlOwned::Value(ScalarOwned::FloatingPoint(value)) => value.into_inner().into(),
        YamlOwned::Value(ScalarOwned::String(value)) => value.into(),
        YamlOwned::Sequence(values) => {
            let values: Result<Vec<Value>, String> = values.into_iter().map(value_of).collect();
            values?.into()
        }
        YamlOwned::Mapping(entries) => {
            let mut map = Map::new();
            for (key, value) in entries {
                insert(&mut map, value_of(key)?, value_of(value)?)?;
            }
            map.into()
        }
        other => return Err(format!("not a value of JSON: {other:?}")),
    })
}

fn insert(map: &mut Map<String, Value>, key: Value, value: Value) -> Result<(), String> {
    match (key, value) {
        // A merged key gives way to a written one, before or after it.
        (Value::String(key), Value::Object(merged)) if key == "<<" => {
            for (key, value) in merged {
                map.entry(key).or_insert(value);
            }
        }
        (Value::String(key), value) => {
            map.insert(key, value);
        }
        (key, _) => return Err(format!("a key that is not a text: {key}")),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(text: &str, expected: &Value) {
        assert_eq!(
            parse(text).unwrap(),
            std::slice::from_ref(expected),
            "{text}"
        );
    }

    #[test]
    fn a_file_is_read_as_json() {
        check(
            "a: [1, true, ~, 1.5, x]",
            &json!({"a": [1, true, null, 1.5, "x"]}),
        );
        check("a: |\n  b\n  c\n", &json!({"a": "b\nc\n"}));
        assert_eq!(parse("a: 1\n---\nb: 2\n").unwrap().len(), 2);
    }

    #[test]
    fn a_written_key_wins_over_a_merged_one() {
        let text = "x: &x {a: 1, b: 1}\ny:\n  a: 2\n  <<: *x\n";
        let values = parse(text).unwrap();
        assert_eq!(values[0]["y"], json!({"a": 2, "b": 1}));
        let text = "x: &x {a: 1, b: 1}\ny:\n  <<: *x\n  a: 2\n";
        assert_eq!(parse(text).unwrap()[0]["y"], json!({"a": 2, "b": 1}));
    }

    #[test]
    fn a_broken_file_and_a_repeated_key_are_errors() {
        for text in ["a: [1", "a: 1\n b: 2", "a: 1\na: 2", "1: a"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
