//! Keys that an object of a body has twice. Parsers take the last one, and the client would not
//! learn that the other one was lost.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Returns the JSON pointer of the first key that comes twice; `None` if none does, as far as the
/// text is JSON.
pub(crate) fn duplicate_key(json: &[u8]) -> Option<String> {
    let found = RefCell::new(None);
    let place = Place {
        pointer: String::new(),
        found: &found,
    };
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    // An error is found by the parser of the body as well.
    let _ = deserializer.deserialize_any(place);
    found.into_inner()
}

/// Returns a name as a step of a JSON pointer.
pub(crate) fn step(name: &str) -> String {
    format!("/{}", name.replace('~', "~0").replace('/', "~1"))
}

/// Value at a place of the body.
struct Place<'a> {
    pointer: String,
    found: &'a RefCell<Option<String>>,
}

impl Place<'_> {
    fn below(&self, name: &str) -> Self {
        Self {
            pointer: format!("{}{}", self.pointer, step(name)),
            found: self.found,
        }
    }
}

impl<'de> DeserializeSeed<'de> for Place<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Place<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut known = BTreeSet::new();
        while let Some(key) = map.next_key::<String>()? {
            let below = self.below(&key);
            if known.contains(&key) {
                self.found.borrow_mut().get_or_insert(below.pointer);
                map.next_value::<IgnoredAny>()?;
            } else {
                known.insert(key);
                map.next_value_seed(below)?;
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let mut number = 0;
        while list
            .next_element_seed(self.below(&number.to_string()))?
            .is_some()
        {
            number += 1;
        }
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_key_that_comes_twice_is_found() {
        let check = |json: &str, expected: Option<&str>| {
            assert_eq!(
                duplicate_key(json.as_bytes()).as_deref(),
                expected,
                "{json}"
            );
        };
        check("{\"a\": 1, \"b\": {\"a\": [1, 2.5, -1, null, true]}}", None);
        check("{\"a\": 1, \"a\": 1}", Some("/a"));
        check("{\"\\u0061\": 1, \"a\": 1}", Some("/a"));
        check(
            "{\"events\": [{}, {\"x/y\": {\"b\": 1, \"b\": 2}}], \"events\": []}",
            Some("/events/1/x~1y/b"),
        );
        check("[{\"a\": 1}, {\"a\": \"b\"}]", None);
        check("", None);
        check("{\"a\": 1, \"a\"", Some("/a"));
        check("{\"a\": 1, \"b", None);
        let deep = "[".repeat(100_000);
        check(&deep, None);
    }
}
