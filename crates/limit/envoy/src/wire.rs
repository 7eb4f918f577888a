//! Messages of `envoy.service.ratelimit.v3` and of `envoy.service.rate_limit_quota.v3`, as far as
//! they are used here.
//!
//! They come from `envoy-types`, which is generated from Envoy's own files, under shorter names.

use envoy_types::pb::envoy::extensions::common::ratelimit::v3 as common;

pub use common::RateLimitDescriptor as Descriptor;
pub use common::rate_limit_descriptor::{Entry, RateLimitOverride as Override};
pub use envoy_types::pb::envoy::config::core::v3::HeaderValue;
pub use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_response::{
    Code, DescriptorStatus, RateLimit,
};
pub use envoy_types::pb::envoy::service::ratelimit::v3::{RateLimitRequest, RateLimitResponse};
pub use envoy_types::pb::google::protobuf::value::Kind;
pub use envoy_types::pb::google::protobuf::{
    Duration, ListValue, Struct, UInt32Value, UInt64Value, Value,
};

/// The messages of `envoy.service.rate_limit_quota.v3`.
pub mod quota {
    use envoy_types::pb::envoy::service::rate_limit_quota::v3 as service;

    pub use envoy_types::pb::envoy::r#type::v3::rate_limit_strategy::{BlanketRule, Strategy};
    pub use envoy_types::pb::envoy::r#type::v3::{RateLimitStrategy, TokenBucket};
    pub use service::rate_limit_quota_response::BucketAction;
    pub use service::rate_limit_quota_response::bucket_action::{
        AbandonAction, BucketAction as Action, QuotaAssignmentAction,
    };
    pub use service::rate_limit_quota_usage_reports::BucketQuotaUsage;
    pub use service::{BucketId, RateLimitQuotaResponse, RateLimitQuotaUsageReports};
}

/// gRPC method of the rate limit service.
pub(crate) const SHOULD_RATE_LIMIT: &str =
    "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
/// gRPC method of the quota service.
pub(crate) const STREAM_RATE_LIMIT_QUOTAS: &str =
    "/envoy.service.rate_limit_quota.v3.RateLimitQuotaService/StreamRateLimitQuotas";

#[cfg(test)]
mod tests {
    use envoy_types::pb::envoy::service::rate_limit_quota::v3::rate_limit_quota_service_server;
    use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_service_server;
    use prost::Message as _;

    use super::*;

    /// Bytes from `protoc --encode` with Envoy's own files.
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
            hits_addend: Some(UInt64Value { value: 5 }),
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
    fn a_response_has_the_field_numbers_of_envoy() {
        let yes = Value {
            kind: Some(Kind::BoolValue(true)),
        };
        let response = RateLimitResponse {
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
                ..DescriptorStatus::default()
            }],
            response_headers_to_add: vec![HeaderValue {
                key: "k".to_owned(),
                value: "v".to_owned(),
                ..HeaderValue::default()
            }],
            dynamic_metadata: Some(Struct {
                fields: [("a".to_owned(), yes)].into(),
            }),
            ..RateLimitResponse::default()
        };
        let bytes =
            b"\x08\x02\x12\x11\x08\x02\x12\x07\x08\x01\x10\x02\x1a\x01n\x18\x03\x22\x02\x08\x3b\
                      \x1a\x06\x0a\x01k\x12\x01v\x32\x09\x0a\x07\x0a\x01a\x12\x02\x20\x01";
        assert_eq!(response.encode_to_vec(), bytes);
    }

    #[test]
    fn the_method_is_one_of_the_service() {
        let method = SHOULD_RATE_LIMIT.strip_prefix('/').unwrap();
        assert_eq!(
            method.rsplit_once('/').unwrap().0,
            rate_limit_service_server::SERVICE_NAME
        );
        let method = STREAM_RATE_LIMIT_QUOTAS.strip_prefix('/').unwrap();
        assert_eq!(
            method.rsplit_once('/').unwrap().0,
            rate_limit_quota_service_server::SERVICE_NAME
        );
    }
}
