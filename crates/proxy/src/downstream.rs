//! Where visitors connect: what lies between a socket and a request.
//!
//! In the order of a connection's life:
//!
//! - sockets: [`listener`] and [`sockets`] open them, [`handover`] gives them to a successor,
//!   [`supervisor`] tells systemd;
//! - [`server`] accepts, [`connection_table`] says which connection ends where there are too many,
//!   [`workers`] are the threads, `connection` is one connection from its first byte to its last,
//!   [`hold`] keeps it counted, [`observer`] is told what happens to it;
//! - [`tls`]; below it `timed_io`, which breaks off clients that do not read;
//! - HTTP/1.1: `http1` has its settings, `screen` is a strict reader of where requests end,
//!   `screened` has the time-outs of heads, `pace` breaks off bodies that come too slowly;
//! - HTTP/2: `http2` has its settings and limits, `http2::stall` watches streams that are not read;
//! - `activity` is what goes on on one connection, [`redirect`] sends visitors to https, [`drain`]
//!   ends all of it.
//!
//! A request goes to a [`Handler`] together with its [`Arrival`]; which site it is for, and whether
//! it may pass, is not known here.

mod activity;
mod connection;
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
use hyper::body::Incoming;

use hold::ConnectionHold;

/// What is known of the connection that a request came by.
#[derive(Clone)]
pub struct Arrival {
    /// The other end.
    pub peer: SocketAddr,
    /// Whether it is TLS, ended here.
    pub is_encrypted: bool,
    /// For what outlives the HTTP on it.
    pub hold: ConnectionHold,
}

/// Answers requests.
pub trait Handler: Clone + Send + Sync + 'static {
    /// What answers are made of.
    type Body: http_body::Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>>
        + Send
        + 'static;
    /// An answer in the making.
    type Future: Future<Output = Result<Response<Self::Body>, Infallible>> + Send + 'static;

    /// Whether an answer comes from this process alone. Its connection may end before it is taken,
    /// where there are too many; other answers are waited for.
    fn is_own(_answer: &Response<Self::Body>) -> bool {
        false
    }

    /// Answers one request.
    fn handle(&self, arrival: &Arrival, request: Request<Incoming>) -> Self::Future;
}
