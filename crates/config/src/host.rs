//! Parser of hosts and origins.
//!
//! Nothing is resolved here, and names that are not ASCII are not translated.

use crate::address::host::{HostError, normalise, split_port};

use super::model::{Host, Origin};

impl Host {
    /// Reads a host and brings it into the one form that is compared: lower case, no port, no
    /// trailing dot. Works on a config value and on a `Host` header alike.
    ///
    /// # Errors
    ///
    /// [`HostError`] if the text is not a host.
    pub fn normalise(text: &str) -> Result<String, HostError> {
        normalise(text)
    }
}

/// Error of a text that is not an origin.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum OriginError {
    /// The text begins neither with `http://` nor with `https://`.
    #[error("origin begins neither with http:// nor with https://")]
    Scheme,
    /// The text contains a user name or password.
    #[error("origin has user information")]
    UserInfo,
    /// The text goes on after the authority.
    #[error("origin has a path")]
    Path,
    /// The port is 0.
    #[error("origin has port 0")]
    PortZero,
    /// The host is not valid.
    #[error("origin has no valid host")]
    Host(#[source] HostError),
}

impl Origin {
    /// Reads `http://host[:port]` or `https://host[:port]`; the default port is 80 or 443.
    ///
    /// # Errors
    ///
    /// [`OriginError`] if the text is anything else.
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

#[cfg(test)]
mod tests {
    use super::*;

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
