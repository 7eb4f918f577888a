//! Flags of every command that changes something: where, with which token, and how it answers.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

/// Where the gateway keeps the token that it drew, if it was started here without `--data`.
const TOKEN_FILE: &str = "anteroom-data/admin-token";

/// How a gateway is spoken to.
#[derive(Args, Clone, Debug)]
pub(crate) struct Connection {
    /// Where the gateway's operators connect; any node will do
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "127.0.0.1:8081",
        global = true
    )]
    pub(crate) admin: SocketAddr,
    /// A file with the token: `admin-token` in the gateway's data folder, or your own
    #[arg(
        long,
        value_name = "FILE",
        default_value = TOKEN_FILE,
        env = "ANTEROOM_TOKEN_FILE",
        global = true
    )]
    pub(crate) token_file: PathBuf,
    /// Print what the gateway says as JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
}
