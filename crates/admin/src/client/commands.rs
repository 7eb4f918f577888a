//! Commands of an operator as authorized requests, and the replies to them.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use crate::Token;
use anyhow::Context as _;
use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::Full;
use serde_json::Value;

use crate::api_error::FORBIDDEN;
use crate::api_v1::PREFIX;
use crate::client::http::{NOT_OURS, send};
use crate::client::options::{AdminAddress, Connection};

/// Maximum bytes read from a token file, more than any token.
const TOKEN_FILE_BYTES_MAX: u64 = 64 * 1_024;

/// Exit code if a node did not obey: it or its store is unavailable.
pub(crate) const EXIT_FAILED: u8 = 1;
/// Exit code if the command is not allowed, as for a configuration with mistakes.
pub(crate) const EXIT_NOT_ALLOWED: u8 = 2;
/// Exit code if a command applies at the contacted node only, because the store is unavailable.
pub(crate) const EXIT_THIS_NODE_ONLY: u8 = 3;

/// Request of an operator's command.
#[derive(Clone)]
pub(crate) struct OperatorRequest {
    pub(crate) method: Method,
    /// Path below the prefix, without a slash before it, such as `rooms/shop/set`.
    pub(crate) path: String,
    pub(crate) body: Option<Value>,
}

/// Response of the gateway, as JSON.
pub(crate) enum OperatorReply {
    /// The command was executed.
    Done(Value),
    /// The command applies at this node only, and is not stored.
    ThisNodeOnly(Value),
    /// The command is not allowed; nothing was changed.
    NotAllowed(Value),
}

/// Sends a command and returns the reply.
pub(crate) async fn execute(
    admin: &AdminAddress,
    connection: &Connection,
    command: OperatorRequest,
) -> anyhow::Result<OperatorReply> {
    let (status, reply) = exchange(admin, connection, command).await?;
    let reply: Value = serde_json::from_slice(&reply).context(NOT_OURS)?;
    if status == StatusCode::ACCEPTED {
        return Ok(OperatorReply::ThisNodeOnly(reply));
    }
    if status.is_success() {
        return Ok(OperatorReply::Done(reply));
    }
    not_allowed(connection, status, reply).map(OperatorReply::NotAllowed)
}

/// Content that the gateway returned in the requested format.
pub(crate) enum Content {
    /// Bytes of the response.
    Found(Bytes),
    /// The request is not allowed.
    NotAllowed(Value),
}

/// Reads a path below the prefix, which may respond with more than JSON.
pub(crate) async fn read(
    admin: &AdminAddress,
    connection: &Connection,
    path: String,
) -> anyhow::Result<Content> {
    let request = OperatorRequest {
        method: Method::GET,
        path,
        body: None,
    };
    let (status, reply) = exchange(admin, connection, request).await?;
    if status.is_success() {
        return Ok(Content::Found(reply));
    }
    let reply: Value = serde_json::from_slice(&reply).context(NOT_OURS)?;
    not_allowed(connection, status, reply).map(Content::NotAllowed)
}

/// Sends a command with the token, and returns status and body of the response.
async fn exchange(
    admin: &AdminAddress,
    connection: &Connection,
    command: OperatorRequest,
) -> anyhow::Result<(StatusCode, Bytes)> {
    let token = token(&connection.token_file)?;
    let request = Request::builder()
        .method(command.method)
        .uri(format!("{PREFIX}/{}", command.path))
        .header("authorization", format!("Bearer {token}"))
        .header("anteroom-operator", user());
    let body = command.body.map(|body| Bytes::from(body.to_string()));
    let request = request
        .body(Full::new(body.unwrap_or_default()))
        .context("a token is visible ASCII")?;
    send(admin, connection, request).await
}

/// Returns the reply to a request that is not allowed, and an error for any other failure.
fn not_allowed(connection: &Connection, status: StatusCode, reply: Value) -> anyhow::Result<Value> {
    let is_not_allowed = status == StatusCode::UNPROCESSABLE_ENTITY
        || status == StatusCode::PRECONDITION_FAILED
        || reply["error"] == FORBIDDEN;
    if is_not_allowed {
        return Ok(reply);
    }
    let message = reply["message"]
        .as_str()
        .unwrap_or("the response has no message");
    if status == StatusCode::UNAUTHORIZED {
        let file = connection.token_file.display();
        anyhow::bail!("{message}; the one in {file} is not valid there (--token-file)");
    }
    let details = |key: &str| {
        let details = reply[key].as_array()?.iter();
        let details =
            details.filter_map(|detail| detail.as_str().or_else(|| detail["message"].as_str()));
        Some(details.collect::<Vec<_>>().join(", "))
    };
    if let Some(names) = details("rooms").or_else(|| details("limits")) {
        anyhow::bail!("{message}; there are: {names}");
    }
    match details("problems") {
        Some(problems) => anyhow::bail!("{message}: {problems}"),
        None => anyhow::bail!("{message}"),
    }
}

/// Reads the first token in a file.
pub(crate) fn token(file: &Path) -> anyhow::Result<String> {
    use std::io::Read as _;
    let mut text = String::new();
    let read = fs::File::open(file)
        .and_then(|file| file.take(TOKEN_FILE_BYTES_MAX).read_to_string(&mut text));
    read.with_context(|| {
        format!(
            "cannot read the token in {}; give --token-file DIR/admin-token with the gateway's \
             data folder, or your own file",
            file.display()
        )
    })?;
    let token = Token::first_in(&text);
    let token = token.with_context(|| format!("the token in {}", file.display()))?;
    Ok(token.to_owned())
}

/// Returns the Unix user of this process for the audit log, and the user before `sudo`.
fn user() -> String {
    let name = fs::metadata("/proc/self").ok().map(|process| {
        let id = process.uid().to_string();
        let known = fs::read_to_string("/etc/passwd").unwrap_or_default();
        let mut users = known.lines().map(|line| line.split(':'));
        let named = users.find_map(|mut fields| {
            let name = fields.next()?;
            (fields.nth(1)? == id).then(|| name.to_owned())
        });
        named.unwrap_or(id)
    });
    let env = |name| std::env::var(name).ok().filter(|user| !user.is_empty());
    let name = name.or_else(|| env("USER")).unwrap_or_default();
    let name = match env("SUDO_USER") {
        Some(before) if before != name => format!("{name} ({before})"),
        _ => name,
    };
    // The name goes into a header, and into logs.
    name.chars()
        .filter(|c| c.is_ascii_graphic() || *c == ' ')
        .collect()
}
