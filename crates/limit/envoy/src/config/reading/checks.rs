//! Checks of the parsed files, which then become limits, in the order of the files.

use super::typed::{Descriptor, RateLimit, Root};
use super::{CannotKeep, Keep, Report, SameDomain};
use crate::config::algorithm::{AlgorithmChoice, BadChoice};
use crate::config::descriptors::{Level, Limit, Node, RateLimits, Rule, joined};
use crate::config::mistake::Defect;
use crate::config::notice::Remark;
use crate::config::unit::Unit;

/// Bytes of the names of all descriptors.
pub(super) struct Names {
    bytes: usize,
    most: usize,
}

impl Names {
    pub(super) const fn up_to(most: usize) -> Self {
        Self { bytes: 0, most }
    }

    /// Counts a name, and returns whether it is the first one beyond the bound.
    const fn count(&mut self, name: &str) -> bool {
        let before = self.bytes;
        self.bytes += name.len();
        before <= self.most && self.bytes > self.most
    }
}

/// Checker of one file.
pub(super) struct Checker<'c> {
    pub(super) names: &'c mut Names,
    pub(super) report: &'c mut Report,
    pub(super) keep: &'c Keep<'c>,
}

impl Checker<'_> {
    /// Adds the file to the limits.
    pub(super) fn add(&mut self, limits: &mut RateLimits, root: Root, same_domain: SameDomain) {
        let Root {
            domain,
            domain_line,
            descriptors,
            is_doubtful,
        } = root;
        let path = format!("{domain}.");
        if domain.is_empty() {
            if !is_doubtful {
                self.report.mistake(domain_line, Defect::EmptyDomain);
            }
            // The descriptors may have mistakes, too, and are dropped afterwards.
            self.add_level(&mut Level::default(), &path, descriptors);
            return;
        }
        if limits.has_domain(&domain) && same_domain == SameDomain::Refused {
            self.report
                .mistake(domain_line, Defect::DuplicateDomain { domain });
            self.add_level(&mut Level::default(), &path, descriptors);
            return;
        }
        self.add_level(limits.domain_mut(&domain), &path, descriptors);
    }

    /// Adds the descriptors of one list under `path`.
    fn add_level(&mut self, level: &mut Level, path: &str, descriptors: Vec<Descriptor>) {
        for descriptor in descriptors {
            let composite = joined(&descriptor.key, &descriptor.value);
            let path = format!("{path}{composite}");
            let is_too_much = self.names.count(&path);
            if is_too_much {
                let most = self.names.most;
                let defect = Defect::NamesTooLong { most };
                self.report.mistake(descriptor.line, defect);
            }
            if self.names.bytes > self.names.most {
                return;
            }
            self.add_one(level, &path, composite, descriptor);
        }
    }

    fn add_one(&mut self, level: &mut Level, path: &str, composite: String, typed: Descriptor) {
        let (key, value, line) = (&*typed.key, &*typed.value, typed.line);
        if key.is_empty() && !typed.is_doubtful {
            self.report.mistake(line, Defect::EmptyKey);
        }
        let is_known = !key.is_empty() && !typed.is_doubtful;
        let is_duplicate = is_known && level.holds(key, value);
        if is_duplicate {
            let path = path.to_owned();
            self.report
                .mistake(line, Defect::DuplicateDescriptor { path });
        }
        let limit = typed.rate_limit.as_ref();
        let keep = self.keep;
        let rule = limit.and_then(|limit| rule(limit, &typed, path, (self.report, keep)));
        if typed.is_shared && !composite.contains('*') && !typed.is_doubtful {
            let key = composite;
            let defect = Defect::SharedWithoutWildcard { key };
            self.report.mistake(typed.shared_line, defect);
        }
        let mut nested = Level::default();
        self.add_level(&mut nested, &format!("{path}."), typed.descriptors);
        if !is_duplicate {
            let node = Node {
                rule,
                nested,
                has_value_in_metric: typed.has_value_in_metric,
                is_shared: typed.is_shared,
            };
            level.add(&typed.key, &typed.value, node);
        }
    }
}

