//! Active limits, built from the config file.

use std::collections::HashMap;
use std::error::Error as _;
use std::sync::Arc;
use std::{fmt, iter};

use anteroom_config::{KeyPart, LimitConfig, LimitStore};
use anteroom_limit::cost::Cost;
use anteroom_limit::policy::Policy;
use anteroom_limit_store::KeyMaker;
use anteroom_limit_store::local::LocalCounts;
use anteroom_limit_store::shared::UnfitError;
use anteroom_proxy::path::BadPathError;
use http::Method;
use http::header::{HeaderName, InvalidHeaderName};
use http::method::InvalidMethod;

use crate::client_key::{self, Part};
use crate::counters::LimitCounters;
use crate::covers::{Covered, Covers};
use crate::limit::{Limit, RetainedState};
use crate::rate_limit_headers;
use crate::stores::{CountStores, SharedStore, StoreContact};
use crate::tokens::Tokens;

/// Active limits, in the order of the config file.
#[derive(Default)]
pub struct Plan {
    pub(crate) limits: Vec<Limit>,
    /// Whether one of them needs the visitor of a ticket.
    pub(crate) needs_visitor: bool,
    /// Tokens by which some limits identify clients.
    pub(crate) tokens: Option<Arc<Tokens>>,
}

impl Plan {
    /// Returns this plan with other tokens.
    #[must_use]
    pub fn with_tokens(self, tokens: Option<Tokens>) -> Self {
        let tokens = tokens.map(Arc::new);
        Self { tokens, ..self }
    }

    pub(crate) fn of(limits: Vec<Limit>) -> Self {
        let needs_visitor = limits.iter().any(Limit::needs_visitor);
        Self {
            limits,
            needs_visitor,
            tokens: None,
        }
    }
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.limits).finish()
    }
}

/// Error of a limit that cannot be activated.
#[derive(Debug, thiserror::Error)]
#[error("limit {limit:?}: {problem}")]
pub struct PlanError {
    limit: String,
    problem: Problem,
}

