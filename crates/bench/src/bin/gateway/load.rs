//! Burst of load by wrk, and its results.
//!
//! The demo's load generator does not fit: it takes more processor time than the gateway, and would
//! measure itself.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde::Serialize;
use tokio::process::Command;

use crate::process::OF_OTHERS;

/// Keep-alive connections, each with one request in flight.
const CONNECTIONS: &str = "64";

/// Script that sends one cookie after the other, prepared before the measurement.
const SCRIPT: &str = r#"
local requests = {}
init = function(args)
  for cookie in io.lines(args[1]) do
    local headers = { ["Accept"] = "text/html", ["Sec-Fetch-Mode"] = "navigate" }
    if cookie ~= "" then headers["Cookie"] = cookie end
    requests[#requests + 1] = wrk.format("GET", nil, headers)
  end
end
local next = 0
request = function()
  next = next % #requests + 1
  return requests[next]
end
"#;

/// Requests with different cookies that are sent in turn.
pub(crate) struct Requests {
    folder: tempfile::TempDir,
}

/// Results of a burst of load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Burst {
    pub(crate) requests: u64,
    pub(crate) per_s: f64,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
}

impl Requests {
    /// Creates requests with each of these cookies (`name=value`); a single empty one means no
    /// cookie.
    pub(crate) fn with(cookies: &[String]) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        fs::write(folder.path().join("script.lua"), SCRIPT)?;
        fs::write(folder.path().join("cookies"), cookies.join("\n") + "\n")?;
        Ok(Self { folder })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Sends the requests to one address for `time`.
    pub(crate) async fn send(
        &self,
        address: SocketAddr,
        path: &str,
        time: Duration,
    ) -> anyhow::Result<Burst> {
        let text = self.wrk(address, path, time).await?;
        Burst::parse(&text).with_context(|| format!("reading the output of wrk:\n{text}"))
    }

    async fn wrk(&self, address: SocketAddr, path: &str, time: Duration) -> anyhow::Result<String> {
        let mut command = match std::thread::available_parallelism() {
            Ok(count) if count.get() > 1 => {
                let mut command = Command::new("taskset");
                command.args(["-c", OF_OTHERS, "wrk"]);
                command
            }
            _ => Command::new("wrk"),
        };
        let output = command
            .args(["-t1", "-c", CONNECTIONS, "--latency", "-d"])
            .arg(format!("{}s", time.as_secs().max(1)))
            .arg("-s")
            .arg(self.path("script.lua"))
            .arg(format!("http://{address}{path}"))
            .arg("--")
            .arg(self.path("cookies"))
            .kill_on_drop(true)
            .output()
            .await
            .context("starting wrk")?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        ensure!(
            output.status.success(),
            "wrk failed ({})\n{text}{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(text)
    }
}

impl Burst {
    /// Parses the output; fails if a response was no success, as that would measure something else.
    fn parse(text: &str) -> anyhow::Result<Self> {
        let lines = || text.lines().map(str::trim);
        for bad in ["Non-2xx", "Socket errors"] {
            let found = lines().find(|line| line.starts_with(bad));
            ensure!(found.is_none(), "{}", found.unwrap_or_default());
        }
        let after = |word: &str| {
            let mut rests = lines().filter_map(|line| line.strip_prefix(word));
            rests
                .next()
                .map(str::trim)
                .with_context(|| format!("no line begins with {word}"))
        };
        let requests = lines().find_map(|line| line.split_once(" requests in "));
        let (requests, _) = requests.context("the output has no number of requests")?;
        Ok(Self {
            requests: requests.parse().context("the number of requests")?,
            per_s: after("Requests/sec:")?
                .parse()
                .context("requests per second")?,
            p50_us: micros(after("50%")?)?,
            p99_us: micros(after("99%")?)?,
        })
    }
}

/// Parses `1.25ms`, `890.00us` or `1.02s` into microseconds.
fn micros(text: &str) -> anyhow::Result<f64> {
    let units = [("us", 1.0), ("ms", 1e3), ("s", 1e6)];
    let mut values = units.into_iter().filter_map(|(unit, factor)| {
        let number: f64 = text.strip_suffix(unit)?.parse().ok()?;
        Some(number * factor)
    });
    values
        .next()
        .with_context(|| format!("{text} is not a duration"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "Running 4s test @ http://127.0.0.1:1/
  1 threads and 64 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   612.42us  118.01us   3.75ms   88.36%
  Latency Distribution
     50%  595.00us
     75%  645.00us
     90%  716.00us
     99%    1.02ms
  412733 requests in 4.00s, 480.14MB read
Requests/sec: 103150.23
Transfer/sec:    119.99MB
";

    #[test]
    fn the_output_of_wrk_is_parsed() {
        let expected = Burst {
            requests: 412_733,
            per_s: 103_150.23,
            p50_us: 595.0,
            p99_us: 1_020.0,
        };
        assert_eq!(Burst::parse(OUTPUT).unwrap(), expected);
    }

    #[test]
    fn a_burst_with_failed_requests_is_an_error() {
        let failed = OUTPUT.replace(
            "Requests/sec",
            "  Non-2xx or 3xx responses: 3\nRequests/sec",
        );
        assert!(
            Burst::parse(&failed)
                .unwrap_err()
                .to_string()
                .contains("Non-2xx")
        );
        assert!(Burst::parse("").is_err());
    }
}
