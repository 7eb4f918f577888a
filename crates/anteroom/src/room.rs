//! `anteroom room NAME ...`: what an operator may say about a room.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use clap::{Args, Subcommand};
use http::{Method, Request};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;

/// Nobody waits longer for an answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// One room fits well.
const BODY_BYTES_MAX: usize = 1 << 20;

/// Flags of `anteroom room`.
#[derive(Args, Clone, Debug)]
pub struct RoomOptions {
    /// Which room
    name: String,
    #[command(subcommand)]
    order: Order,
    /// Where the gateway's operators connect; any node will do
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "127.0.0.1:8081",
        global = true
    )]
    admin: SocketAddr,
}

/// What is said.
#[derive(Clone, Copy, Debug, Subcommand)]
enum Order {
    /// Nobody is inside: a room whose store has lost its memory admits at once
    ///
    /// After such a loss a room admits nobody until all that may have been lent before has ended,
    /// which is stated as DEGRADED: recovering. If you know that nobody is inside, or accept that
    /// there are more than the limit for a session, say so.
    AssumeEmpty,
}

/// Tells a gateway, and prints what came of it.
///
/// # Errors
///
/// If there is no gateway, no such room, or the store does not answer.
#[expect(clippy::print_stdout, reason = "the command's output")]
pub async fn run(options: RoomOptions) -> anyhow::Result<ExitCode> {
    let RoomOptions { name, order, admin } = options;
    let path = match order {
        Order::AssumeEmpty => "assume-empty",
    };
    let url = format!("http://{admin}/rooms/{name}/{path}");
    let sending = send(admin, &url);
    let state = tokio::time::timeout(PATIENCE, sending)
        .await
        .unwrap_or_else(|_| anyhow::bail!("no answer within five seconds"))
        .with_context(|| format!("room {name} at {admin}: nothing is known to have changed"))?;
    let reopens_at = state["reopensAt"].as_str();
    match reopens_at {
        None => println!("room {name} admits without waiting for what may have been lent before"),
        Some(at) => {
            println!("room {name} was told; until all nodes have heard of it they say {at}")
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn send(admin: SocketAddr, url: &str) -> anyhow::Result<Value> {
    let client: Client<_, Empty<Bytes>> = Client::builder(TokioExecutor::new()).build_http();
    let request = Request::builder()
        .method(Method::POST)
        .uri(url)
        .header("anteroom-operator", "command line")
        .body(Empty::new())
        .context("a room's name is 1 to 64 of A-Z a-z 0-9 - _")?;
    let response = client.request(request).await.with_context(|| {
        format!("is `anteroom serve` running, and is {admin} its --admin address?")
    })?;
    let status = response.status();
    let body = Limited::new(response.into_body(), BODY_BYTES_MAX)
        .collect()
        .await;
    let body = body.map_err(|error| anyhow::anyhow!(error))?.to_bytes();
    let answer: Value = serde_json::from_slice(&body)
        .context("this is no answer of an anteroom gateway of this version")?;
    if status.is_success() {
        return Ok(answer);
    }
    let message = answer["message"].as_str().unwrap_or("it says no more");
    match answer["rooms"].as_array() {
        Some(rooms) => {
            let rooms: Vec<&str> = rooms.iter().filter_map(Value::as_str).collect();
            anyhow::bail!("{message}; there are: {}", rooms.join(", "))
        }
        None => anyhow::bail!("{message}"),
    }
}
