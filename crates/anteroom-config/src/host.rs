//! Which host is meant? Host names and origins as people type them and as browsers send them.
//!
//! Nothing is resolved here, and names that are not ASCII are not translated.

use super::model::{Host, Origin};

/// Longest name that DNS can carry, in bytes.
const NAME_BYTES_MAX: usize = 253;
/// Longest label of a name, in bytes.
const LABEL_BYTES_MAX: usize = 63;

/// Why a text is not a host.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// Nothing is left of it.
    #[error("host is empty")]
    Empty,
    /// It begins with `http://` or the like.
    #[error("host has a scheme")]
    Scheme,
    /// It holds `*`.
    #[error("host has a wildcard")]
    Wildcard,
    /// It holds a path.
    #[error("host has a path")]
    Path,
    /// It is not ASCII.
    #[error("host is not ascii")]
    NotAscii,
    /// What follows the colon is no port.
    #[error("port is not a number from 0 to 65535")]
    Port,
    /// Some other character or length that no host has.
    #[error("not a host name")]
    Name,
}

impl Host {
    /// Reads a host and brings it into the one form that is compared: lower case, no port, no
    /// trailing dot. Works on a config value and on a `Host` header alike.
    ///
    /// # Errors
    ///
    /// [`HostError`] when it can be no host.
    pub fn normalise(text: &str) -> Result<String, HostError> {
        Ok(split_port(text)?.0)
    }
}

/// Why a text is not an origin.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum OriginError {
    /// It begins neither with `http://` nor with `https://`.
    #[error("origin begins neither with http:// nor with https://")]
    Scheme,
    /// It holds a user name or password.
    #[error("origin has user information")]
    UserInfo,
    /// It goes on after the authority.
    #[error("origin has a path")]
    Path,
    /// Its port is 0.
    #[error("origin has port 0")]
    PortZero,
    /// Its host is none.
    #[error("origin has no valid host")]
    Host(#[source] HostError),
}

impl Origin {
    /// Reads `http://host[:port]` or `https://host[:port]`; without a port it is 80 or 443.
    ///
    /// # Errors
    ///
    /// [`OriginError`] for everything that is more or less than that.
    pub fn parse(text: &str) -> Result<Self, OriginError> {
        let (scheme, rest) = text.split_once("://").ok_or(OriginError::Scheme)?;
        let has_tls = scheme.eq_ignore_ascii_case("https");
        if !has_tls && !scheme.eq_ignore_ascii_case("http") {
            return Err(OriginError::Scheme);
        }
        let usual = if has_tls { 443 } else { 80 };
        if rest.contains('@') {
            return Err(OriginError::UserInfo);
        }
        if rest.contains(['/', '?', '#']) {
            return Err(OriginError::Path);
        }
        let (host, port) = split_port(rest).map_err(OriginError::Host)?;
        match port {
            Some(0) => Err(OriginError::PortZero),
            port => Ok(Self {
                has_tls,
                authority: format!("{host}:{}", port.unwrap_or(usual)),
            }),
        }
    }
}

/// Splits `host[:port]` and normalises the host.
pub(super) fn split_port(text: &str) -> Result<(String, Option<u16>), HostError> {
    if text.contains("://") {
        return Err(HostError::Scheme);
    }
    if text.contains('/') {
        return Err(HostError::Path);
    }
    if text.contains('*') {
        return Err(HostError::Wildcard);
    }
    if !text.is_ascii() {
        return Err(HostError::NotAscii);
    }
    let (host, port) = if text.starts_with('[') {
        let end = text.find(']').ok_or(HostError::Name)?;
        let (host, rest) = text.split_at(end + 1);
        match rest.strip_prefix(':') {
            Some(port) => (host, Some(port)),
            None if rest.is_empty() => (host, None),
            None => return Err(HostError::Name),
        }
    } else {
        match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        }
    };
    // `example.com:` is legal in a URL and means the default port.
    let port = match port {
        None | Some("") => None,
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            Some(digits.parse().map_err(|_| HostError::Port)?)
        }
        Some(_) => return Err(HostError::Port),
    };
    Ok((check_name(host)?, port))
}

fn check_name(host: &str) -> Result<String, HostError> {
    if let Some(address) = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')) {
        let address: std::net::Ipv6Addr = address.parse().map_err(|_| HostError::Name)?;
        return Ok(format!("[{address}]"));
    }
    let host = host.strip_suffix('.').unwrap_or(host);
    if host.is_empty() {
        return Err(HostError::Empty);
    }
    let is_label = |label: &str| {
        !label.is_empty()
            && label.len() <= LABEL_BYTES_MAX
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    if host.len() > NAME_BYTES_MAX || !host.split('.').all(is_label) {
        return Err(HostError::Name);
    }
    Ok(host.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_host_has_one_form() {
        let check = |input: &str, expected: &str| {
            assert_eq!(Host::normalise(input).as_deref(), Ok(expected), "{input}");
        };
        check("Shop.Example.COM", "shop.example.com");
        check("shop.example.com.", "shop.example.com");
        check("shop.example.com:8080", "shop.example.com");
        check("shop.example.com.:8080", "shop.example.com");
        check("shop.example.com:", "shop.example.com");
        check("127.0.0.1:80", "127.0.0.1");
        check("[::1]:8080", "[::1]");
        check("[0:0:0:0:0:0:0:1]", "[::1]");
        check("a_b", "a_b");
    }

    #[test]
    fn what_can_be_no_host_is_refused_with_the_reason() {
        let check = |input: &str, expected| {
            assert_eq!(Host::normalise(input), Err(expected), "{input}");
        };
        check("", HostError::Empty);
        check(".", HostError::Empty);
        check("http://a", HostError::Scheme);
        check("a/b", HostError::Path);
        check("*.a", HostError::Wildcard);
        check("é.fr", HostError::NotAscii);
        check("a:b", HostError::Port);
        check("a:+1", HostError::Port);
        check("a:65536", HostError::Port);
        check("a..b", HostError::Name);
        check("a b", HostError::Name);
        check("[::1", HostError::Name);
        check("[::1]x", HostError::Name);
        check("::1", HostError::Port);
        check(&"a".repeat(64), HostError::Name);
        check(&"a.".repeat(200), HostError::Name);
    }

    #[test]
    fn an_origin_is_http_and_one_authority() {
        let check = |input: &str, expected: Result<&str, OriginError>| {
            let origin = Origin::parse(input);
            let expected = expected.map(str::to_owned);
            assert_eq!(origin.map(|origin| origin.to_string()), expected, "{input}");
        };
        check("http://127.0.0.1:3000", Ok("http://127.0.0.1:3000"));
        check("HTTP://Origin.Internal", Ok("http://origin.internal:80"));
        check("http://[::1]:9", Ok("http://[::1]:9"));
        check("https://a", Ok("https://a:443"));
        check("HTTPS://[::1]:9", Ok("https://[::1]:9"));
        check("a:80", Err(OriginError::Scheme));
        check("ftp://a", Err(OriginError::Scheme));
        check("http://u:p@a", Err(OriginError::UserInfo));
        check("http://a/", Err(OriginError::Path));
        check("http://a?b", Err(OriginError::Path));
        check("http://a:0", Err(OriginError::PortZero));
        check("http://", Err(OriginError::Host(HostError::Empty)));
        check("http://a b", Err(OriginError::Host(HostError::Name)));
    }
}
