//! Errors at the start of a node.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Error at the start of a node.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The address does not belong to this machine, or the system refuses to bind it.
    #[error("cannot listen at {listen} for gossip of other nodes")]
    Bind {
        /// Address to listen at.
        listen: SocketAddr,
        /// Underlying error.
        source: io::Error,
    },
    /// The system gives no random bytes, so this node could be taken for another one.
    #[error("cannot draw a random number for this node")]
    Random {
        /// Underlying error.
        source: getrandom::Error,
    },
}

/// Error of a secret that is too short.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the secret has {bytes} bytes and must have at least {bytes_min}")]
pub struct SecretError {
    /// Length of the secret.
    pub bytes: usize,
    /// Required length.
    pub bytes_min: usize,
}

/// Error of reading a secret from a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SecretFileError {
    /// The file cannot be read.
    #[error("cannot read {} (gossip.secret_file)", path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Underlying error.
        source: io::Error,
    },
    /// The content of the file is no valid secret.
    #[error("{} holds no secret (gossip.secret_file)", path.display())]
    NoSecret {
        /// Path of the file.
        path: PathBuf,
        /// Underlying error.
        source: SecretError,
    },
}