/// Returns the rule of a parsed limit; `None` if it has mistakes.
fn rule(
    limit: &RateLimit,
    descriptor: &Descriptor,
    path: &str,
    (report, keep): (&mut Report, &Keep<'_>),
) -> Option<Rule> {
    let before = report.mistakes.len();
    let unit = Unit::from_name(&limit.unit);
    let line = limit.unit_line.unwrap_or(limit.line);
    let text = limit.unit.clone();
    match (limit.is_unlimited, unit) {
        (true, Some(_)) => report.mistake(line, Defect::UnitOfUnlimited),
        (true, None) if !limit.unit.is_empty() => {
            report.notice(line, Remark::UnitIgnored { unit: text });
        }
        (false, None) if !(limit.is_doubtful && limit.unit.is_empty()) => {
            report.mistake(line, Defect::UnknownUnit { unit: text });
        }
        _ => {}
    }
    for (name, line) in &limit.replaces {
        if name.is_empty() {
            report.mistake(*line, Defect::EmptyReplaces);
        } else if *name == limit.name {
            report.mistake(*line, Defect::ReplacesItself);
        }
    }
    let algorithm = algorithm(limit, report);
    if let (false, Some(unit), Some(algorithm)) = (limit.is_unlimited, unit, algorithm)
        && let Err(CannotKeep { key, message }) = keep(algorithm, limit.requests_per_unit, unit)
    {
        let algorithm = algorithm.kind.name().to_owned();
        report.mistake(
            line_of(limit, key),
            Defect::CannotKeep { algorithm, message },
        );
    }
    let replaces = limit.replaces.iter();
    let replaces = replaces.map(|(name, _)| name.as_str().into()).collect();
    if report.mistakes.len() > before {
        return None;
    }
    if limit.is_unlimited {
        return Some(Rule::Unlimited { replaces });
    }
    Some(Rule::Limited(Box::new(Limit {
        requests_per_unit: limit.requests_per_unit,
        unit: unit?,
        name: limit.name.as_str().into(),
        replaces,
        is_shadow: descriptor.is_shadow,
        is_quota: descriptor.is_quota,
        has_detailed_metric: descriptor.has_detailed_metric,
        algorithm: algorithm?,
        metadata: descriptor.metadata.clone(),
        metric: path.into(),
    })))
}

fn algorithm(limit: &RateLimit, report: &mut Report) -> Option<AlgorithmChoice> {
    let Some((_, first)) = limit.algorithm_lines.first() else {
        return Some(AlgorithmChoice::default());
    };
    if limit.is_unlimited {
        report.mistake(*first, Defect::AlgorithmOfUnlimited);
        return None;
    }
    let name = limit.algorithm.as_deref();
    let name = name.unwrap_or_else(|| AlgorithmChoice::default().kind.name());
    let bad = match AlgorithmChoice::of(name, limit.settings, limit.requests_per_unit) {
        Ok(choice) => return Some(choice),
        Err(bad) => bad,
    };
    for bad in bad {
        report.mistake(line_of(limit, bad.key()), defect_of(bad, name));
    }
    None
}

/// Returns the line of a setting of the algorithm, or else of the algorithm, or else of the limit.
fn line_of(limit: &RateLimit, key: &str) -> u32 {
    let lines = &limit.algorithm_lines;
    let found = lines.iter().rev().find(|(known, _)| known == key);
    let found = found.or_else(|| lines.first());
    found.map_or(limit.line, |(_, line)| *line)
}

fn defect_of(bad: BadChoice, algorithm: &str) -> Defect {
    let algorithm = algorithm.to_owned();
    match bad {
        BadChoice::Unknown => Defect::UnknownAlgorithm { algorithm },
        BadChoice::NotASetting(key) => Defect::SettingOfAnother { algorithm, key },
        BadChoice::OutOfRange {
            key,
            value,
            least,
            most,
        } => Defect::SettingOutOfRange {
            key,
            value,
            least,
            most,
        },
    }
}