impl PlanError {
    /// Returns the problem with its causes, without the name of the limit. For a problem of a store
    /// it is the store's message.
    #[must_use]
    pub fn words(&self) -> String {
        let Problem::Unfit(unfit) = &self.problem else {
            return self.problem.to_string();
        };
        match unfit.source() {
            Some(cause) => format!("{unfit}: {cause}"),
            None => unfit.to_string(),
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum Problem {
    #[error("routes: path {path:?}: {why}")]
    Path { path: String, why: BadPathError },
    #[error("routes: invalid method: {0}")]
    Method(#[from] InvalidMethod),
    #[error("key: invalid header name: {0}")]
    Header(#[from] InvalidHeaderName),
    #[error("store: {0:?} is not configured")]
    NoStore(&'static str),
    #[error("store: {0}")]
    Unfit(#[from] UnfitError),
}

/// State of limits by name, which a new plan takes over.
pub(crate) type KeptByName<'k> = HashMap<&'k str, (LimitStore, Policy, Arc<RetainedState>)>;

pub(crate) fn of(
    configs: &[LimitConfig],
    stores: &CountStores,
    known: &KeptByName<'_>,
) -> Result<Plan, PlanError> {
    let limits = configs.iter().map(|config| {
        let built = limit(config, known).and_then(|mut limit| {
            limit.shared_store = shared_store(config, stores)?;
            Ok(limit)
        });
        built.map_err(|problem| PlanError {
            limit: config.name.to_string(),
            problem,
        })
    });
    limits.collect::<Result<_, _>>().map(Plan::of)
}

/// Returns the shared store of a limit after checking its policies; `None` for a local limit.
fn shared_store(
    config: &LimitConfig,
    stores: &CountStores,
) -> Result<Option<SharedStore>, Problem> {
    let named = stores.named(config.store).map_err(Problem::NoStore)?;
    let Some(counts) = named else {
        return Ok(None);
    };
    for policy in iter::once(&config.policy).chain(config.overrides.values()) {
        counts.check(config.name.as_str(), policy)?;
    }
    Ok(Some(SharedStore {
        counts,
        on_failure: config.on_store_failure,
    }))
}

/// Checks that the store of a limit can count it with this policy.
pub(crate) fn check_fit(
    config: &LimitConfig,
    policy: &Policy,
    stores: &CountStores,
) -> Result<(), PlanError> {
    let named = stores.named(config.store).map_err(Problem::NoStore);
    let fit = named.and_then(|named| {
        let counts = named.map_or(Ok(()), |counts| counts.check(config.name.as_str(), policy));
        Ok(counts?)
    });
    fit.map_err(|problem| PlanError {
        limit: config.name.to_string(),
        problem,
    })
}

/// Returns every problem of limits that the config file cannot detect by itself.
#[must_use]
pub fn problems(configs: &[LimitConfig]) -> Vec<PlanError> {
    let problem_of = |config: &LimitConfig| {
        let problem = limit(config, &HashMap::new()).err()?;
        Some(PlanError {
            limit: config.name.to_string(),
            problem,
        })
    };
    configs.iter().filter_map(problem_of).collect()
}

fn limit(config: &LimitConfig, known: &KeptByName<'_>) -> Result<Limit, Problem> {
    let name = config.name.as_str();
    let parts = config.key.parts.iter().map(part);
    let parts = parts.collect::<Result<Vec<_>, _>>()?;
    let kept = known.get(name).filter(|(store, policy, _)| {
        // Another algorithm cannot read these counts, and keys differ between stores.
        let is_same = policy.kind() == config.policy.kind();
        is_same && *store == config.store
    });
    let kept = kept.map_or_else(
        || Arc::new(new_counts(config)),
        |(.., kept)| Arc::clone(kept),
    );
    let prefix = config.key.ipv6_prefix;
    let own = config.overrides.iter().filter_map(|(client, policy)| {
        let key = client_key::key_of_named(&parts, prefix, &kept.keys, &client.0)?;
        Some((key, *policy))
    });
    Ok(Limit {
        name: name.into(),
        policy: config.policy,
        covers: covers(config)?,
        ipv6_prefix: prefix,
        without_key: config.key.without,
        cost: Cost::Take(config.cost),
        on_limit: config.on_limit,
        is_shadow: config.shadow,
        headers: config.headers,
        policy_header: rate_limit_headers::policy_alone(name, config.policy.rate()),
        counts_polling: config.count_polling,
        keys_max: config.keys_max,
        store: config.store,
        shared_store: None,
        own: own.collect(),
        parts,
        kept,
    })
}

fn new_counts(config: &LimitConfig) -> RetainedState {
    RetainedState {
        counts: LocalCounts::new(config.keys_max),
        contact: StoreContact::default(),
        keys: if config.store == LimitStore::Local {
            // No other node has to find the same entries.
            KeyMaker::new(rand::random())
        } else {
            KeyMaker::shared(config.name.as_str())
        },
        counters: LimitCounters::default(),
    }
}

fn covers(config: &LimitConfig) -> Result<Covers, Problem> {
    let covered = config.routes.iter().map(|covered| {
        let methods = covered.methods.iter();
        let methods = methods.map(|method| Method::from_bytes(method.as_bytes()));
        Ok(Covered {
            route: covered.route.clone(),
            methods: methods.collect::<Result<_, InvalidMethod>>()?,
        })
    });
    let covered: Vec<Covered> = covered.collect::<Result<_, Problem>>()?;
    Covers::new(&covered).map_err(|(path, why)| Problem::Path { path, why })
}

fn part(part: &KeyPart) -> Result<Part, Problem> {
    Ok(match part {
        KeyPart::ClientAddress => Part::Address,
        KeyPart::Header(name) => Part::Header(HeaderName::try_from(name)?),
        KeyPart::Cookie(name) => Part::Cookie(name.clone()),
        KeyPart::PathSegment(at) => Part::PathSegment(*at),
        KeyPart::JwtClaim(name) => Part::Claim(name.clone()),
        KeyPart::Ticket => Part::Visitor,
    })
}
