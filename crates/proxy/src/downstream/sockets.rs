//! Listening sockets of a process, opened or inherited.

use std::io::{Error as IoError, ErrorKind};
use std::net::SocketAddr;
use std::time::Duration;

use anteroom_config::{RateLimitServiceConfig, ServerConfig};
use tokio::net::TcpListener;
use tracing::warn;

use crate::downstream::handover::{
    HandoverError, Inherited, OPERATORS, RATE_LIMITS_GRPC, RATE_LIMITS_HTTP, REDIRECT,
    SocketHandover, VISITORS,
};
use crate::downstream::listener::listen;

/// Retries for an address in use, with a pause before each: one second in all.
const RETRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(50);

/// Error of opening the listening sockets.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SocketsError {
    /// The address is in use, or not ours.
    #[error("cannot listen on {address} ({key})")]
    Listen {
        /// Address of the listener.
        address: SocketAddr,
        /// Key of the config with the address.
        key: &'static str,
        /// Underlying error.
        #[source]
        source: IoError,
    },
    /// An inherited socket cannot be used.
    #[error("cannot take over a socket")]
    Inherited(#[from] HandoverError),
}

/// Listening sockets of a process.
#[derive(Debug)]
pub struct Sockets {
    /// Socket for visitors.
    pub visitors: TcpListener,
    /// Socket for operators.
    pub operators: TcpListener,
    /// Socket that redirects http to https.
    pub redirect: Option<TcpListener>,
    /// Socket for Envoy's rate limit requests over gRPC.
    pub rate_limits_grpc: Option<TcpListener>,
    /// Socket for rate limit requests in JSON.
    pub rate_limits_http: Option<TcpListener>,
}

impl Sockets {
    /// Takes inherited sockets, and opens the others by the config.
    ///
    /// # Errors
    ///
    /// [`SocketsError`] if a socket cannot be opened or taken over.
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
                "inherited socket has no listener in the configuration and is closed"
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

    /// Duplicates the sockets for a successor.
    ///
    /// # Errors
    ///
    /// If there are no more file descriptors.
    pub fn for_successor(&self) -> Result<SocketHandover, IoError> {
        let mut legacy = SocketHandover::default();
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
            // A supervisor may have opened the socket at another address on purpose.
            let socket = socket.local_addr().map(|own| own.to_string());
            let socket = socket.unwrap_or_default();
            warn!(
                name,
                socket, "{key} is {address}, but the inherited socket has another address"
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

/// Retries for a second while an address is in use: a process that was just stopped may not have
/// released it yet.
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
    async fn only_an_address_in_use_is_retried() {
        check(ErrorKind::AddrInUse, 3, Ok(()), 4).await;
        let taken = Err(ErrorKind::AddrInUse);
        check(ErrorKind::AddrInUse, u32::MAX, taken, RETRIES + 1).await;
        let denied = Err(ErrorKind::PermissionDenied);
        check(ErrorKind::PermissionDenied, 1, denied, 1).await;
    }
}
