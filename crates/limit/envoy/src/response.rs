//! Response of the reference service, built from the verdicts of the limits.

use crate::config::{self as envoy, Applies, Metadata};
use anteroom_config::RateLimitHeaders;
use anteroom_limit::policy::Policy;
use anteroom_limit::time::{DurationUs, TimestampUs};
use anteroom_limit::verdict::{Outcome, Verdict};

use crate::decision::{MatchedLimit, RequestVerdict};
use crate::wire::{
    Code, Descriptor, DescriptorStatus, Duration, HeaderValue, Kind, ListValue, RateLimit,
    RateLimitRequest, RateLimitResponse, Struct, Value,
};

/// Options of a response beside the codes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResponseDetails {
    pub(crate) headers: RateLimitHeaders,
    pub(crate) has_metadata: bool,
}

/// Outcome of one descriptor of a request.
pub(crate) enum DescriptorOutcome<'m> {
    Nothing,
    Unlimited,
    Limit(&'m MatchedLimit<'m>, &'m Verdict),
}

/// Assigns the verdicts of limits to the descriptors that matched them.
pub(crate) fn descriptor_outcomes<'m>(
    descriptors: &[Applies<'_>],
    met: &'m [MatchedLimit<'m>],
    decision: &'m RequestVerdict,
) -> Vec<DescriptorOutcome<'m>> {
    let mut limits = met.iter().zip(&decision.verdicts);
    let outcomes = descriptors.iter().map(|applies| match applies {
        Applies::Nothing => DescriptorOutcome::Nothing,
        Applies::Unlimited => DescriptorOutcome::Unlimited,
        Applies::Limit(_) => limits
            .next()
            .map_or(DescriptorOutcome::Nothing, |(met, verdict)| {
                DescriptorOutcome::Limit(met, verdict)
            }),
    });
    outcomes.collect()
}

/// Builds the response to a request.
pub(crate) fn response(
    request: &RateLimitRequest,
    outcomes: &[DescriptorOutcome<'_>],
    is_over: bool,
    details: ResponseDetails,
    now: TimestampUs,
) -> RateLimitResponse {
    let statuses: Vec<_> = outcomes.iter().map(|outcome| outcome.status(now)).collect();
    let headers = headers(outcomes, &statuses, details.headers);
    let metadata = details
        .has_metadata
        .then(|| metadata(request, outcomes, &statuses));
    let overall = if is_over { Code::OverLimit } else { Code::Ok };
    RateLimitResponse {
        overall_code: overall.into(),
        statuses,
        response_headers_to_add: headers,
        dynamic_metadata: metadata,
        ..RateLimitResponse::default()
    }
}

/// Builds the response to a request that is admitted without a verdict.
pub(crate) fn open_response(request: &RateLimitRequest) -> RateLimitResponse {
    let statuses = request.descriptors.iter();
    RateLimitResponse {
        overall_code: Code::Ok.into(),
        statuses: statuses
            .map(|_| DescriptorOutcome::Nothing.status(TimestampUs(0)))
            .collect(),
        ..RateLimitResponse::default()
    }
}

impl DescriptorOutcome<'_> {
    fn status(&self, now: TimestampUs) -> DescriptorStatus {
        let ok = Code::Ok.into();
        match self {
            Self::Nothing => DescriptorStatus {
                code: ok,
                ..DescriptorStatus::default()
            },
            Self::Unlimited => DescriptorStatus {
                code: ok,
                limit_remaining: u32::MAX,
                ..DescriptorStatus::default()
            },
            Self::Limit(met, verdict) => {
                let limit = &met.limit;
                let is_over = !verdict.is_allowed() && !limit.is_shadow;
                DescriptorStatus {
                    code: if is_over { Code::OverLimit.into() } else { ok },
                    current_limit: Some(RateLimit {
                        requests_per_unit: limit.requests_per_unit,
                        unit: limit.unit.number(),
                        name: limit.name.to_owned(),
                    }),
                    limit_remaining: verdict.remaining,
                    duration_until_reset: Some(Duration {
                        seconds: reset(&met.policy, verdict, now)
                            .secs_ceil()
                            .try_into()
                            .unwrap_or(i64::MAX),
                        nanos: 0,
                    }),
                    ..DescriptorStatus::default()
                }
            }
        }
    }
}

/// Returns the time until a limit resets. A fixed window resets at its end, whatever was taken.
/// Other limits reset when all of their capacity is free; after a rejection, the earlier retry time
/// is returned.
fn reset(policy: &Policy, verdict: &Verdict, now: TimestampUs) -> DurationUs {
    if let Some(left) = policy.resets_after(now) {
        // By the store's own clock, if anything was taken.
        return if verdict.full_after > DurationUs::ZERO {
            verdict.full_after
        } else {
            left
        };
    }
    match verdict.outcome {
        Outcome::Reject {
            retry_after: Some(wait),
        } => wait,
        _ => verdict.full_after,
    }
}

