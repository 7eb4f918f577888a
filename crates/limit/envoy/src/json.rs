//! Requests and responses as JSON, in protobuf's own mapping, like the reference service.
//!
//! Names may be in the spelling of the `.proto` file or in camel case, numbers may be strings, and
//! missing fields have defaults. An unknown name is an error.

use std::fmt;
use std::marker::PhantomData;

use crate::config::Unit;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde_json::{Map, json};

use crate::wire::{
    Code, Descriptor, Entry, Kind, Override, RateLimitRequest, RateLimitResponse, UInt64Value,
    Value,
};

/// Decodes a request.
pub(crate) fn read(bytes: &[u8]) -> Result<RateLimitRequest, serde_json::Error> {
    let Object(read): Object<Request> = serde_json::from_slice(bytes)?;
    Ok(RateLimitRequest {
        domain: read.domain.unwrap_or_default(),
        descriptors: read
            .descriptors
            .into_iter()
            .flatten()
            .map(|Object(read)| read.into())
            .collect(),
        hits_addend: read.hits_addend.map_or(0, |Whole(hits)| hits),
    })
}

/// JSON request. Null means the default, everywhere.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    #[serde(default)]
    domain: Option<String>,
    #[serde(default)]
    descriptors: Option<Vec<Object<ReadDescriptor>>>,
    #[serde(default, alias = "hitsAddend")]
    hits_addend: Option<Whole<u32>>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadDescriptor {
    #[serde(default)]
    entries: Option<Vec<Object<ReadEntry>>>,
    #[serde(default)]
    limit: Option<Object<ReadOverride>>,
    #[serde(default, alias = "hitsAddend")]
    hits_addend: Option<Whole<u64>>,
    #[serde(default, alias = "isNegativeHits")]
    is_negative_hits: Option<bool>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadEntry {
    #[serde(default)]
    key: Option<String>,
    #[serde(default)]
    value: Option<String>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadOverride {
    #[serde(default, alias = "requestsPerUnit")]
    requests_per_unit: Option<Whole<u32>>,
    #[serde(default)]
    unit: Option<UnitNumber>,
}

impl From<ReadDescriptor> for Descriptor {
    fn from(read: ReadDescriptor) -> Self {
        let entries = read
            .entries
            .into_iter()
            .flatten()
            .map(|Object(read)| Entry {
                key: read.key.unwrap_or_default(),
                value: read.value.unwrap_or_default(),
            });
        Self {
            entries: entries.collect(),
            limit: read.limit.map(|Object(read)| Override {
                requests_per_unit: read.requests_per_unit.map_or(0, |Whole(count)| count),
                unit: read.unit.map_or(0, |UnitNumber(unit)| unit),
            }),
            hits_addend: read.hits_addend.map(|Whole(value)| UInt64Value { value }),
            is_negative_hits: read.is_negative_hits.unwrap_or(false),
        }
    }
}

/// JSON object. Without this wrapper serde would also accept a list of fields in order.
struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer
            .deserialize_map(ObjectVisitor(PhantomData))
            .map(Self)
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map))
    }
}

/// Whole number, also as a string or with a zero fraction.
struct Whole<T>(T);

impl<'de, T: TryFrom<u64>> Deserialize<'de> for Whole<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = deserializer.deserialize_any(WholeVisitor)?;
        let small = T::try_from(number).map_err(|_| D::Error::custom("number out of range"))?;
        Ok(Self(small))
    }
}

struct WholeVisitor;

impl Visitor<'_> for WholeVisitor {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number that is not negative")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<u64, E> {
        Ok(number)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<u64, E> {
        u64::try_from(number).map_err(|_| E::custom("number out of range"))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<u64, E> {
        // All whole numbers up to this bound are exact.
        let is_whole = number.fract() == 0.0 && (0.0..=9_007_199_254_740_992.0).contains(&number);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "checked for range and fraction above"
        )]
        let whole = number as u64;
        is_whole
            .then_some(whole)
            .ok_or_else(|| E::custom("number is not whole or out of range"))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<u64, E> {
        text.parse()
            .map_err(|_| E::custom("text is not a whole number"))
    }
}

/// Unit by its name or its number.
struct UnitNumber(i32);

impl<'de> Deserialize<'de> for UnitNumber {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(serde::Deserialize)]
        #[serde(untagged)]
        enum Read {
            Number(i32),
            Name(String),
        }
        match Read::deserialize(deserializer)? {
            Read::Number(number) => Ok(Self(number)),
            Read::Name(name) if name == "UNKNOWN" => Ok(Self(0)),
            Read::Name(name) => {
                let mut units = Unit::ALL.into_iter();
                let unit = units.find(|unit| unit.name() == name);
                let unit = unit.ok_or_else(|| D::Error::custom("unknown unit"))?;
                Ok(Self(unit.number()))
            }
        }
    }
}

