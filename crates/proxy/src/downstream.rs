//! Where visitors connect: what lies between a socket and a request.
//!
//! Sockets ([`listener`]) and how they are handed on ([`handover`]), TLS ([`tls`]), HTTP/1.1 and
//! HTTP/2 with their limits ([`server`]), which connections end where there are too many
//! ([`table`]), a strict reader of where HTTP/1 requests end (`screen`), and how all of it ends
//! ([`drain`]). A request goes to a [`Handler`] together with its [`Arrival`]; which site it is
//! for, and whether it may pass, is not known here.

mod activity;
mod connection;
pub mod drain;
#[doc(hidden)]
pub mod fuzz;
pub mod handover;
pub mod hold;
mod io;
pub mod lanes;
pub mod listener;
pub mod pace;
pub mod redirect;
mod screen;
mod screened;
pub mod server;
pub mod sockets;
mod stall;
pub mod supervisor;
pub mod table;
pub mod tls;

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
