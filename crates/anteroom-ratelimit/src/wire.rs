//! The messages of `envoy.service.ratelimit.v3`, as far as they are read and written here.
//!
//! Written out by hand: they are ten, and the crates that have them bring all of Envoy's interface along, a hundred
//! megabytes of it while it is built. Numbers and types are those of Envoy's `rls.proto` and `ratelimit.proto`;
//! fields that are not here are skipped when they are read, as protobuf wants it. A real Envoy is asked whether it
//! agrees (`tests/envoy`).

use std::collections::BTreeMap;

/// The gRPC method.
pub(crate) const SHOULD_RATE_LIMIT: &str =
    "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

/// `RateLimitRequest`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RateLimitRequest {
    /// Whose limits.
    #[prost(string, tag = "1")]
    pub domain: String,
    /// What is known about the request.
    #[prost(message, repeated, tag = "2")]
    pub descriptors: Vec<Descriptor>,
    /// How much it counts; 0 is 1.
    #[prost(uint32, tag = "3")]
    pub hits_addend: u32,
}

/// `envoy.extensions.common.ratelimit.v3.RateLimitDescriptor`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Descriptor {
    /// Keys with values.
    #[prost(message, repeated, tag = "1")]
    pub entries: Vec<Entry>,
    /// A limit that the client brings.
    #[prost(message, optional, tag = "2")]
    pub limit: Option<Override>,
    /// How much this descriptor counts: a `google.protobuf.UInt64Value`.
    #[prost(message, optional, tag = "3")]
    pub hits_addend: Option<u64>,
    /// Whether that much is given back instead.
    #[prost(bool, tag = "4")]
    pub is_negative_hits: bool,
}

/// A key with a value.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Entry {
    /// The key.
    #[prost(string, tag = "1")]
    pub key: String,
    /// The value.
    #[prost(string, tag = "2")]
    pub value: String,
}

/// A limit that the client brings.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Override {
    /// How many requests.
    #[prost(uint32, tag = "1")]
    pub requests_per_unit: u32,
    /// In which time.
    #[prost(int32, tag = "2")]
    pub unit: i32,
}

/// `RateLimitResponse`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RateLimitResponse {
    /// Whether the request goes through.
    #[prost(enumeration = "Code", tag = "1")]
    pub overall_code: i32,
    /// What became of each descriptor, in their order.
    #[prost(message, repeated, tag = "2")]
    pub statuses: Vec<DescriptorStatus>,
    /// What the response to the client is to tell.
    #[prost(message, repeated, tag = "3")]
    pub response_headers_to_add: Vec<HeaderValue>,
    /// What Envoy's other filters may read.
    #[prost(message, optional, tag = "6")]
    pub dynamic_metadata: Option<Struct>,
}

/// Whether a request goes through.
#[derive(Clone, Copy, Debug, Eq, PartialEq, prost::Enumeration)]
#[repr(i32)]
pub enum Code {
    /// Never said here.
    Unknown = 0,
    /// It does.
    Ok = 1,
    /// It does not.
    OverLimit = 2,
}

/// What became of one descriptor.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DescriptorStatus {
    /// Whether its limit lets the request through.
    #[prost(enumeration = "Code", tag = "1")]
    pub code: i32,
    /// Its limit, if there is one.
    #[prost(message, optional, tag = "2")]
    pub current_limit: Option<RateLimit>,
    /// How many more there may be now.
    #[prost(uint32, tag = "3")]
    pub limit_remaining: u32,
    /// In how long the limit begins anew.
    #[prost(message, optional, tag = "4")]
    pub duration_until_reset: Option<Duration>,
}

/// A limit.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RateLimit {
    /// How many requests.
    #[prost(uint32, tag = "1")]
    pub requests_per_unit: u32,
    /// In which time.
    #[prost(int32, tag = "2")]
    pub unit: i32,
    /// What the file calls it.
    #[prost(string, tag = "3")]
    pub name: String,
}

