//! Which limit does a request meet?
//!
//! Each descriptor of a request is walked entry by entry, from the outermost descriptor of its
//! domain inwards. A limit counts only where the last entry ends: one that stands deeper or less
//! deep does not.

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

/// Entries of a descriptor as Envoy sends it: one for each action, of which a route has a few. A
/// way of more is kept on the heap.
const USUAL_ENTRIES: usize = 4;

/// What applies to a request.
#[derive(Clone, Debug, PartialEq)]
pub struct Matched<'l> {
    /// Whether any file has the domain. The reference service counts requests for others.
    pub is_domain_known: bool,
    /// What applies to each descriptor, in the order of the request.
    pub descriptors: Vec<Applies<'l>>,
}

/// What applies to one descriptor of a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Applies<'l> {
    /// No limit: none was found, or another one replaces it.
    Nothing,
    /// As many requests as will; nothing is counted.
    Unlimited,
    /// A limit.
    Limit(AppliedLimit<'l>),
}

/// A limit, and what of it belongs to this one request.
#[derive(Clone, Debug, PartialEq)]
pub struct AppliedLimit<'l> {
    /// How many requests; 0 means that each is over the limit.
    pub requests_per_unit: u32,
    /// In which time.
    pub unit: Unit,
    /// What the file calls it; empty if it has no name, and for a limit that the request brought.
    pub name: &'l str,
    /// Whether it is counted and told to nobody.
    pub is_shadow: bool,
    /// Whether it refuses only together with all others of its kind.
    pub is_quota: bool,
    /// How it is counted.
    pub algorithm: AlgorithmChoice,
    /// What is told to whoever passes, if it was read from a file. The reference loses it where
    /// `detailed_metric` or `value_to_metric` are set; here it stays.
    pub metadata: Option<&'l Metadata>,
    /// What its metrics are called in the reference.
    pub metric: Cow<'l, str>,
    /// Which counter it counts on.
    pub counter: CounterIdentity,
    /// How much it counts; 0 asks and counts nothing.
    pub hits: u64,
}

impl RateLimits {
    /// What applies to each descriptor of a request.
    ///
    /// # Errors
    ///
    /// If the request asks for what nobody can answer; see [`RequestError`].
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
                Some(_) => brought(request.domain, index, descriptor, hits)?,
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

/// The limit that a request brought: whatever the files say, it holds, without a name and without
/// any mode.
fn brought<'l>(
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
        metric: metric::of_brought(domain, descriptor.entries).into(),
        counter: CounterIdentity::new(domain, descriptor.entries.iter().map(Entry::pair)),
        hits,
    }))
}

/// An entry, and the descriptor that it met.
#[derive(Clone, Copy, Debug)]
struct Step<'l, 'r> {
    entry: Entry<'r>,
    descriptor: &'l Descriptor,
    how: MatchKind,
}

impl<'l> Step<'l, '_> {
    /// What counts in place of the value: the pattern, where all that fits it shares one counter.
    fn shared(&self) -> Option<Cow<'l, str>> {
        let is_shared = self.how == MatchKind::Pattern && self.descriptor.node.is_shared;
        is_shared.then(|| self.descriptor.stand_in(self.entry.key))
    }
}

/// A way through the descriptors that ends at a rule.
struct Walk<'l, 'r> {
    /// One for each entry.
    steps: SmallVec<[Step<'l, 'r>; USUAL_ENTRIES]>,
    rule: &'l Rule,
}

impl<'l, 'r> Walk<'l, 'r> {
    /// The way that these entries go; none if they do not end at a rule.
    fn new(domain: &'l Level, entries: &'r [Entry<'r>]) -> Option<Self> {
        let mut steps = SmallVec::new();
        let mut level = domain;
        for entry in entries {
            let (descriptor, how) = level.find(entry.key, entry.value)?;
            steps.push(Step {
                entry: *entry,
                descriptor,
                how,
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
