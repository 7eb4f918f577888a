//! Why can a node not begin to talk to others?

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why a node cannot begin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The address is not of this machine, or may not be listened at.
    #[error("cannot listen at {listen} for what other nodes tell")]
    Bind {
        /// Where.
        listen: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// The system gives no random bytes, so this node could be taken for another one.
    #[error("cannot draw a number for this node")]
    Random {
        /// Why not.
        source: getrandom::Error,
    },
}

/// A secret that keeps nobody out.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the secret has {bytes} bytes, and less than {bytes_min} can be guessed")]
pub struct SecretError {
    /// How long it is.
    pub bytes: usize,
    /// How long it must be.
    pub bytes_min: usize,
}

/// Why no secret could be had from a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SecretFileError {
    /// It cannot be read.
    #[error("cannot read {} (gossip.secret_file)", path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// What it holds is no secret.
    #[error("{} holds no secret (gossip.secret_file)", path.display())]
    NoSecret {
        /// Which file.
        path: PathBuf,
        /// Why not.
        source: SecretError,
    },
}
