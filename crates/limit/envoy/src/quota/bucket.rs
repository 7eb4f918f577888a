//! Matching of a quota bucket with a limit.

use crate::config::{Applies, Entry, RateLimits, Request, RequestDescriptor};
use anteroom_limit::policy::Policy;
use anteroom_limit::quota::lifetime::{self, UnfitError};
use anteroom_limit_store::ClientKey;

use crate::policy::policy;
use crate::request_handler::RequestHandler;

/// Buckets of one stream. More are abandoned, so that Envoy forgets them.
pub(crate) const BUCKETS_MAX: usize = 1_000;
/// Most bytes of all keys and values of a bucket. A thousand of them fit into one report.
pub(crate) const BUCKET_BYTES_MAX: usize = 512;

/// Match of a bucket.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target {
    /// A limit.
    Limit(Counted),
    /// Match without a limit, or with an unlimited descriptor.
    Unlimited,
    /// A limit that cannot be assigned.
    Unfit,
}

/// Limit with counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counted {
    pub(crate) key: ClientKey,
    pub(crate) policy: Policy,
    /// Whether it never rejects.
    pub(crate) is_shadow: bool,
}

/// Keys with values of a bucket, in alphabetical order.
pub(crate) type Pairs = Vec<(String, String)>;

/// Matches a bucket in a domain. For an unfit limit it also returns its name and the reason.
pub(crate) fn target(
    (limits, handler): (&RateLimits, &RequestHandler),
    domain: &str,
    pairs: &Pairs,
) -> (Target, Option<(String, UnfitError)>) {
    let entries = pairs.iter().map(|(key, value)| Entry { key, value });
    let entries: Vec<Entry<'_>> = entries.collect();
    let Some(entries) = limits.in_order(domain, &entries) else {
        return (Target::Unlimited, None);
    };
    let descriptors = [RequestDescriptor {
        entries: &entries,
        limit: None,
        hits: None,
    }];
    let request = Request {
        domain,
        descriptors: &descriptors,
        hits_addend: 1,
    };
    let matched = limits.applying_to(&request);
    let applies = matched
        .ok()
        .and_then(|mut matched| matched.descriptors.pop());
    let Some(Applies::Limit(limit)) = applies else {
        return (Target::Unlimited, None);
    };
    // Files with limits that cannot be counted are not loaded.
    let Ok(policy) = policy(limit.algorithm, limit.requests_per_unit, limit.unit) else {
        return (Target::Unfit, None);
    };
    let is_shadow = limit.is_shadow || handler.is_shadow();
    match lifetime::check(&policy) {
        Err(error) if !is_shadow => (Target::Unfit, Some((limit.metric.into_owned(), error))),
        _ => {
            let key = handler.key_of(&limit.counter, &policy);
            let counted = Counted {
                key,
                policy,
                is_shadow,
            };
            (Target::Limit(counted), None)
        }
    }
}
