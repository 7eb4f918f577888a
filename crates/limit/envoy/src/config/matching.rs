//! Matching of requests with limits.
//!
//! Each descriptor of a request is walked entry by entry, from the outermost descriptor of its
//! domain inwards. A limit applies only if it is at the level of the last entry, neither deeper nor
//! less deep.

pub(crate) mod identity;
mod metric;
pub(crate) mod request;
mod unordered;

use std::borrow::Cow;
use std::collections::HashSet;

use crate::config::algorithm::AlgorithmChoice;
use crate::config::descriptors::{Descriptor, Level, Limit, MatchKind, RateLimits, Rule};
use crate::config::metadata::Metadata;
use crate::config::unit::Unit;
use identity::CounterIdentity;
use request::{Entry, Request, RequestDescriptor, RequestError};
use smallvec::SmallVec;

/// Usual number of entries of a descriptor: Envoy sends one per action, of which a route has a few.
/// Longer walks use the heap.
const USUAL_ENTRIES: usize = 4;

/// Result of matching a request.
#[derive(Clone, Debug, PartialEq)]
pub struct Matched<'l> {
    /// Whether any file has the domain. The reference service counts requests for others.
    pub is_domain_known: bool,
    /// Matches of the descriptors, in the order of the request.
    pub descriptors: Vec<Applies<'l>>,
}

/// Result of matching one descriptor of a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Applies<'l> {
    /// Match without a limit: none was found, or another one replaces it.
    Nothing,
    /// An unlimited descriptor; nothing is counted.
    Unlimited,
    /// A limit.
    Limit(AppliedLimit<'l>),
}

/// Limit, with what belongs to this one request.
#[derive(Clone, Debug, PartialEq)]
pub struct AppliedLimit<'l> {
    /// Requests per unit; with 0 each request is over the limit.
    pub requests_per_unit: u32,
    /// Unit of time.
    pub unit: Unit,
    /// Name in the file; empty if it has none, and for a limit that the request has sent.
    pub name: &'l str,
    /// Whether it is counted but never rejects.
    pub is_shadow: bool,
    /// Whether it rejects only together with all other quota limits.
    pub is_quota: bool,
    /// Algorithm.
    pub algorithm: AlgorithmChoice,
    /// Metadata for admitted requests, if it was read from a file. The reference loses it where
    /// `detailed_metric` or `value_to_metric` are set; here it stays.
    pub metadata: Option<&'l Metadata>,
    /// Name of its metrics in the reference service.
    pub metric: Cow<'l, str>,
    /// Identity of its counter.
    pub counter: CounterIdentity,
    /// Hits of the request; 0 peeks and counts nothing.
    pub hits: u64,
}

impl RateLimits {
    /// Returns what applies to each descriptor of a request.
    ///
    /// # Errors
    ///
    /// [`RequestError`] if the request is invalid.
    pub fn applying_to(&self, request: &Request<'_>) -> Result<Matched<'_>, RequestError> {
        request.check()?;
        let Some(domain) = self.domain(request.domain) else {
            return Ok(Matched {
                is_domain_known: false,
                descriptors: request
                    .descriptors
                    .iter()
                    .map(|_| Applies::Nothing)
                    .collect(),
            });
        };
        let mut replaced = HashSet::new();
        let mut descriptors = Vec::with_capacity(request.descriptors.len());
        for (index, descriptor) in request.descriptors.iter().enumerate() {
            let hits = request.hits_of(descriptor);
            let applies = match descriptor.limit {
                Some(_) => limit_of_request(request.domain, index, descriptor, hits)?,
                None => {
                    let walk = Walk::new(domain, descriptor.entries);
                    let replaces = walk.as_ref().map_or(&[][..], |walk| walk.rule.replaces());
                    replaced.extend(replaces.iter().map(|name| &**name));
                    walk.map_or(Applies::Nothing, |walk| walk.applies(request.domain, hits))
                }
            };
            descriptors.push(applies);
        }
        if !replaced.is_empty() {
            for applies in &mut descriptors {
                let is_replaced =
                    matches!(applies, Applies::Limit(limit) if replaced.contains(limit.name));
                if is_replaced {
                    *applies = Applies::Nothing;
                }
            }
        }
        Ok(Matched {
            is_domain_known: true,
            descriptors,
        })
    }
}

/// Builds the limit that a request has sent. It overrides the files, and has no name and no mode.
fn limit_of_request<'l>(
    domain: &str,
    index: usize,
    descriptor: &RequestDescriptor<'_>,
    hits: u64,
) -> Result<Applies<'l>, RequestError> {
    let Some(limit) = descriptor.limit else {
        return Ok(Applies::Nothing);
    };
    let unit = Unit::from_number(limit.unit).ok_or(RequestError::UnknownUnit {
        descriptor: index,
        unit: limit.unit,
    })?;
    Ok(Applies::Limit(AppliedLimit {
        requests_per_unit: limit.requests_per_unit,
        unit,
        name: "",
        is_shadow: false,
        is_quota: false,
        algorithm: AlgorithmChoice::default(),
        metadata: None,
        metric: metric::of_request(domain, descriptor.entries).into(),
        counter: CounterIdentity::new(domain, descriptor.entries.iter().map(Entry::pair)),
        hits,
    }))
}