/// A header.
#[derive(Clone, PartialEq, prost::Message)]
pub struct HeaderValue {
    /// Its name.
    #[prost(string, tag = "1")]
    pub key: String,
    /// Its value.
    #[prost(string, tag = "2")]
    pub value: String,
}

/// `google.protobuf.Duration`.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Duration {
    /// Whole seconds.
    #[prost(int64, tag = "1")]
    pub seconds: i64,
    /// And so many nanoseconds; never any here.
    #[prost(int32, tag = "2")]
    pub nanos: i32,
}

/// `google.protobuf.Struct`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Struct {
    /// Values with names.
    #[prost(btree_map = "string, message", tag = "1")]
    pub fields: BTreeMap<String, Value>,
}

/// `google.protobuf.Value`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Value {
    /// Which kind it is.
    #[prost(oneof = "Kind", tags = "1, 2, 3, 4, 5, 6")]
    pub kind: Option<Kind>,
}

/// The kinds of values.
#[derive(Clone, PartialEq, prost::Oneof)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Kind {
    /// Nothing; the number means nothing either.
    #[prost(int32, tag = "1")]
    Null(i32),
    #[prost(double, tag = "2")]
    Number(f64),
    #[prost(string, tag = "3")]
    Text(String),
    #[prost(bool, tag = "4")]
    Bool(bool),
    #[prost(message, tag = "5")]
    Struct(Struct),
    #[prost(message, tag = "6")]
    List(ListValue),
}

/// `google.protobuf.ListValue`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ListValue {
    /// Several values.
    #[prost(message, repeated, tag = "1")]
    pub values: Vec<Value>,
}

impl From<Kind> for Value {
    fn from(kind: Kind) -> Self {
        Self { kind: Some(kind) }
    }
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::*;

    /// Bytes as `protoc --encode` makes them of Envoy's own files.
    #[test]
    fn a_request_is_read_field_by_field() {
        let bytes = b"\x0a\x03edg\x12\x19\x0a\x08\x0a\x03key\x12\x01v\x12\x04\x08\x07\x10\x02\
                      \x1a\x02\x08\x05\x20\x01\x2a\x01\x00\x18\x09\xfa\x01\x02no";
        let request = RateLimitRequest::decode(&bytes[..]).unwrap();
        let descriptor = Descriptor {
            entries: vec![Entry {
                key: "key".to_owned(),
                value: "v".to_owned(),
            }],
            limit: Some(Override {
                requests_per_unit: 7,
                unit: 2,
            }),
            hits_addend: Some(5),
            is_negative_hits: true,
        };
        assert_eq!(
            request,
            RateLimitRequest {
                domain: "edg".to_owned(),
                descriptors: vec![descriptor],
                hits_addend: 9,
            }
        );
    }

    #[test]
    fn an_answer_has_the_numbers_of_envoy() {
        let answer = RateLimitResponse {
            overall_code: Code::OverLimit.into(),
            statuses: vec![DescriptorStatus {
                code: Code::OverLimit.into(),
                current_limit: Some(RateLimit {
                    requests_per_unit: 1,
                    unit: 2,
                    name: "n".to_owned(),
                }),
                limit_remaining: 3,
                duration_until_reset: Some(Duration {
                    seconds: 59,
                    nanos: 0,
                }),
            }],
            response_headers_to_add: vec![HeaderValue {
                key: "k".to_owned(),
                value: "v".to_owned(),
            }],
            dynamic_metadata: Some(Struct {
                fields: [("a".to_owned(), Kind::Bool(true).into())].into(),
            }),
        };
        let bytes =
            b"\x08\x02\x12\x11\x08\x02\x12\x07\x08\x01\x10\x02\x1a\x01n\x18\x03\x22\x02\x08\x3b\
                      \x1a\x06\x0a\x01k\x12\x01v\x32\x09\x0a\x07\x0a\x01a\x12\x02\x20\x01";
        assert_eq!(answer.encode_to_vec(), bytes);
    }
}
