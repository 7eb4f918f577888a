//! Parser of host names, as people type them and as browsers send them.
//!
//! Nothing is resolved here, and names that are not ASCII are not translated.

use std::fmt;

/// Longest name that DNS can carry, in bytes.
const NAME_BYTES_MAX: usize = 253;
/// Longest label of a name, in bytes.
const LABEL_BYTES_MAX: usize = 63;

/// Error of a text that is not a host.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum HostError {
    /// The text is empty, or only a dot.
    #[error("host is empty")]
    Empty,
    /// The text begins with `http://` or another scheme.
    #[error("host has a scheme")]
    Scheme,
    /// The text contains `*`.
    #[error("host has a wildcard")]
    Wildcard,
    /// The text contains a path.
    #[error("host has a path")]
    Path,
    /// The text is not ASCII.
    #[error("host is not ascii")]
    NotAscii,
    /// The text after the colon is not a port.
    #[error("port is not a number from 0 to 65535")]
    Port,
    /// The text has a character or a length that no host name has.
    #[error("not a host name")]
    Name,
}

/// Returns the form of a host that is compared: lower case, no port, no trailing dot. Works on a
/// config value and on a `Host` header alike.
///
/// # Errors
///
/// [`HostError`] if the text is not a host.
pub fn normalise(text: &str) -> Result<String, HostError> {
    Ok(split_port(text)?.0)
}

/// Splits `host[:port]` and normalises the host. An IPv6 address keeps its brackets.
///
/// # Errors
///
/// [`HostError`] if the text is not a host, or what follows the colon is not a port.
pub fn split_port(text: &str) -> Result<(String, Option<u16>), HostError> {
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

/// Host and port of a server.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct HostPort {
    /// Name in lower case, or IP address without brackets.
    pub host: String,
    /// Port, never 0.
    pub port: u16,
}

impl HostPort {
    /// Reads `host[:port]`; without a port, `usual` is taken. `None` if the text is not a server,
    /// or has no port and there is no usual one.
    #[must_use]
    pub fn parse(text: &str, usual: Option<u16>) -> Option<Self> {
        let (host, port) = split_port(text).ok()?;
        let port = port.or(usual).filter(|port| *port > 0)?;
        let bare = host.strip_prefix('[');
        let bare = bare.and_then(|host| host.strip_suffix(']'));
        let host = bare.map(str::to_owned).unwrap_or(host);
        Some(Self { host, port })
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_host_has_one_form() {
        let check = |input: &str, expected: &str| {
            assert_eq!(normalise(input).as_deref(), Ok(expected), "{input}");
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
    fn an_invalid_host_is_rejected_with_its_reason() {
        let check = |input: &str, expected| {
            assert_eq!(normalise(input), Err(expected), "{input}");
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
    fn a_server_without_a_port_takes_the_usual_one() {
        let check = |text: &str, usual, expected: Option<&str>| {
            let server = HostPort::parse(text, usual).map(|server| server.to_string());
            assert_eq!(server.as_deref(), expected, "{text}");
        };
        check("Cache.Example", Some(11_211), Some("cache.example:11211"));
        check("[0::1]:9", Some(11_211), Some("[::1]:9"));
        check("10.0.0.6:7946", None, Some("10.0.0.6:7946"));
        check("10.0.0.6", None, None);
        check("10.0.0.6:0", Some(7), None);
        check("redis://10.0.0.6", Some(7), None);
    }
}
