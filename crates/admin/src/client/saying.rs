//! What is said to a gateway becomes a request, with a token; and what its answer means.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use crate::Token;
use anyhow::Context as _;
use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::Full;
use serde_json::Value;

use crate::client::asking::{STRANGER, send};

/// More than any token: what is read of a file that may be anything.
const TOKEN_FILE_BYTES_MAX: u64 = 64 * 1_024;

/// Exit code where a node did not obey: it does not answer, or its store does not.
pub(crate) const EXIT_FAILED: u8 = 1;
/// Exit code where what was said is not allowed, as for a configuration that is wrong.
pub(crate) const EXIT_NOT_ALLOWED: u8 = 2;
/// Exit code where a command holds at the node that was asked only, because the store does not
/// answer.
pub(crate) const EXIT_HERE_ONLY: u8 = 3;

/// What is asked.
#[derive(Clone)]
pub(crate) struct OperatorRequest {
    pub(crate) method: Method,
    /// Such as `rooms/shop/set`.
    pub(crate) path: String,
    pub(crate) body: Option<Value>,
    pub(crate) needs_token: bool,
}

/// What is answered, as JSON.
pub(crate) enum OperatorReply {
    /// It was done.
    Done(Value),
    /// It holds at this node only, and is not written down.
    Here(Value),
    /// It is not allowed; nothing was changed.
    NotAllowed(Value),
}

/// Asks, and waits for the answer.
pub(crate) async fn ask(
    admin: SocketAddr,
    asked: OperatorRequest,
    token_file: &Path,
) -> anyhow::Result<OperatorReply> {
    let url = format!("http://{admin}/{}", asked.path);
    let mut request = Request::builder().method(asked.method).uri(url);
    if asked.needs_token {
        let token = token(token_file)?;
        request = request
            .header("authorization", format!("Bearer {token}"))
            .header("anteroom-operator", user());
    }
    let body = asked.body.map(|body| Bytes::from(body.to_string()));
    let request = request
        .body(Full::new(body.unwrap_or_default()))
        .context("a token is visible ASCII")?;
    let (status, answer) = send(admin, request).await?;
    let answer: Value = serde_json::from_slice(&answer).context(STRANGER)?;
    if status == StatusCode::ACCEPTED {
        return Ok(OperatorReply::Here(answer));
    }
    if status.is_success() {
        return Ok(OperatorReply::Done(answer));
    }
    if status == StatusCode::UNPROCESSABLE_ENTITY {
        return Ok(OperatorReply::NotAllowed(answer));
    }
    let message = answer["message"].as_str().unwrap_or("it says no more");
    if status == StatusCode::UNAUTHORIZED {
        let file = token_file.display();
        anyhow::bail!("{message}; the one in {file} is not valid there (--token-file)");
    }
    let details = |key: &str| {
        let details = answer[key].as_array()?.iter().filter_map(Value::as_str);
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

/// The first token in a file.
fn token(file: &Path) -> anyhow::Result<String> {
    use std::io::Read as _;
    let mut text = String::new();
    let read = fs::File::open(file)
        .and_then(|file| file.take(TOKEN_FILE_BYTES_MAX).read_to_string(&mut text));
    read.with_context(|| {
        format!(
            "cannot read the token in {}; name the gateway's data folder's with --token-file \
             DIR/admin-token, or your own",
            file.display()
        )
    })?;
    let token = Token::first_in(&text);
    let token = token.with_context(|| format!("the token in {}", file.display()))?;
    Ok(token.to_owned())
}

/// The Unix user who runs this, for the log; with the one who became root.
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
    // It goes into a header, and into logs.
    name.chars()
        .filter(|c| c.is_ascii_graphic() || *c == ' ')
        .collect()
}
