//! Config file of a deployment, as `anteroom check` reads it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Part of a config file that other files must agree with.
#[derive(Debug)]
pub struct Deployed {
    /// Address for visitors.
    pub listen: SocketAddr,
    /// Address for operators.
    pub admin: SocketAddr,
    /// Data folder as written.
    pub data_dir: PathBuf,
    /// Time in which requests may end after SIGTERM.
    pub drain: Duration,
    /// Connections at once.
    pub connections: u64,
    /// File with the operators' tokens.
    pub admin_token_file: Option<String>,
    /// File with the store's password.
    pub password_file: Option<String>,
    /// Host and port of the store, if nodes share one.
    pub store: Option<(String, u16)>,
    /// Host and port of the first room's origin.
    pub origin: (String, u16),
}

impl Deployed {
    /// Reads a config file as `anteroom check` does. Warnings are errors here, because examples
    /// must have none.
    ///
    /// # Errors
    ///
    /// Returns every mistake, one per line.
    pub fn parse(text: &str) -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let file = folder.path().join("anteroom.toml");
        let raw: toml::Value = toml::from_str(text).map_err(|error| error.to_string())?;
        let text_of = |table: &str, key: &str| Some(raw.get(table)?.get(key)?.as_str()?.to_owned());
        // The deployed secrets are elsewhere, so use these.
        let mut here = text.to_owned();
        for (table, key) in [("server", "admin_token_file"), ("store", "password_file")] {
            if let Some(path) = text_of(table, key) {
                std::fs::write(
                    folder.path().join(key),
                    "0123456789abcdef0123456789abcdef\n",
                )
                .map_err(|error| error.to_string())?;
                here = here.replace(&path, key);
            }
        }
        std::fs::write(&file, here).map_err(|error| error.to_string())?;
        let parsed = anteroom::check::read(&file).map_err(|report| report.lines().join("\n"))?;
        let warnings: Vec<String> = parsed.warnings.iter().map(ToString::to_string).collect();
        if !warnings.is_empty() {
            return Err(warnings.join("\n"));
        }
        let server = parsed.config.server;
        let first = |table: &str| raw.get(table)?.get(0)?.get("origin")?.as_str();
        let origin = first("room").or_else(|| first("site"));
        let origin = origin.ok_or("no room and no site has one origin")?;
        Ok(Self {
            listen: server.listen,
            admin: server.admin,
            data_dir: server.data_dir,
            drain: Duration::from_millis(server.timeouts.drain.0),
            connections: u64::try_from(server.size_limits.connections).unwrap_or(u64::MAX),
            admin_token_file: text_of("server", "admin_token_file"),
            password_file: text_of("store", "password_file"),
            store: text_of("store", "local").map(|address| host_and_port(&address, 6379)),
            origin: host_and_port(origin, 80),
        })
    }

    /// Returns the longest time until a process ends: it returns its leases, then requests end.
    #[must_use]
    pub fn end_time(&self) -> Duration {
        self.drain + Duration::from_secs(10)
    }

    /// Returns the file descriptors for one connection to each side, and a thousand for the rest.
    #[must_use]
    pub fn files(&self) -> u64 {
        2 * self.connections + 1_000
    }
}

fn host_and_port(address: &str, port: u16) -> (String, u16) {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    match rest.split_once(':') {
        Some((host, text)) => (host.to_owned(), text.parse().unwrap_or(0)),
        None => (rest.to_owned(), port),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: &str = "[[room]]\nname = \"shop\"\norigin = \"http://o:8080\"\n\
                        total_active_users = 1\nnew_users_per_minute = 1\n";

    #[test]
    fn mistakes_and_warnings_are_errors() {
        let good = format!("[server]\nlisten = \"0.0.0.0:80\"\n{ROOM}bypass = []\n");
        let deployed = Deployed::parse(&good).unwrap();
        assert_eq!(deployed.origin, ("o".to_owned(), 8080));
        assert_eq!(deployed.end_time(), Duration::from_secs(40));
        let without_bypass = format!("[server]\nlisten = \"0.0.0.0:80\"\n{ROOM}");
        assert!(Deployed::parse(&without_bypass).is_err());
        assert!(Deployed::parse(&good.replace("listen", "lisen")).is_err());
    }
}