/// Entry, and the descriptor that it matched.
#[derive(Clone, Copy, Debug)]
struct Step<'l, 'r> {
    entry: Entry<'r>,
    descriptor: &'l Descriptor,
    kind: MatchKind,
}

impl<'l> Step<'l, '_> {
    /// Returns what counts in place of the value: the pattern, if all values that match it share
    /// one counter.
    fn shared(&self) -> Option<Cow<'l, str>> {
        let is_shared = self.kind == MatchKind::Pattern && self.descriptor.node.is_shared;
        is_shared.then(|| self.descriptor.pattern_for(self.entry.key))
    }
}

/// Walk through the descriptors that ends at a rule.
struct Walk<'l, 'r> {
    /// Steps, one for each entry.
    steps: SmallVec<[Step<'l, 'r>; USUAL_ENTRIES]>,
    rule: &'l Rule,
}

impl<'l, 'r> Walk<'l, 'r> {
    /// Walks along these entries; `None` if they do not end at a rule.
    fn new(domain: &'l Level, entries: &'r [Entry<'r>]) -> Option<Self> {
        let mut steps = SmallVec::new();
        let mut level = domain;
        for entry in entries {
            let (descriptor, kind) = level.find(entry.key, entry.value)?;
            steps.push(Step {
                entry: *entry,
                descriptor,
                kind,
            });
            level = &descriptor.node.nested;
        }
        let last: &Step<'l, 'r> = steps.last()?;
        let rule = last.descriptor.node.rule.as_ref()?;
        Some(Self { steps, rule })
    }

    fn steps(&self) -> impl Iterator<Item = &Step<'l, 'r>> + Clone {
        self.steps.iter()
    }

    fn applies(&self, domain: &str, hits: u64) -> Applies<'l> {
        let limit: &'l Limit = match self.rule {
            Rule::Unlimited { .. } => return Applies::Unlimited,
            Rule::Limited(limit) => limit,
        };
        Applies::Limit(AppliedLimit {
            requests_per_unit: limit.requests_per_unit,
            unit: limit.unit,
            name: &limit.name,
            is_shadow: limit.is_shadow,
            is_quota: limit.is_quota,
            algorithm: limit.algorithm,
            metadata: Some(&limit.metadata),
            metric: metric::of(self, limit, domain),
            counter: self.counter(domain),
            hits,
        })
    }

    fn counter(&self, domain: &str) -> CounterIdentity {
        if !self.steps().any(|step| step.shared().is_some()) {
            return CounterIdentity::new(domain, self.steps().map(|step| step.entry.pair()));
        }
        let shared: Vec<(Entry<'_>, Option<Cow<'_, str>>)> = self
            .steps()
            .map(|step| (step.entry, step.shared()))
            .collect();
        let pairs = shared.iter().map(|(entry, shared)| {
            let value = shared.as_deref().unwrap_or(entry.value);
            (entry.key, value)
        });
        CounterIdentity::new(domain, pairs)
    }
}

#[cfg(test)]
mod tests;
