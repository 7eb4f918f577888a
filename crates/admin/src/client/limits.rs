//! `anteroom limits ...`: overrides of single clients of rate limits.
//!
//! This module turns arguments into a request and the response into text; the gateway decides.
//! Every command needs a token, because the name of a client may be an API key.

mod text;

use std::io::Read as _;
use std::io::Write;
use std::process::ExitCode;

use crate::overrides::client_overrides::ShownLimits;
use crate::{AssumedEmpty, ClientStanding};
use anteroom_config::LimitName;
use anteroom_config::overrides::Log;
use anyhow::Context as _;
use clap::{Args, Subcommand};
use http::Method;
use serde_json::{Map, Value, json};

use crate::client::commands::{EXIT_NOT_ALLOWED, OperatorReply, OperatorRequest, execute};
use crate::client::http::NOT_OURS;
use crate::client::options::{ADMIN, AdminAddress, Connection, address};
use crate::client::text as common;

/// Argument that stands for a client on standard input, so that no list of processes shows it.
const STANDARD_INPUT: &str = "-";
/// Maximum bytes read from standard input: more than the longest client, four parts of 1,024 bytes.
const INPUT_BYTES_MAX: u64 = 8 * 1_024;

/// Flags of `anteroom limits`.
#[derive(Args, Clone, Debug)]
pub struct LimitsOptions {
    #[command(subcommand)]
    command: LimitsCommand,
    /// Admin address of the gateway; any node will do
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = ADMIN,
        value_parser = address,
        global = true
    )]
    admin: AdminAddress,
    #[command(flatten)]
    connection: Connection,
}

/// Subcommand of `anteroom limits`.
#[derive(Clone, Debug, Subcommand)]
enum LimitsCommand {
    /// Give one client another limit; it wins over the file until `unset`
    Set {
        #[command(flatten)]
        client: ClientOptions,
        /// Requests and a time, such as 500/min; 0/s rejects all
        #[arg(value_name = "RATE")]
        limit: String,
        /// Requests at once, with "token-bucket" and "gcra" [default: as the limit says]
        #[arg(long, value_name = "N")]
        burst: Option<u32>,
        /// Requests at once the first time, with "token-bucket" [default: as the limit says]
        #[arg(long, value_name = "N")]
        initial_burst: Option<u32>,
        /// Requests that may wait, with "leaky-bucket" [default: as the limit says]
        #[arg(long, value_name = "N")]
        queue: Option<u32>,
    },
    /// Remove the override of a client: the file applies again
    Unset {
        #[command(flatten)]
        client: ClientOptions,
    },
    /// Print the clients with settings of their own, and who set them: the file or an operator
    List {
        /// Name of a limit [default: all limits]
        #[arg(value_parser = limit_name)]
        limit: Option<LimitName>,
    },
    /// Print the usage of a client, without counting a request
    Show {
        #[command(flatten)]
        client: ClientOptions,
    },
    /// Assume that nothing was spent: clients of all limits with store = "leases" start at zero
    ///
    /// A server that was restarted, failed over or emptied cannot know what it had leased. It
    /// grants nothing for as long as a window of a limit, which is a day for 1000/d. Use this
    /// command if you know that hardly anything was spent, or accept that each client may send
    /// twice as much in one window. It acts on all of these limits, at all nodes, within five
    /// seconds.
    AssumeEmpty,
    /// Print who changed what, and when
    Audit,
}

/// Client of a limit.
#[derive(Args, Clone, Debug)]
struct ClientOptions {
    /// Name of the limit
    #[arg(value_name = "LIMIT", value_parser = limit_name)]
    name: LimitName,
    /// The client by the limit's key: an address, an API key; `-` reads it from standard input, one
    /// part per line
    client: String,
    /// The next part, if the limit's key has several, in their order
    #[arg(long, value_name = "PART")]
    and: Vec<String>,
}

/// Parses the name of a limit. Any other text could form another path of the admin API.
fn limit_name(text: &str) -> Result<LimitName, String> {
    LimitName::new(text).ok_or_else(|| "a limit's name is 1 to 64 of A-Z a-z 0-9 - _".to_owned())
}

impl ClientOptions {
    /// Returns the parts of the client's key.
    fn texts(&self, input: impl std::io::Read) -> anyhow::Result<Vec<String>> {
        let mut texts = vec![self.client.clone()];
        if self.client == STANDARD_INPUT {
            let mut text = String::new();
            input
                .take(INPUT_BYTES_MAX)
                .read_to_string(&mut text)
                .context("cannot read the client from standard input")?;
            texts = text.lines().map(str::to_owned).collect();
            anyhow::ensure!(
                !texts.is_empty(),
                "no client on standard input; write one part per line"
            );
        }
        texts.extend(self.and.iter().cloned());
        Ok(texts)
    }

