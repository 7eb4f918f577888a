//! The listening sockets of a process, its own or handed on.

use std::io::{Error as IoError, ErrorKind};
use std::net::SocketAddr;
use std::time::Duration;

use anteroom_config::{RateLimitServiceConfig, ServerConfig};
use tokio::net::TcpListener;
use tracing::warn;

use crate::downstream::handover::{
    HandoverError, Inherited, Legacy, OPERATORS, RATE_LIMITS_GRPC, RATE_LIMITS_HTTP, REDIRECT,
    VISITORS,
};
use crate::downstream::listener::listen;

/// How often an address that is taken is tried again, with a pause before each: one second in all.
const RETRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(50);

/// Why a process cannot listen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SocketsError {
    /// The address is taken, or not ours.
    #[error("cannot listen on {address} ({key})")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Which key says so.
        key: &'static str,
        /// Why not.
        #[source]
        source: IoError,
    },
    /// What was handed on cannot be used.
    #[error("cannot take over a socket")]
    Inherited(#[from] HandoverError),
}

/// See the top of this file.
#[derive(Debug)]
pub struct Sockets {
    /// Where visitors connect.
    pub visitors: TcpListener,
    /// Where operators connect.
    pub operators: TcpListener,
    /// Where those connect who are sent to https.
    pub redirect: Option<TcpListener>,
    /// Where Envoy asks by gRPC.
    pub rate_limits_grpc: Option<TcpListener>,
    /// Where it is asked with JSON.
    pub rate_limits_http: Option<TcpListener>,
}

impl Sockets {
    /// Takes what was handed on, and opens the rest as the config says.
    ///
    /// # Errors
    ///
    /// [`SocketsError`] if one of them cannot be had.
    pub async fn open(
        server: &ServerConfig,
        rate_limits: Option<&RateLimitServiceConfig>,
        mut inherited: Inherited,
    ) -> Result<Self, SocketsError> {
        let from = &mut inherited;
        let visitors = one(from, VISITORS, "server.listen", server.listen).await?;
        let operators = one(from, OPERATORS, "server.admin", server.admin).await?;
        let redirect = server.redirect_from;
        let redirect = maybe(from, REDIRECT, "server.redirect_from", redirect).await?;
        let (grpc, http) = rate_limits.map_or((None, None), |own| (own.grpc, own.http));
        let rate_limits_grpc =
            maybe(from, RATE_LIMITS_GRPC, "rate_limit_service.grpc", grpc).await?;
        let rate_limits_http =
            maybe(from, RATE_LIMITS_HTTP, "rate_limit_service.http", http).await?;
        for name in inherited.unused() {
            warn!(
                name,
                "a socket was handed on that is of no use here, and is closed"
            );
        }
        Ok(Self {
            visitors,
            operators,
            redirect,
            rate_limits_grpc,
            rate_limits_http,
        })
    }

    /// The same sockets, for a successor.
    ///
    /// # Errors
    ///
    /// If there are no more file descriptors.
    pub fn legacy(&self) -> Result<Legacy, IoError> {
        let mut legacy = Legacy::default();
        legacy.add(VISITORS, &self.visitors)?;
        legacy.add(OPERATORS, &self.operators)?;
        for (name, socket) in [
            (REDIRECT, &self.redirect),
            (RATE_LIMITS_GRPC, &self.rate_limits_grpc),
            (RATE_LIMITS_HTTP, &self.rate_limits_http),
        ] {
            if let Some(socket) = socket {
                legacy.add(name, socket)?;
            }
        }
        Ok(legacy)
    }
}

async fn maybe(
    inherited: &mut Inherited,
    name: &str,
    key: &'static str,
    address: Option<SocketAddr>,
) -> Result<Option<TcpListener>, SocketsError> {
    match address {
        Some(address) => one(inherited, name, key, address).await.map(Some),
        None => Ok(None),
    }
}

async fn one(
    inherited: &mut Inherited,
    name: &str,
    key: &'static str,
    address: SocketAddr,
) -> Result<TcpListener, SocketsError> {
    if let Some(socket) = inherited.socket(name)? {
        let is_other = socket
            .local_addr()
            .is_ok_and(|own| own != address && address.port() != 0);
        if is_other {
            // It may be that a supervisor opened it elsewhere: then that is what was meant.
            let socket = socket.local_addr().map(|own| own.to_string());
            let socket = socket.unwrap_or_default();
            warn!(
                name,
                socket, "{key} is {address}, but a socket was handed on"
            );
        }
        return Ok(socket);
    }
    let listening = while_taken(|| listen(address, false), PAUSE).await;
    listening.map_err(|source| SocketsError::Listen {
        address,
        key,
        source,
    })
}

/// Tries again for a second while an address is taken: a process that was just stopped may still be
/// letting go of it.
async fn while_taken<T>(
    mut listen: impl FnMut() -> Result<T, IoError>,
    pause: Duration,
) -> Result<T, IoError> {
    for _ in 0..RETRIES {
        match listen() {
            Err(error) if error.kind() == ErrorKind::AddrInUse => {
                tokio::time::sleep(pause).await;
            }
            done => return done,
        }
    }
    listen()
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn check(
        kind: ErrorKind,
        failures: u32,
        expected: Result<(), ErrorKind>,
        tries_expected: u32,
    ) {
        let mut tries = 0;
        let listen = || {
            tries += 1;
            let fails = tries <= failures;
            if fails {
                Err(IoError::from(kind))
            } else {
                Ok(())
            }
        };
        let done = while_taken(listen, Duration::ZERO).await;
        assert_eq!(done.map_err(|error| error.kind()), expected);
        assert_eq!(tries, tries_expected);
    }

    #[tokio::test]
    async fn only_an_address_in_use_is_tried_again_for_a_while() {
        check(ErrorKind::AddrInUse, 3, Ok(()), 4).await;
        let taken = Err(ErrorKind::AddrInUse);
        check(ErrorKind::AddrInUse, u32::MAX, taken, RETRIES + 1).await;
        let denied = Err(ErrorKind::PermissionDenied);
        check(ErrorKind::PermissionDenied, 1, denied, 1).await;
    }
}
