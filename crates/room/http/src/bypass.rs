//! Bypass rules: requests that pass a room without a decision.
//!
//! Rules are CEL expressions over the request. If any is true, the request passes. They are checked
//! when the config is read: unknown names, wrong types and loops that a request could make
//! expensive are mistakes of the file, not of the request. A rule that cannot be evaluated (a
//! header is absent, a text is no number) is false.
//!
//! | variable | is |
//! | --- | --- |
//! | `path` | decoded path, `/x/../y` and the like resolved |
//! | `extension` | text after the last dot of the last segment, lower case; may be empty |
//! | `query` | text after `?`, as sent; may be empty |
//! | `method` | `GET`, ... |
//! | `host` | lower case, without port |
//! | `address` | the visitor's address; `in_network(address, "10.0.0.0/8")` tests for a network |
//! | `headers` | map from lower-case name to text; several of one name are joined by `, ` |
//!
//! A path that origins may read in different ways ([`path`](anteroom_proxy::path)) passes only if
//! it does in every decoded reading: `/static/..%2fcheckout` does not pass because of `/static/`. A
//! rule should name what passes and not what does not: `path != "/shop"` lets `/SHOP` pass, which
//! some origins treat like `/shop`. `extension` is a claim of the client: an origin may treat
//! `/shop/x.css` like `/shop`. Regular expressions (`matches`) are left out, because they would be
//! compiled for each request.

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

/// Most brackets in each other.
const BRACKETS_MAX: usize = 32;
/// Stack for the compiler. A rule has at most 4,096 bytes, so that 2,000 operators may follow each
/// other. In a build without optimization each takes 20 KB, and a bracket 170 KB. Only what is used
/// takes memory.
const STACK_BYTES: usize = 128 * 1024 * 1024;

/// Mistake in a bypass rule.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("bypass rule `{expression}`: {message}")]
pub(crate) struct BypassError {
    /// Line in the config file; 0 = not from a file.
    pub(crate) line: usize,
    /// Expression of the rule, as written.
    pub(crate) expression: String,
    /// Mistake, in words for the operator.
    pub(crate) message: String,
}

/// Bypass rules of a room. Clones share their counters.
#[derive(Clone)]
pub struct BypassRules {
    /// Rules; `None` = there are none, which costs nothing.
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
    /// Returns an empty set of rules: no request passes.
    #[must_use]
    pub const fn none() -> Self {
        Self { compiled: None }
    }

    /// Compiles and checks rules.
    ///
    /// # Errors
    ///
    /// All mistakes of all rules.
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

    /// Returns all mistakes of a rule.
    #[must_use]
    pub fn check(rule: &BypassRule) -> Vec<String> {
        let errors = Self::compile(std::slice::from_ref(rule)).err();
        let errors = errors.into_iter().flatten();
        errors.map(|error| error.to_string()).collect()
    }

    /// Returns a warning about a rule that lets any visitor's request for the front page pass. That
    /// is allowed but mostly a mistake, because the room then queues nobody there.
    #[must_use]
    pub fn remark(rule: &BypassRule) -> Option<String> {
        let env = values::environment();
        let rule = compile(&env, rule).ok()?;
        let is_true = |path| {
            with_ordinary(&env, path, |context| {
                matches!(rule.program.execute(context), Ok(Value::Bool(true)))
            })
        };
        let expression = &rule.source.expression;
        match (is_true("/"), is_true("/a/page.html")) {
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

    /// Whether a rule lets this request pass, in every decoded reading of its path.
    #[must_use]
    pub(crate) fn allow(&self, readings: &Readings<'_>, request: &BypassRequest<'_>) -> bool {
        let Some(compiled) = &self.compiled else {
            return false;
        };
        let mut decoded = readings.decoded().peekable();
        decoded.peek().is_some() && decoded.all(|path| compiled.allow(path, request))
    }

    /// Counts evaluations that failed, except those for lack of a header.
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
        self.rules.iter().any(|rule| rule.is_true(&context))
    }
}

impl Rule {
    fn is_true(&self, context: &Context<'_, '_>) -> bool {
        match self.program.execute(context) {
            Ok(Value::Bool(value)) => value,
            // No failure: most requests lack the header that a rule names.
            Err(ExecutionError::NoSuchKey(_)) => false,
            Ok(_) => self.fail("its value is neither true nor false"),
            // The error's own text would quote what the client sent.
            Err(_) => self.fail("it cannot be evaluated for this request"),
        }
    }

    /// Counts a failure and logs the first one. Returns `false`: the request does not pass.
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

/// Compiles a rule on a thread with a large stack: the compiler calls itself for each bracket and
/// each operator, and without the stack for that the process would end.
fn compile(env: &Arc<Env>, rule: &BypassRule) -> Result<Rule, Vec<String>> {
    if check::brackets(&rule.expression) > BRACKETS_MAX {
        return Err(vec![format!(
            "more than {BRACKETS_MAX} brackets in each other"
        )]);
    }
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
        let compiling = thread.spawn_scoped(scope, || compile_here(env, rule));
        let compiled = compiling.map(std::thread::ScopedJoinHandle::join);
        compiled
            .map_err(|error| vec![format!("cannot be checked: {error}")])?
            .unwrap_or_else(|_| Err(vec!["the compiler failed".to_owned()]))
    })
}

fn compile_here(env: &Arc<Env>, rule: &BypassRule) -> Result<Rule, Vec<String>> {
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

/// Evaluates a rule for an ordinary request, to find mistakes that [`check`] cannot see and that do
/// not depend on the request.
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
        // The rest depends on the request: a header is absent, a text is no number.
        Err(_) => Ok(()),
    }
}

/// Calls `work` with the variables of an ordinary visitor's request for a page.
fn with_ordinary<T>(env: &Arc<Env>, path: &str, work: impl FnOnce(&Context<'_, '_>) -> T) -> T {
    let headers = HeaderMap::new();
    let request = BypassRequest {
        method: &Method::GET,
        host: "shop.example",
        address: IpAddr::from([192, 0, 2, 1]),
        query: "",
        headers: (&headers).into(),
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