    fn request(&self, path: &str, mut body: Map<String, Value>) -> anyhow::Result<OperatorRequest> {
        let texts = self.texts(std::io::stdin())?;
        body.insert("key".to_owned(), texts.into());
        Ok(OperatorRequest {
            method: Method::POST,
            path: format!("limits/{}/{path}", self.name),
            body: Some(Value::Object(body)),
        })
    }
}

impl LimitsCommand {
    /// Returns the request for the gateway.
    fn request(&self) -> anyhow::Result<OperatorRequest> {
        let get = |path: String| OperatorRequest {
            method: Method::GET,
            path,
            body: None,
        };
        Ok(match self {
            Self::Set {
                client,
                limit,
                burst,
                initial_burst,
                queue,
            } => {
                let mut body = Map::from_iter([("limit".to_owned(), json!(limit))]);
                let others = [
                    ("burst", burst),
                    ("initial_burst", initial_burst),
                    ("queue", queue),
                ];
                for (key, value) in others {
                    body.extend(value.map(|value| (key.to_owned(), json!(value))));
                }
                client.request("set", body)?
            }
            Self::Unset { client } => client.request("unset", Map::new())?,
            Self::Show { client } => client.request("show", Map::new())?,
            Self::List { limit: None } => get("limits".to_owned()),
            Self::List { limit: Some(limit) } => get(format!("limits/{limit}")),
            Self::AssumeEmpty => OperatorRequest {
                method: Method::POST,
                path: "limit-leases/assume-empty".to_owned(),
                body: Some(json!({})),
            },
            Self::Audit => get("audit/limits".to_owned()),
        })
    }

    fn render(&self, body: Value) -> anyhow::Result<String> {
        Ok(match self {
            Self::Audit => common::log(&serde_json::from_value::<Log>(body).context(NOT_OURS)?),
            Self::AssumeEmpty => {
                let assumed: AssumedEmpty = serde_json::from_value(body).context(NOT_OURS)?;
                text::assumed_empty(&assumed)
            }
            Self::Show { client } => {
                let standing: ClientStanding = serde_json::from_value(body).context(NOT_OURS)?;
                text::standing(client.name.as_str(), &standing)
            }
            Self::Set { .. } | Self::Unset { .. } | Self::List { .. } => {
                let shown: ShownLimits = serde_json::from_value(body).context(NOT_OURS)?;
                text::limits(&shown, matches!(self, Self::List { .. }))
            }
        })
    }
}

/// Sends a command to a gateway and prints the response. The exit code is 2 if the command is not
/// allowed.
///
/// # Errors
///
/// If the gateway or the limit does not exist, the token is not valid, or the store is unavailable.
pub async fn run(
    options: LimitsOptions,
    out: &mut impl Write,
    err: &mut impl Write,
) -> anyhow::Result<ExitCode> {
    let request = options.command.request()?;
    let connection = &options.connection;
    let reply = execute(&options.admin, connection, request)
        .await
        .with_context(|| format!("limits at {}", options.admin))?;
    let (body, is_done) = match reply {
        OperatorReply::Done(body) | OperatorReply::ThisNodeOnly(body) => (body, true),
        OperatorReply::NotAllowed(body) => (body, false),
    };
    if connection.json {
        out.write_all(format!("{body}\n").as_bytes())?;
    } else if is_done {
        out.write_all(options.command.render(body)?.as_bytes())?;
    } else {
        writeln!(err, "{}", common::problems(&body).trim_end())?;
    }
    Ok(if is_done {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(EXIT_NOT_ALLOWED)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(client: &str, and: &[&str]) -> ClientOptions {
        ClientOptions {
            name: LimitName::new("api").unwrap(),
            client: client.to_owned(),
            and: and.iter().map(|&part| part.to_owned()).collect(),
        }
    }

    #[test]
    fn a_client_comes_from_arguments_or_standard_input() {
        let check = |options: ClientOptions, input: &str, expected: &[&str]| {
            let found = options.texts(input.as_bytes()).unwrap();
            assert_eq!(found, expected);
        };
        check(client("gold", &[]), "not read", &["gold"]);
        check(client("gold", &["10.0.0.1"]), "", &["gold", "10.0.0.1"]);
        check(client("-", &[]), "gold\n", &["gold"]);
        check(client("-", &[]), "gold\r\n10.0.0.1", &["gold", "10.0.0.1"]);
        check(client("-", &["10.0.0.1"]), "gold\n", &["gold", "10.0.0.1"]);
        assert!(client("-", &[]).texts(&b""[..]).is_err());
        assert!(client("-", &[]).texts(&b"\xff"[..]).is_err());
    }

    #[test]
    fn a_request_has_the_keys_of_the_file() {
        let set = LimitsCommand::Set {
            client: client("gold", &[]),
            limit: "500/min".to_owned(),
            burst: Some(20),
            initial_burst: None,
            queue: Some(0),
        };
        let request = set.request().unwrap();
        assert_eq!(request.path, "limits/api/set");
        let body = json!({ "key": ["gold"], "limit": "500/min", "burst": 20, "queue": 0 });
        assert_eq!(request.body, Some(body));
    }
}