/// Encodes a response.
pub(crate) fn write(response: &RateLimitResponse) -> Vec<u8> {
    let mut object = Map::new();
    object.insert("overallCode".to_owned(), code(response.overall_code).into());
    let statuses = response.statuses.iter().map(|status| {
        let mut object = Map::new();
        object.insert("code".to_owned(), code(status.code).into());
        if let Some(limit) = &status.current_limit {
            let mut of = Map::new();
            if limit.requests_per_unit > 0 {
                of.insert("requestsPerUnit".to_owned(), limit.requests_per_unit.into());
            }
            let unit = Unit::from_number(limit.unit).map_or("UNKNOWN", Unit::name);
            of.insert("unit".to_owned(), unit.into());
            if !limit.name.is_empty() {
                of.insert("name".to_owned(), limit.name.as_str().into());
            }
            object.insert("currentLimit".to_owned(), of.into());
        }
        if status.limit_remaining > 0 {
            object.insert("limitRemaining".to_owned(), status.limit_remaining.into());
        }
        if let Some(reset) = status.duration_until_reset {
            let text = format!("{}s", reset.seconds);
            object.insert("durationUntilReset".to_owned(), text.into());
        }
        serde_json::Value::from(object)
    });
    let statuses: Vec<_> = statuses.collect();
    if !statuses.is_empty() {
        object.insert("statuses".to_owned(), statuses.into());
    }
    let headers = response.response_headers_to_add.iter();
    let headers: Vec<_> = headers
        .map(|header| json!({ "key": header.key, "value": header.value }))
        .collect();
    if !headers.is_empty() {
        object.insert("responseHeadersToAdd".to_owned(), headers.into());
    }
    if let Some(metadata) = &response.dynamic_metadata {
        let fields = metadata.fields.iter();
        let fields: Map<_, _> = fields.map(|(name, of)| (name.clone(), value(of))).collect();
        object.insert("dynamicMetadata".to_owned(), fields.into());
    }
    serde_json::Value::from(object).to_string().into_bytes()
}

fn code(code: i32) -> &'static str {
    match Code::try_from(code) {
        Ok(Code::Ok) => "OK",
        Ok(Code::OverLimit) => "OVER_LIMIT",
        Ok(Code::Unknown) | Err(_) => "UNKNOWN",
    }
}

fn value(of: &Value) -> serde_json::Value {
    match &of.kind {
        None | Some(Kind::NullValue(_)) => serde_json::Value::Null,
        Some(Kind::NumberValue(number)) => json!(number),
        Some(Kind::StringValue(text)) => json!(text),
        Some(Kind::BoolValue(is_so)) => json!(is_so),
        Some(Kind::StructValue(values)) => {
            let fields = values.fields.iter();
            let fields: Map<_, _> = fields.map(|(name, of)| (name.clone(), value(of))).collect();
            fields.into()
        }
        Some(Kind::ListValue(values)) => values.values.iter().map(value).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_and_numbers_as_strings_are_read() {
        let snake =
            br#"{"domain":"d","hits_addend":3,"descriptors":[{"entries":[{"key":"k","value":"v"}],
            "limit":{"requests_per_unit":7,"unit":"MINUTE"},"hits_addend":5,
            "is_negative_hits":true}]}"#;
        let camel =
            br#"{"domain":"d","hitsAddend":"3","descriptors":[{"entries":[{"key":"k","value":"v"}],
            "limit":{"requestsPerUnit":7.0,"unit":2},"hitsAddend":"5","isNegativeHits":true}]}"#;
        let both = [&snake[..], camel].map(|text| read(text).unwrap());
        assert_eq!(both[0], both[1]);
        let descriptor = &both[0].descriptors[0];
        assert_eq!(descriptor.hits_addend, Some(UInt64Value { value: 5 }));
        assert_eq!(descriptor.limit.unwrap().unit, 2);
        assert_eq!(both[0].hits_addend, 3);
    }

    #[test]
    fn missing_and_null_fields_have_protobuf_defaults() {
        let null = br#"{"domain":null,"descriptors":null,"hitsAddend":null}"#;
        for text in [&b"{}"[..], null] {
            assert_eq!(read(text).unwrap(), RateLimitRequest::default());
        }
    }

    #[test]
    fn what_protobuf_rejects_is_rejected() {
        for text in [
            "",
            "[]",
            r#"{"descriptors":[[]]}"#,
            r#"{"domains":"d"}"#,
            r#"{"domain":5}"#,
            r#"{"hitsAddend":-1}"#,
            r#"{"hitsAddend":1.5}"#,
            r#"{"hitsAddend":4294967296}"#,
            r#"{"hits_addend":1,"hitsAddend":1}"#,
            r#"{"descriptors":[{"limit":{"unit":"FORTNIGHT"}}]}"#,
        ] {
            assert!(read(text.as_bytes()).is_err(), "{text}");
        }
    }
}
