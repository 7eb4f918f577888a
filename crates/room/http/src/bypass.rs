//! Which requests walk past the room?
//!
//! Rules are CEL expressions over the request, and any that holds lets it pass. They are checked
//! when the config is read: unknown names, wrong kinds and loops that a request could make
//! expensive are mistakes of the file, not of the request. What remains (a header that is not
//! there, text that is no number) means that the rule does not hold.
//!
//! | variable | is |
//! | --- | --- |
//! | `path` | decoded path, `/x/../y` and the like resolved |
//! | `extension` | what follows the last dot of the last segment, lower case; may be empty |
//! | `query` | what follows `?`, as sent; may be empty |
//! | `method` | `GET`, ... |
//! | `host` | lower case, without port |
//! | `address` | the visitor's address; `in_network(address, "10.0.0.0/8")` asks for a network |
//! | `headers` | map from lower-case name to text; several of one name are joined by `, ` |
//!
//! A path that origins may read in different ways ([`path`](anteroom_proxy::path)) passes only if
//! it does in every decoded reading: `/static/..%2fcheckout` does not pass because of `/static/`. A
//! rule should name what passes and not what does not: `path != "/shop"` lets `/SHOP` pass, which
//! some origins answer like `/shop`; and `extension` is a claim of the client's, since an origin
//! may answer `/shop/x.css` like `/shop`. Regular expressions (`matches`) are left out: they would
//! be compiled for each request.

mod check;
mod values;

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anteroom_config::BypassRule;
use cel::{Context, Env, ExecutionError, Program, Value};
use http::{HeaderMap, Method};
use tracing::warn;

use anteroom_proxy::path::Readings;
pub(crate) use values::BypassRequest;
use values::Variables;

/// What is wrong with a rule.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("bypass rule `{expression}`: {message}")]
pub(crate) struct BypassError {
    /// Line in the config file; 0 = not from a file.
    pub(crate) line: usize,
    /// The rule as written.
    pub(crate) expression: String,
    /// What is wrong, in words for the operator.
    pub(crate) message: String,
}

/// A room's bypass rules. Clones share their counters.
#[derive(Clone)]
pub struct BypassRules {
    /// `None` costs nothing when asked.
    compiled: Option<Arc<Compiled>>,
}

struct Compiled {
    env: Arc<Env>,
    rules: Vec<Rule>,
}

struct Rule {
    program: Program,
    source: BypassRule,
    failures: AtomicU64,
}

impl BypassRules {
    /// No rules: nothing walks past.
    #[must_use]
    pub const fn none() -> Self {
        Self { compiled: None }
    }

    /// Reads and checks rules.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with any of them.
    pub(crate) fn compile(rules: &[BypassRule]) -> Result<Self, Vec<BypassError>> {
        if rules.is_empty() {
            return Ok(Self::none());
        }
        let env = values::environment();
        let mut compiled = Vec::with_capacity(rules.len());
        let mut errors = Vec::new();
        for rule in rules {
            let messages = match compile(&env, rule) {
                Ok(rule) => {
                    compiled.push(rule);
                    continue;
                }
                Err(messages) => messages,
            };
            errors.extend(messages.into_iter().map(|message| BypassError {
                line: rule.line,
                expression: rule.expression.clone(),
                message,
            }));
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let compiled = Compiled {
            env,
            rules: compiled,
        };
        Ok(Self {
            compiled: Some(Arc::new(compiled)),
        })
    }

    /// Says everything that is wrong with one rule, for the config's reader.
    #[must_use]
    pub fn check(rule: &BypassRule) -> Vec<String> {
        let errors = Self::compile(std::slice::from_ref(rule)).err();
        let errors = errors.into_iter().flatten();
        errors.map(|error| error.to_string()).collect()
    }

    /// Says if a rule lets an ordinary visitor's request for the front page pass: allowed, and
    /// mostly a slip, because a room queues nobody there.
    #[must_use]
    pub fn remark(rule: &BypassRule) -> Option<String> {
        let env = values::environment();
        let rule = compile(&env, rule).ok()?;
        let holds = |path| {
            with_ordinary(&env, path, |context| {
                matches!(rule.program.execute(context), Ok(Value::Bool(true)))
            })
        };
        let expression = &rule.source.expression;
        match (holds("/"), holds("/a/page.html")) {
            (true, true) => Some(format!(
                "bypass rule `{expression}`: true for any page and any visitor, so nobody ever \
                 waits"
            )),
            (true, false) => Some(format!(
                "bypass rule `{expression}`: true for `/` and any visitor, so nobody waits there"
            )),
            (false, _) => None,
        }
    }

    /// Whether some rule lets this request pass, in every decoded reading of its path.
    #[must_use]
    pub(crate) fn allow(&self, readings: &Readings<'_>, request: &BypassRequest<'_>) -> bool {
        let Some(compiled) = &self.compiled else {
            return false;
        };
        let mut decoded = readings.decoded().peekable();
        decoded.peek().is_some() && decoded.all(|path| compiled.allow(path, request))
    }

    /// How often a rule failed for another reason than a header that is not there.
    #[must_use]
    pub(crate) fn failures(&self) -> u64 {
        let rules = self.compiled.iter().flat_map(|compiled| &compiled.rules);
        rules
            .map(|rule| rule.failures.load(Ordering::Relaxed))
            .sum()
    }
}

impl std::fmt::Debug for BypassRules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let rules = self.compiled.iter().flat_map(|compiled| &compiled.rules);
        f.debug_list()
            .entries(rules.map(|rule| &rule.source.expression))
            .finish()
    }
}