/// Returns headers about the descriptor that is nearest to its limit, or about the last one that
/// rejects.
fn headers(
    outcomes: &[DescriptorOutcome<'_>],
    statuses: &[DescriptorStatus],
    headers: RateLimitHeaders,
) -> Vec<HeaderValue> {
    let [limit, remaining, reset] = match headers {
        RateLimitHeaders::None => return Vec::new(),
        RateLimitHeaders::RateLimit => {
            ["RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"]
        }
        RateLimitHeaders::XRateLimit => [
            "X-RateLimit-Limit",
            "X-RateLimit-Remaining",
            "X-RateLimit-Reset",
        ],
    };
    let mut nearest: Option<(u32, &DescriptorStatus)> = None;
    for (outcome, status) in outcomes.iter().zip(statuses) {
        let DescriptorOutcome::Limit(met, _) = outcome else {
            continue;
        };
        let rejects = status.code == i32::from(Code::OverLimit) && !met.limit.is_quota;
        let remaining = if rejects { 0 } else { status.limit_remaining };
        if rejects || nearest.is_none_or(|(least, _)| remaining < least) {
            nearest = Some((remaining, status));
        }
    }
    let Some((_, status)) = nearest else {
        return Vec::new();
    };
    let header = |key: &str, value: String| HeaderValue {
        key: key.to_owned(),
        value,
        ..HeaderValue::default()
    };
    let limited_by = status.current_limit.as_ref();
    let seconds = status.duration_until_reset.map_or(0, |reset| reset.seconds);
    vec![
        header(
            limit,
            limited_by
                .map_or(0, |limit| limit.requests_per_unit)
                .to_string(),
        ),
        header(remaining, status.limit_remaining.to_string()),
        header(reset, seconds.to_string()),
    ]
}

/// Returns the metadata for Envoy's other filters, as the reference service builds it: the request,
/// and the file's metadata of the limits that admitted it.
fn metadata(
    request: &RateLimitRequest,
    outcomes: &[DescriptorOutcome<'_>],
    statuses: &[DescriptorStatus],
) -> Struct {
    let text = |text: &str| of(Kind::StringValue(text.to_owned()));
    let descriptors = request.descriptors.iter().map(descriptor).collect();
    let mut fields = Struct::default().fields;
    fields.insert("domain".to_owned(), text(&request.domain));
    let descriptors = Kind::ListValue(ListValue {
        values: descriptors,
    });
    fields.insert("descriptors".to_owned(), of(descriptors));
    if request.hits_addend > 0 {
        let hits = Kind::NumberValue(request.hits_addend.into());
        fields.insert("hitsAddend".to_owned(), of(hits));
    }
    let mut passed = Struct::default();
    for (outcome, status) in outcomes.iter().zip(statuses) {
        let DescriptorOutcome::Limit(met, _) = outcome else {
            continue;
        };
        if let (true, Some(of_file)) = (status.code == i32::from(Code::Ok), met.limit.metadata) {
            merge(&mut passed, of_file);
        }
    }
    if !passed.fields.is_empty() {
        fields.insert("metadata".to_owned(), of(Kind::StructValue(passed)));
    }
    Struct { fields }
}

fn descriptor(descriptor: &Descriptor) -> Value {
    let entries = descriptor.entries.iter();
    let entries = entries.map(|entry| {
        let text = format!("{}={}", entry.key, entry.value);
        of(Kind::StringValue(text))
    });
    let entries = Kind::ListValue(ListValue {
        values: entries.collect(),
    });
    let mut fields = Struct::default().fields;
    fields.insert("entries".to_owned(), of(entries));
    if let Some(limit) = descriptor.limit {
        let unit = envoy::Unit::from_number(limit.unit).map_or("UNKNOWN", envoy::Unit::name);
        let text = format!("requests_per_unit:{} unit:{unit}", limit.requests_per_unit);
        fields.insert("limit".to_owned(), of(Kind::StringValue(text)));
    }
    if let Some(hits) = descriptor.hits_addend {
        #[expect(
            clippy::cast_precision_loss,
            reason = "protobuf has no other number here"
        )]
        let hits = Kind::NumberValue(hits.value as f64);
        fields.insert("hitsAddend".to_owned(), of(hits));
    }
    of(Kind::StructValue(Struct { fields }))
}

fn of(kind: Kind) -> Value {
    Value { kind: Some(kind) }
}

/// Adds missing fields, and merges nested ones.
fn merge(into: &mut Struct, from: &Metadata) {
    for (name, value) in from {
        match into.fields.get_mut(name).map(|known| &mut known.kind) {
            None => {
                into.fields.insert(name.clone(), value_of(value));
            }
            Some(Some(Kind::StructValue(known))) => {
                if let envoy::Value::Map(more) = value {
                    merge(known, more);
                }
            }
            Some(_) => {}
        }
    }
}

fn value_of(value: &envoy::Value) -> Value {
    let kind = match value {
        envoy::Value::Null => Kind::NullValue(0),
        envoy::Value::Bool(is_so) => Kind::BoolValue(*is_so),
        envoy::Value::Number(number) => Kind::NumberValue(*number),
        envoy::Value::Text(text) => Kind::StringValue(text.clone()),
        envoy::Value::List(values) => Kind::ListValue(ListValue {
            values: values.iter().map(value_of).collect(),
        }),
        envoy::Value::Map(values) => {
            let mut map = Struct::default();
            merge(&mut map, values);
            Kind::StructValue(map)
        }
    };
    of(kind)
}
