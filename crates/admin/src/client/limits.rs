//! `anteroom limits ...`: what an operator says about clients of limits while those act.
//!
//! Whether it is allowed, and what comes of it, is the gateway's business: here words become a
//! request, and the answer becomes text. All of it takes a token, for who calls may be the key of
//! an API.

mod text;

use std::io::Read as _;
use std::net::SocketAddr;
use std::process::ExitCode;

use crate::overrides::orders::ShownLimits;
use crate::{AssumedEmpty, ClientStanding};
use anteroom_config::LimitName;
use anteroom_config::overrides::Log;
use anteroom_config::terminal::{print, tell};
use anyhow::Context as _;
use clap::{Args, Subcommand};
use http::Method;
use serde_json::{Map, Value, json};

use crate::client::asking::STRANGER;
use crate::client::options::{ADMIN, Connection, address};
use crate::client::saying::{EXIT_NOT_ALLOWED, OperatorReply, OperatorRequest, ask};
use crate::client::text as common;

/// Stands for a client that is read from standard input, so that no list of processes shows it.
const STANDARD_INPUT: &str = "-";
/// More than the longest client: four parts of 1,024 bytes.
const INPUT_BYTES_MAX: u64 = 8 * 1_024;

/// Flags of `anteroom limits`.
#[derive(Args, Clone, Debug)]
pub struct LimitsOptions {
    #[command(subcommand)]
    saying: LimitsCommand,
    /// Where the gateway's operators connect; any node will do
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = ADMIN,
        value_parser = address,
        global = true
    )]
    admin: SocketAddr,
    #[command(flatten)]
    connection: Connection,
}

/// What is said.
#[derive(Clone, Debug, Subcommand)]
enum LimitsCommand {
    /// Let one client make other calls than the limit says; it wins over the file until `unset`
    Set {
        #[command(flatten)]
        client: ClientOptions,
        /// So many calls in how long, such as 500/min; 0/s: none at all
        #[arg(value_name = "RATE")]
        limit: String,
        /// With "token-bucket" and "gcra": how many at once [default: as the limit says]
        #[arg(long, value_name = "N")]
        burst: Option<u32>,
        /// With "token-bucket": how many at once the first time [default: as the limit says]
        #[arg(long, value_name = "N")]
        initial_burst: Option<u32>,
        /// With "leaky-bucket": how many may wait [default: as the limit says]
        #[arg(long, value_name = "N")]
        queue: Option<u32>,
    },
    /// Back to what the file says about a client
    Unset {
        #[command(flatten)]
        client: ClientOptions,
    },
    /// Print who has a limit of their own, and who said so: the file or an operator
    List {
        /// Only in this limit
        #[arg(value_parser = limit_name)]
        limit: Option<LimitName>,
    },
    /// Print how a client stands where the limit is counted; it is not charged for it
    Show {
        #[command(flatten)]
        client: ClientOptions,
    },
    /// Nobody has spent anything: clients of all limits with store = "leases" begin anew
    ///
    /// A server that was restarted, failed over or emptied cannot know what it had lent. It lends
    /// nothing for as long as a window of a limit, which is a day for 1000/d. If you know that
    /// hardly anything was spent, or accept that each client of these limits may go through twice
    /// as often in one window, say so. It acts on all of these limits, at all nodes, within five
    /// seconds.
    AssumeEmpty,
    /// Print who changed what, and when
    Audit,
}

/// One client of one limit.
#[derive(Args, Clone, Debug)]
struct ClientOptions {
    /// Which limit
    #[arg(value_name = "LIMIT", value_parser = limit_name)]
    name: LimitName,
    /// Who, as the limit's key tells clients apart: an address, an API key; `-` reads it from
    /// standard input, one part a line
    client: String,
    /// The next part, where the limit's key has several; in their order
    #[arg(long, value_name = "PART")]
    and: Vec<String>,
}

/// Anything else would be another path of the gateway's.
fn limit_name(text: &str) -> Result<LimitName, String> {
    LimitName::new(text).ok_or_else(|| "a limit's name is 1 to 64 of A-Z a-z 0-9 - _".to_owned())
}

