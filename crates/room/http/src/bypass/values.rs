//! Variables of a request as rules see them: made on first use, borrowed if possible.

use std::net::IpAddr;
use std::sync::Arc;

use anteroom_proxy::header_view::HeaderView;
use anteroom_proxy::request_view::RequestView;
use cel::common::traits::{Container, Indexer};
use cel::common::types::{CelBool, CelString, MAP_TYPE, STRING_TYPE, Type};
use cel::common::value::{CowVal, Val};
use cel::context::VariableResolver;
use cel::{Env, ExecutionError};
use http::{HeaderName, Method};
use ipnet::IpNet;

use anteroom_proxy::route::bare_host;

/// Name of our own function.
pub(super) const IN_NETWORK: &str = "in_network";

/// Returns the language of rules: the standard one without optional values, plus [`IN_NETWORK`].
pub(super) fn environment() -> Arc<Env> {
    let mut env = Env::stdlib().with_optional_support(false);
    let arguments = vec![STRING_TYPE, STRING_TYPE];
    env.add_overload(
        IN_NETWORK,
        "in_network_string_string",
        arguments,
        in_network,
    )
    .expect("the standard library has no in_network");
    Arc::new(env)
}

/// Parses a network. An address alone is a network of one address.
pub(super) fn parse_network(text: &str) -> Option<IpNet> {
    let network = text.parse::<IpNet>();
    network
        .or_else(|_| text.parse::<IpAddr>().map(IpNet::from))
        .ok()
}

fn in_network<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let text = |index: usize| {
        let argument = arguments.get(index);
        argument.and_then(|argument| argument.downcast_ref::<CelString<'_>>())
    };
    let (Some(address), Some(network)) = (text(0), text(1)) else {
        return Err(ExecutionError::MissingArgumentOrTarget);
    };
    let address = address.inner().parse::<IpAddr>();
    let (Ok(address), Some(network)) = (address, parse_network(network.inner())) else {
        let message = "not an address, or not a network";
        return Err(ExecutionError::function_error(IN_NETWORK, message));
    };
    Ok(CowVal::owned(CelBool::from(
        network.contains(&address.to_canonical()),
    )))
}

/// Parts of a request that a rule may use, besides the path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BypassRequest<'a> {
    /// Method of the request.
    pub(crate) method: &'a Method,
    /// Host of the request; port and case do not matter.
    pub(crate) host: &'a str,
    /// Address of the visitor.
    pub(crate) address: IpAddr,
    /// Query, without `?`.
    pub(crate) query: &'a str,
    /// Headers of the request.
    pub(crate) headers: HeaderView<'a>,
}

impl<'a> BypassRequest<'a> {
    /// Returns the parts of a request.
    pub(crate) fn of(request: &RequestView<'a>) -> Self {
        Self {
            method: request.method,
            host: request.host,
            address: request.client.address,
            query: request.query,
            headers: request.headers,
        }
    }
}

/// Request in one reading of its path.
pub(super) struct Variables<'a> {
    pub(super) path: &'a str,
    pub(super) request: &'a BypassRequest<'a>,
}

impl Variables<'_> {
    /// Names that [`resolve`](VariableResolver::resolve) knows, except `headers`.
    pub(super) const TEXTS: [&'static str; 6] =
        ["path", "extension", "query", "method", "host", "address"];
    /// Name of the map of headers.
    pub(super) const HEADERS: &'static str = "headers";
}

impl VariableResolver for Variables<'_> {
    fn resolve<'b>(&'b self, variable: &str) -> Option<CowVal<'b, 'b>> {
        let text = |text: &'b str| CowVal::owned(CelString::from(text));
        Some(match variable {
            "path" => text(self.path),
            "extension" => CowVal::owned(CelString::from(extension(self.path))),
            "query" => text(self.request.query),
            "method" => text(self.request.method.as_str()),
            "host" => CowVal::owned(CelString::from(bare_host(self.request.host).into_owned())),
            "address" => CowVal::owned(CelString::from(self.request.address.to_string())),
            Self::HEADERS => CowVal::owned(Headers(self.request.headers)),
            _ => return None,
        })
    }
}

/// Returns `css` for `/a/b.CSS`, and an empty text for `/a/.css` and `/a.b/c`.
fn extension(path: &str) -> String {
    let file = path.rsplit('/').next().unwrap_or_default();
    match file.rsplit_once('.') {
        Some((stem, extension)) if !stem.is_empty() => extension.to_ascii_lowercase(),
        _ => String::new(),
    }
}

/// Headers as a map, without a copy. Names compare without case.
#[derive(Clone, Copy, Debug)]
struct Headers<'a>(HeaderView<'a>);

impl<'a> Headers<'a> {
    fn text(self, name: &str) -> Option<CelString<'a>> {
        let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
        let mut lines = self.0.get_all(&name);
        let first = std::str::from_utf8(lines.next()?).ok()?;
        let mut joined = None;
        for line in lines {
            let line = std::str::from_utf8(line).ok()?;
            let all = joined.get_or_insert_with(|| first.to_owned());
            all.push_str(", ");
            all.push_str(line);
        }
        Some(joined.map_or_else(|| CelString::from(first), CelString::from))
    }
}

impl Val for Headers<'_> {
    fn get_type(&self) -> &Type {
        &MAP_TYPE
    }

    fn cel_type() -> &'static Type {
        &MAP_TYPE
    }

    fn as_container(&self) -> Option<&dyn Container> {
        Some(self)
    }

    fn as_indexer<'b, 'v>(&'b self) -> Option<&'b (dyn Indexer + 'v)>
    where
        Self: 'v,
    {
        Some(self)
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v>
    where
        Self: 'v,
    {
        Box::new(*self)
    }
}

impl Container for Headers<'_> {
    fn contains(&self, name: &dyn Val) -> Result<bool, ExecutionError> {
        let name = name.downcast_ref::<CelString<'_>>();
        let name = name.and_then(|name| HeaderName::from_bytes(name.inner().as_bytes()).ok());
        Ok(name.is_some_and(|name| self.0.get(&name).is_some()))
    }
}

impl Indexer for Headers<'_> {
    fn get<'b, 'v>(&'b self, name: &dyn Val) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        let name = name.downcast_ref::<CelString<'_>>();
        let value = name.and_then(|name| self.text(name.inner()));
        value
            .map(CowVal::owned)
            .ok_or_else(|| ExecutionError::no_such_key("header"))
    }

    fn steal<'v>(self: Box<Self>, name: &dyn Val) -> Result<Box<dyn Val + 'v>, ExecutionError>
    where
        Self: 'v,
    {
        (*self).get(name).map(CowVal::into_owned)
    }
}
