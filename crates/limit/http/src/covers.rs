//! Requests that a limit covers.
//!
//! Host and path match like those of rooms, in every plausible reading of the path. So an encoding
//! that the origin decodes does not bypass a limit.

use anteroom_config::Route;
use anteroom_proxy::path::{BadPathError, Readings};
use anteroom_proxy::route::Routes;
use http::Method;

/// Requests by method, host and path.
#[derive(Debug)]
pub(crate) struct Covers {
    /// Empty: all requests.
    by_methods: Vec<ByMethods>,
}

#[derive(Debug)]
struct ByMethods {
    /// Empty: all methods.
    methods: Vec<Method>,
    routes: Routes,
}

/// Requests that a limit covers.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Covered {
    pub(crate) route: Route,
    /// Empty: all methods.
    pub(crate) methods: Vec<Method>,
}

impl Covers {
    /// Creates the set of requests that one of `covered` contains; all requests if it is empty. The
    /// error names the path that can never match.
    pub(crate) fn new(covered: &[Covered]) -> Result<Self, (String, BadPathError)> {
        let mut by_methods: Vec<(Vec<Method>, Vec<Route>)> = Vec::new();
        for Covered { route, methods } in covered {
            // Checks paths one by one, so that the error names the path.
            let error = |why| (route.path.clone(), why);
            Readings::of(&route.path).map_err(error)?;
            match by_methods.iter_mut().find(|(known, _)| known == methods) {
                Some((_, routes)) => routes.push(route.clone()),
                None => by_methods.push((methods.clone(), vec![route.clone()])),
            }
        }
        let sets = by_methods.into_iter().map(|(methods, routes)| {
            let routes = Routes::new([&*routes]).map_err(|why| (String::new(), why))?;
            Ok(ByMethods { methods, routes })
        });
        Ok(Self {
            by_methods: sets.collect::<Result<_, _>>()?,
        })
    }

    /// Whether the request is covered.
    pub(crate) fn contain(&self, method: &Method, host: &str, readings: &Readings<'_>) -> bool {
        // A request is covered if one of its readings is, even if another is not.
        let is_under = |routes: &Routes| routes.find(host, readings) != Ok(None);
        self.by_methods.is_empty()
            || self.by_methods.iter().any(|set| {
                (set.methods.is_empty() || set.methods.contains(method)) && is_under(&set.routes)
            })
    }
}

#[cfg(test)]
mod tests {
    use anteroom_config::Host;

    use super::*;

    fn covered(host: &str, path: &str, methods: &[Method]) -> Covered {
        let host = match host {
            "" => Host::Any,
            name => Host::Name(name.to_owned()),
        };
        let path = path.to_owned();
        Covered {
            route: Route { host, path },
            methods: methods.to_vec(),
        }
    }

    fn check(covers: &Covers, (method, host, path): (Method, &str, &str), expected: bool) {
        let readings = Readings::of(path).unwrap();
        let found = covers.contain(&method, host, &readings);
        assert_eq!(found, expected, "{method} {host}{path}");
    }

    #[test]
    fn without_routes_every_request_counts() {
        let covers = Covers::new(&[]).unwrap();
        check(&covers, (Method::GET, "shop.example", "/any"), true);
    }

    #[test]
    fn host_path_and_method_must_fit_together() {
        let covers = Covers::new(&[
            covered("api.example", "/v1", &[Method::POST]),
            covered("api.example", "/v1/search", &[Method::GET]),
            covered("", "/login", &[]),
        ])
        .unwrap();
        for (request, expected) in [
            ((Method::POST, "api.example", "/v1"), true),
            ((Method::POST, "API.example:443", "/v1/orders/7"), true),
            ((Method::POST, "api.example", "/v1x"), false),
            ((Method::GET, "api.example", "/v1"), false),
            ((Method::GET, "api.example", "/v1/search"), true),
            ((Method::DELETE, "api.example", "/v1/search"), false),
            ((Method::GET, "other.example", "/v1/search"), false),
            ((Method::GET, "other.example", "/login/now"), true),
        ] {
            check(&covers, request, expected);
        }
    }

    #[test]
    fn a_disguised_path_counts_as_what_it_may_be() {
        let covers = Covers::new(&[covered("", "/login", &[])]).unwrap();
        for path in ["/%6cogin", "//login", "/x/../login", "/LOGIN", "/login;a=b"] {
            check(&covers, (Method::GET, "shop.example", path), true);
        }
        check(&covers, (Method::GET, "shop.example", "/%6cogins"), false);
    }
}
