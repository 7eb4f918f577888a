//! Flags of every command that changes something: token file and output format.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

/// Default token file: the one of a gateway that was started in this folder without `--data`.
pub(crate) const TOKEN_FILE: &str = "anteroom-data/admin-token";

/// Parses an admin address: as `serve --admin` takes it, or as a browser shows it.
pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    let bare = text.strip_prefix("http://").unwrap_or(text);
    let bare = bare.strip_suffix('/').unwrap_or(bare);
    bare.parse().map_err(|_| {
        let form = "an IP address and a port, such as 127.0.0.1:8081 or [::1]:8081";
        match text.split_once("://") {
            Some(("http", _)) | None => format!("this must be {form}"),
            Some(_) => format!("operators connect by http: write {form}"),
        }
    })
}

/// Default admin address of a gateway.
pub(crate) const ADMIN: &str = "127.0.0.1:8081";

/// Token file and output format.
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
        check("https://127.0.0.1:8081", Err("operators connect by http"));
        check("http://127.0.0.1:8081/rooms", Err("such as 127.0.0.1:8081"));
        check("localhost:8081", Err("such as 127.0.0.1:8081"));
        check("8081", Err("such as 127.0.0.1:8081"));
        check("", Err("such as 127.0.0.1:8081"));
    }
}
