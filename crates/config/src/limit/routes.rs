//! Reader of a limit's `routes`: the requests that it covers.

use crate::kind::{InvalidValue, Text};
use crate::model::{Host, LimitRoute};
use crate::notes::Located;
use crate::problem::Finding;
use crate::reader::{Key, Table};
use crate::room;

/// Most routes of a limit; a room has the same maximum.
const ROUTES_MAX: usize = 100;
/// Most methods of a route: HTTP and WebDAV together have fewer.
const METHODS_MAX: usize = 50;

const ROUTES: &str = "routes";
const METHODS: Key<Text<String>> = Key {
    name: "methods",
    kind: Text {
        allowed: "the name of a method in capitals, such as \"POST\"",
        read: method,
    },
    default: None,
};

fn method(text: &str) -> Result<String, InvalidValue> {
    let is_method = |text: &str| {
        let is_plain = |byte: u8| byte.is_ascii_uppercase() || matches!(byte, b'-' | b'_');
        (1..=32).contains(&text.len()) && text.bytes().all(is_plain)
    };
    if is_method(text) {
        return Ok(text.to_owned());
    }
    let capitals = text.to_ascii_uppercase();
    if is_method(&capitals) {
        return Err(InvalidValue::hint(format!("did you mean {capitals:?}?")));
    }
    Err(InvalidValue::PLAIN)
}

/// Reads the routes; empty if they were left out.
pub(super) fn read(table: &mut Table<'_>) -> Vec<LimitRoute> {
    let mistakes = table.notes.count();
    let allowed = "a list of tables, such as [{ path = \"/api\", methods = [\"POST\"] }]";
    let elements = table.elements(ROUTES, allowed);
    let is_list = table.notes.count() == mistakes;
    let count = elements.len();
    if table.has(ROUTES) && is_list && !(1..=ROUTES_MAX).contains(&count) {
        let location = table.location(ROUTES);
        let found = Finding::Value(format!("{count} routes"));
        let allowed = format!("1 to {ROUTES_MAX}");
        let hint = (count == 0).then(|| "leave routes out to cover every request".to_owned());
        table.notes.report(&location, found, allowed, hint);
    }
    let mut routes: Vec<Located<LimitRoute>> = Vec::with_capacity(count.min(ROUTES_MAX));
    for element in elements.iter().take(ROUTES_MAX) {
        let mut inner = table.enter(element);
        let methods = read_methods(&mut inner);
        if let Some(Located { value, location }) = room::read_route(&mut inner) {
            let first = routes.iter().find(|known| known.value.route == value);
            if let Some(first) = first {
                let host = match &value.host {
                    Host::Any => "any host",
                    Host::Name(name) => name,
                };
                let path = &value.path;
                let finding = format!("line {} covers {host} {path} already", first.location.line);
                let hint = "name all methods in one route".to_owned();
                let finding = Finding::Remark(finding);
                inner.notes.report(&location, finding, "", Some(hint));
            }
            let route = value;
            let value = LimitRoute { route, methods };
            routes.push(Located { value, location });
        }
        inner.finish();
    }
    routes.into_iter().map(|route| route.value).collect()
}

fn read_methods(table: &mut Table<'_>) -> Vec<String> {
    let mistakes = table.notes.count();
    let methods = table.list(&METHODS).unwrap_or_default();
    let is_right = table.notes.count() == mistakes;
    let count = methods.len();
    if table.has(METHODS.name) && is_right && !(1..=METHODS_MAX).contains(&count) {
        let location = table.location(METHODS.name);
        let found = Finding::Value(format!("{count} methods"));
        let allowed = format!("1 to {METHODS_MAX}");
        let hint = (count == 0).then(|| "leave methods out to cover every one".to_owned());
        table.notes.report(&location, found, allowed, hint);
    }
    let mut known = Vec::with_capacity(count);
    for Located { value, location } in methods {
        if known.contains(&value) {
            let finding = Finding::Remark("the same method a second time".to_owned());
            table.notes.report(&location, finding, "", None);
        } else {
            known.push(value);
        }
    }
    known
}
