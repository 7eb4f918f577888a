//! Authentication of datagrams between nodes.
//!
//! Every datagram carries an HMAC (SHA-256) of its body, by the secret that all nodes share.
//! Without the secret nobody can increase a counter or add a member. An attacker can replay a
//! datagram that it saw. That does no harm: the counter is known already or has expired, and
//! membership goes by numbers that only grow.

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use aws_lc_rs::hmac;

use crate::failure::{SecretError, SecretFileError};

/// Version of the protocol: the first byte of every datagram. It changes with the messages.
const VERSION: u8 = 1;
const TAG: usize = 32;
/// Bytes that sealing adds.
pub(crate) const SEAL: usize = 1 + TAG;
/// Shortest secret, in bytes. An eavesdropper can try secrets offline, so it must be random.
pub(crate) const SECRET_SHORTEST: usize = 16;

/// Most bytes that are read of a secret file. It bounds reading from a device without end.
const FILE_LARGEST: u64 = 4_096;

/// Secret that all nodes share.
#[derive(Clone)]
pub struct Secret {
    seal: hmac::Key,
    names: [u8; 16],
}

impl Secret {
    /// Creates a secret of these bytes, without surrounding white space: files end with a line
    /// feed.
    ///
    /// # Errors
    ///
    /// [`SecretError`] if it is too short.
    pub fn new(bytes: &[u8]) -> Result<Self, SecretError> {
        let bytes = bytes.trim_ascii();
        if bytes.len() < SECRET_SHORTEST {
            return Err(SecretError {
                bytes: bytes.len(),
                bytes_min: SECRET_SHORTEST,
            });
        }
        let root = hmac::Key::new(hmac::HMAC_SHA256, bytes);
        let derive = |purpose: &str| hmac::sign(&root, purpose.as_bytes());
        let mut names = [0; 16];
        let derived = derive("anteroom gossip: names");
        for (to, from) in names.iter_mut().zip(derived.as_ref()) {
            *to = *from;
        }
        let seal = hmac::Key::new(
            hmac::HMAC_SHA256,
            derive("anteroom gossip: datagrams").as_ref(),
        );
        Ok(Self { seal, names })
    }

    /// Reads a secret from the first 4,096 bytes of a file.
    ///
    /// # Errors
    ///
    /// [`SecretFileError`]; it never contains the content of the file.
    pub fn read(path: &Path) -> Result<Self, SecretFileError> {
        let bytes = read_some(path).map_err(|source| SecretFileError::Read {
            path: path.to_owned(),
            source,
        })?;
        Self::new(&bytes).map_err(|source| SecretFileError::NoSecret {
            path: path.to_owned(),
            source,
        })
    }

    /// Returns the key of the digests that name the counters of clients.
    pub(crate) const fn names(&self) -> [u8; 16] {
        self.names
    }

    /// Seals a body into a datagram.
    pub(crate) fn seal(&self, body: &[u8]) -> Vec<u8> {
        let mut sealed = Vec::with_capacity(SEAL + body.len());
        sealed.push(VERSION);
        sealed.extend_from_slice(hmac::sign(&self.seal, body).as_ref());
        sealed.extend_from_slice(body);
        sealed
    }

    /// Returns the body of a datagram if it is sealed with this secret. The comparison takes
    /// constant time.
    pub(crate) fn open<'d>(&self, datagram: &'d [u8]) -> Option<&'d [u8]> {
        let (version, rest) = datagram.split_first()?;
        let (tag, body) = rest.split_at_checked(TAG)?;
        let is_ours = *version == VERSION && hmac::verify(&self.seal, body, tag).is_ok();
        is_ours.then_some(body)
    }
}

fn read_some(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?
        .take(FILE_LARGEST)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(text: &str) -> Secret {
        Secret::new(text.as_bytes()).unwrap()
    }

    #[test]
    fn only_datagrams_sealed_with_the_secret_are_opened() {
        let ours = secret("a secret of nodes");
        let sealed = ours.seal(b"seven");
        assert_eq!(ours.open(&sealed), Some(b"seven".as_slice()));
        assert_eq!(
            secret("a secret of nodes\n").open(&sealed),
            Some(&b"seven"[..])
        );
        assert_eq!(secret("another secret of nodes").open(&sealed), None);
        for at in 0..sealed.len() {
            let mut forged = sealed.clone();
            forged[at] ^= 1;
            assert_eq!(ours.open(&forged), None, "byte {at}");
            assert_eq!(ours.open(&sealed[..at]), None, "{at} bytes");
        }
    }

    #[test]
    fn a_short_secret_is_rejected() {
        let error = Secret::new(b"   too short   \n").unwrap_err();
        assert_eq!((error.bytes, error.bytes_min), (9, 16));
        assert!(!format!("{:?}", secret("0123456789abcdef")).contains("0123"));
    }
}
