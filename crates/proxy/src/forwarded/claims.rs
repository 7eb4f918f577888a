//! Headers that only a trusted proxy may send.
//!
//! Proxies name the client by many headers besides `X-Forwarded-*`, and an origin that reads one
//! believes its sender. So they pass only from a trusted proxy. The setting
//! `server.trusted_proxy_headers` lists them.

use super::names::is_same;

/// Names of these headers, in lower case.
#[derive(Clone, Debug)]
pub(super) struct ProxyHeaders {
    names: Vec<Box<str>>,
    /// One bit for each first letter of a name, which excludes most headers of a request.
    initials: u32,
}

impl ProxyHeaders {
    pub(super) fn new(names: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        let names = names.into_iter().map(|name| name.as_ref().to_owned());
        let names: Vec<Box<str>> = names.map(String::into_boxed_str).collect();
        let initials = names.iter().map(|name| initial(name));
        Self {
            initials: initials.fold(0, |all, one| all | one),
            names,
        }
    }

    pub(super) fn contains(&self, name: &str) -> bool {
        self.initials & initial(name) != 0 && self.names.iter().any(|listed| is_same(name, listed))
    }
}

impl ProxyHeaders {
    /// Whether a name is listed, as [`ProxyHeaders::contains`] tells, in any case and without odd
    /// characters.
    pub(super) fn contains_any_case(&self, name: &str) -> bool {
        let mut names = self.names.iter();
        self.initials & initial(name) != 0 && names.any(|listed| name.eq_ignore_ascii_case(listed))
    }
}

impl Default for ProxyHeaders {
    fn default() -> Self {
        Self::new(anteroom_config::TRUSTED_PROXY_HEADERS)
    }
}

fn initial(name: &str) -> u32 {
    name.bytes().next().map_or(0, |byte| 1 << (byte & 31))
}
