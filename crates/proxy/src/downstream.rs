//! Connections of clients: everything between a socket and a request.
//!
//! In the order of a connection's lifetime:
//!
//! - sockets: [`listener`] and [`sockets`] open them, [`handover`] passes them to a successor,
//!   [`supervisor`] notifies systemd;
//! - [`server`] accepts, [`connection_table`] decides which connection closes when there are too
//!   many, [`workers`] are the threads, `connection` serves one connection from its first byte to
//!   its last, [`hold`] keeps it counted, [`observer`] counts events;
//! - [`tls`]; below it `timed_io`, which aborts connections of clients that do not read;
//! - HTTP/1.1: `http1` has its settings, `screen` is a strict reader of request boundaries,
//!   `screened` has the timeouts of heads, `pace` aborts bodies that are too slow;
//! - HTTP/2: `http2` has its settings and limits, `http2::stall` resets streams that are not read;
//! - `activity` tracks the requests of one connection, [`redirect`] sends clients to https,
//!   [`drain`] ends everything.
//!
//! A request goes to a [`Handler`] together with its [`Arrival`]. Its site and its admission are
//! not decided here.

pub(crate) mod activity;
pub(crate) mod connection;
pub mod connection_table;
pub mod drain;
pub mod handover;
pub mod hold;
mod http1;
mod http2;
pub mod listener;
pub mod observer;
pub(crate) mod pace;
pub mod redirect;
pub(crate) mod screen;
mod screened;
pub mod server;
pub mod sockets;
pub mod supervisor;
mod timed_io;
pub mod tls;
pub mod workers;

use std::convert::Infallible;
use std::error::Error;
use std::future::Future;
use std::net::SocketAddr;

use bytes::Bytes;
use http::{Request, Response};

use crate::body::Body;
use crate::fast_path::{DecideAtOnce, FastPath};
use hold::ConnectionHold;

/// Connection of a request.
#[derive(Clone)]
pub struct Arrival {
    /// Address of the other end.
    pub peer: SocketAddr,
    /// Whether the connection is TLS that ends in this process.
    pub is_encrypted: bool,
    /// Hold on the connection, for tunnels that outlive HTTP.
    pub hold: ConnectionHold,
}

/// Handler of requests.
pub trait Handler: Clone + Send + Sync + 'static {
    /// Body of a response.
    type Body: http_body::Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>>
        + Send
        + 'static;
    /// Decisions that need no future.
    type Decider: DecideAtOnce;
    /// Future of a response.
    type Future: Future<Output = Result<Response<Self::Body>, Infallible>> + Send + 'static;

    /// Whether a response comes from this process alone. When connections run short, the connection
    /// of such a response may close before the client has read it; other responses are waited for.
    fn is_own(_answer: &Response<Self::Body>) -> bool {
        false
    }

    /// Returns the fast path, if the handler has one and it is switched on.
    fn fast_path(&self) -> Option<FastPath<'_, Self::Decider>> {
        None
    }

    /// Handles one request.
    fn handle(&self, arrival: &Arrival, request: Request<Body>) -> Self::Future;
}