impl Compiled {
    fn allow(&self, path: &str, request: &BypassRequest<'_>) -> bool {
        let variables = Variables { path, request };
        let mut context = Context::with_env(Arc::clone(&self.env));
        context.set_variable_resolver(&variables);
        self.rules.iter().any(|rule| rule.holds(&context))
    }
}

impl Rule {
    fn holds(&self, context: &Context<'_, '_>) -> bool {
        match self.program.execute(context) {
            Ok(Value::Bool(holds)) => holds,
            // Ordinary: most requests lack the header that a rule asks for.
            Err(ExecutionError::NoSuchKey(_)) => false,
            Ok(_) => self.fail("it gives no yes or no"),
            // Not the error's own text: that quotes what the client sent.
            Err(_) => self.fail("it cannot be worked out for this request"),
        }
    }

    /// Counts, logs the first time only, and lets nothing pass.
    fn fail(&self, why: &str) -> bool {
        if self.failures.fetch_add(1, Ordering::Relaxed) == 0 {
            let BypassRule { expression, line } = &self.source;
            warn!(
                %expression,
                line,
                why,
                "a bypass rule failed; further failures are only counted"
            );
        }
        false
    }
}

fn compile(env: &Arc<Env>, rule: &BypassRule) -> Result<Rule, Vec<String>> {
    let program = env.compile(&rule.expression).map_err(|errors| {
        let messages = errors.errors.iter().map(|error| {
            let (line, column) = error.pos;
            format!("{} (line {line}, column {column} of the rule)", error.msg)
        });
        messages.collect::<Vec<_>>()
    })?;
    check::check(program.expression())?;
    try_out(env, &program)?;
    Ok(Rule {
        program,
        source: rule.clone(),
        failures: AtomicU64::new(0),
    })
}

/// Evaluates a rule for a harmless request, to find what [`check`] cannot: what is wrong with it
/// whatever the request is.
fn try_out(env: &Arc<Env>, program: &Program) -> Result<(), Vec<String>> {
    match with_ordinary(env, "/", |context| program.execute(context)) {
        Ok(Value::Bool(_)) => Ok(()),
        Ok(value) => Err(vec![format!(
            "a rule must give true or false, but this gives a value of type {}",
            value.type_of()
        )]),
        Err(
            error @ (ExecutionError::UndeclaredReference(_)
            | ExecutionError::NoSuchOverload(_)
            | ExecutionError::InvalidArgumentCount { .. }
            | ExecutionError::UnsupportedTargetType { .. }
            | ExecutionError::NotSupportedAsMethod { .. }
            | ExecutionError::UnsupportedKeyType(_)
            | ExecutionError::UnexpectedType { .. }
            | ExecutionError::MissingArgumentOrTarget
            | ExecutionError::ValuesNotComparable(..)
            | ExecutionError::UnsupportedBinaryOperator(..)
            | ExecutionError::UnsupportedIndex(..)
            | ExecutionError::DuplicateKey(_)),
        ) => Err(vec![error.to_string()]),
        // The rest depends on the request: a header that is not there, text that is no number.
        Err(_) => Ok(()),
    }
}

/// Calls `work` with what a rule sees of an ordinary visitor's request for a page.
fn with_ordinary<T>(env: &Arc<Env>, path: &str, work: impl FnOnce(&Context<'_, '_>) -> T) -> T {
    let request = BypassRequest {
        method: &Method::GET,
        host: "shop.example",
        address: IpAddr::from([192, 0, 2, 1]),
        query: "",
        headers: &HeaderMap::new(),
    };
    let variables = Variables {
        path,
        request: &request,
    };
    let mut context = Context::with_env(Arc::clone(env));
    context.set_variable_resolver(&variables);
    work(&context)
}

#[cfg(test)]
mod tests;
