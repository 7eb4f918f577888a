//! Flags of every command that talks to a gateway: its address, the token, TLS, output format.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use http::Uri;

/// Default token file: the one of a gateway that was started in this folder without `--data`.
const TOKEN_FILE: &str = "anteroom-data/admin-token";
/// Port of https.
const HTTPS_PORT: u16 = 443;

/// Default admin address of a gateway.
pub(crate) const ADMIN: &str = "127.0.0.1:8081";

/// Admin address of a gateway.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum AdminAddress {
    /// Plain HTTP.
    Http(SocketAddr),
    /// https, to a name or an IP address.
    Https {
        /// Host as in a URL.
        host: String,
        /// Port.
        port: u16,
    },
}

impl AdminAddress {
    /// Returns host and port as in a URL.
    pub(crate) fn authority(&self) -> String {
        match self {
            Self::Http(address) => address.to_string(),
            Self::Https { host, port } => format!("{host}:{port}"),
        }
    }

    /// Whether the gateway serves metrics and states without a token there.
    pub(crate) fn is_loopback(&self) -> bool {
        let address = self.authority().parse::<SocketAddr>();
        address.is_ok_and(|address| address.ip().to_canonical().is_loopback())
    }
}

impl fmt::Display for AdminAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http(address) => write!(f, "{address}"),
            Self::Https { .. } => write!(f, "https://{}", self.authority()),
        }
    }
}

/// Parses an admin address: as `serve --admin` takes it, or as a browser shows it.
pub(crate) fn address(text: &str) -> Result<AdminAddress, String> {
    if let Some(found) = https_address(text) {
        return Ok(found);
    }
    let bare = text.strip_prefix("http://").unwrap_or(text);
    let bare = bare.strip_suffix('/').unwrap_or(bare);
    bare.parse().map(AdminAddress::Http).map_err(|_| {
        "this must be an IP address and a port, such as 127.0.0.1:8081 or [::1]:8081, or \
         https:// and a name, such as https://ops.example.com:8081"
            .to_owned()
    })
}

fn https_address(text: &str) -> Option<AdminAddress> {
    let uri: Uri = text.parse().ok()?;
    let is_bare = uri.path() == "/" && uri.query().is_none();
    let authority = uri.authority().filter(|_| is_bare)?;
    let has_user = authority.as_str().contains('@');
    (uri.scheme_str() == Some("https") && !has_user).then(|| AdminAddress::Https {
        host: authority.host().to_owned(),
        port: authority.port_u16().unwrap_or(HTTPS_PORT),
    })
}

/// Token file, TLS and output format.
#[derive(Args, Clone, Debug)]
pub(crate) struct Connection {
    /// A file with the token: `admin-token` in the gateway's data folder, or your own
    #[arg(
        long,
        value_name = "FILE",
        default_value = TOKEN_FILE,
        env = "ANTEROOM_TOKEN_FILE",
        global = true
    )]
    pub(crate) token_file: PathBuf,
    /// A file with the CA certificates (PEM) that sign the gateway's certificate, for https
    /// [default: those of the system]
    #[arg(long, value_name = "FILE", env = "ANTEROOM_CA_FILE", global = true)]
    pub(crate) ca_file: Option<PathBuf>,
    /// Print the gateway's response as JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_parses_with_and_without_a_scheme() {
        let check = |text: &str, expected: Result<&str, &str>| {
            let found = address(text).map(|address| address.to_string());
            match expected {
                Ok(expected) => assert_eq!(found.as_deref(), Ok(expected), "{text}"),
                Err(part) => assert!(found.unwrap_err().contains(part), "{text}"),
            }
        };
        check("127.0.0.1:8081", Ok("127.0.0.1:8081"));
        check("http://127.0.0.1:8081", Ok("127.0.0.1:8081"));
        check("http://[::1]:8081/", Ok("[::1]:8081"));
        check("https://127.0.0.1:8081", Ok("https://127.0.0.1:8081"));
        check(
            "https://ops.example.com/",
            Ok("https://ops.example.com:443"),
        );
        check("https://[::1]:8081", Ok("https://[::1]:8081"));
        for wrong in [
            "http://127.0.0.1:8081/rooms",
            "https://ops.example.com/rooms",
            "https://eve@ops.example.com",
            "ops.example.com:8081",
            "http://ops.example.com:8081",
            "ftp://127.0.0.1:8081",
            "localhost:8081",
            "8081",
            "",
        ] {
            check(wrong, Err("such as 127.0.0.1:8081"));
        }
    }

    #[test]
    fn only_a_loopback_address_needs_no_token_for_states() {
        let check = |text: &str, expected: bool| {
            assert_eq!(
                address(text).map(|found| found.is_loopback()),
                Ok(expected),
                "{text}"
            );
        };
        check("127.0.0.1:8081", true);
        check("[::1]:8081", true);
        check("https://[::1]:8081", true);
        check("10.0.0.1:8081", false);
        check("https://ops.example.com", false);
    }
}