impl ClientOptions {
    /// What the client is, part by part.
    fn texts(&self, input: impl std::io::Read) -> anyhow::Result<Vec<String>> {
        let mut texts = vec![self.client.clone()];
        if self.client == STANDARD_INPUT {
            let mut text = String::new();
            input
                .take(INPUT_BYTES_MAX)
                .read_to_string(&mut text)
                .context("cannot read who is meant from standard input")?;
            texts = text.lines().map(str::to_owned).collect();
            anyhow::ensure!(!texts.is_empty(), "nobody is named on standard input");
        }
        texts.extend(self.and.iter().cloned());
        Ok(texts)
    }

    fn asked(&self, path: &str, mut body: Map<String, Value>) -> anyhow::Result<OperatorRequest> {
        let texts = self.texts(std::io::stdin())?;
        body.insert("key".to_owned(), texts.into());
        Ok(OperatorRequest {
            method: Method::POST,
            path: format!("limits/{}/{path}", self.name),
            body: Some(Value::Object(body)),
            needs_token: true,
        })
    }
}

impl LimitsCommand {
    /// What is asked of the gateway.
    fn asked(&self) -> anyhow::Result<OperatorRequest> {
        let get = |path: String| OperatorRequest {
            method: Method::GET,
            path,
            body: None,
            needs_token: true,
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
                client.asked("set", body)?
            }
            Self::Unset { client } => client.asked("unset", Map::new())?,
            Self::Show { client } => client.asked("show", Map::new())?,
            Self::List { limit: None } => get("limits".to_owned()),
            Self::List { limit: Some(limit) } => get(format!("limits/{limit}")),
            Self::AssumeEmpty => OperatorRequest {
                method: Method::POST,
                path: "limits/assume-empty".to_owned(),
                body: Some(json!({})),
                needs_token: true,
            },
            Self::Audit => get("audit/limits".to_owned()),
        })
    }

    fn told(&self, body: Value) -> anyhow::Result<String> {
        Ok(match self {
            Self::Audit => common::log(&serde_json::from_value::<Log>(body).context(STRANGER)?),
            Self::AssumeEmpty => {
                let assumed: AssumedEmpty = serde_json::from_value(body).context(STRANGER)?;
                text::assumed_empty(&assumed)
            }
            Self::Show { client } => {
                let standing: ClientStanding = serde_json::from_value(body).context(STRANGER)?;
                text::standing(client.name.as_str(), &standing)
            }
            Self::Set { .. } | Self::Unset { .. } | Self::List { .. } => {
                let shown: ShownLimits = serde_json::from_value(body).context(STRANGER)?;
                text::limits(&shown, matches!(self, Self::List { .. }))
            }
        })
    }
}

/// Tells a gateway, and prints what came of it. Exit code 2 if it is not allowed.
///
/// # Errors
///
/// If there is no gateway, no such limit, no valid token, or the store does not answer.
pub async fn run(options: LimitsOptions) -> anyhow::Result<ExitCode> {
    let asked = options.saying.asked()?;
    let connection = &options.connection;
    let answer = ask(options.admin, asked, &connection.token_file)
        .await
        .with_context(|| format!("limits at {}", options.admin))?;
    let (body, is_done) = match answer {
        OperatorReply::Done(body) | OperatorReply::Here(body) => (body, true),
        OperatorReply::NotAllowed(body) => (body, false),
    };
    if connection.json {
        print(&format!("{body}\n"))?;
    } else if is_done {
        print(&options.saying.told(body)?)?;
    } else {
        tell(common::problems(&body).trim_end());
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
    fn a_client_is_named_by_words_or_on_standard_input() {
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
    fn what_is_said_is_what_the_file_would_say() {
        let set = LimitsCommand::Set {
            client: client("gold", &[]),
            limit: "500/min".to_owned(),
            burst: Some(20),
            initial_burst: None,
            queue: Some(0),
        };
        let asked = set.asked().unwrap();
        assert_eq!(asked.path, "limits/api/set");
        let body = json!({ "key": ["gold"], "limit": "500/min", "burst": 20, "queue": 0 });
        assert_eq!(asked.body, Some(body));
        assert!(asked.needs_token);
    }
}
