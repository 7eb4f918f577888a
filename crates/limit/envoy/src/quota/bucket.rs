//! Which limit does a bucket meet?

use crate::config::{Applies, Entry, RateLimits, Request, RequestDescriptor};
use anteroom_limit::policy::Policy;
use anteroom_limit::quota::lasting::{self, UnfitError};
use anteroom_limit_store::CallKey;

use crate::asking::RequestHandler;
use crate::policy::policy;

/// Most bytes of all keys and values of a bucket. A thousand of them are one report.
pub(crate) const BUCKET_BYTES_MAX: usize = 512;

/// What a bucket meets.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target {
    /// A limit.
    Limit(Counted),
    /// No limit, or what is unlimited.
    Unlimited,
    /// A limit out of which nothing can be assigned.
    Unfit,
}

/// A limit whose calls are counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counted {
    pub(crate) key: CallKey,
    pub(crate) policy: Policy,
    /// It refuses nobody.
    pub(crate) is_shadow: bool,
}

/// A bucket's keys with values, in alphabetical order.
pub(crate) type Pairs = Vec<(String, String)>;

/// What a bucket meets in a domain, and, of one that is unfit, which limit it is and why.
pub(crate) fn target(
    (limits, asking): (&RateLimits, &RequestHandler),
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
    let is_shadow = limit.is_shadow || asking.is_shadow();
    match lasting::check(&policy) {
        Err(error) if !is_shadow => (Target::Unfit, Some((limit.metric.into_owned(), error))),
        _ => {
            let key = asking.key_of(&limit.counter, &policy);
            let counted = Counted {
                key,
                policy,
                is_shadow,
            };
            (Target::Limit(counted), None)
        }
    }
}
