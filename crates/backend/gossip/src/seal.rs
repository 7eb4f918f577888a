//! How does a node know that a datagram comes from one of its own?
//!
//! Every datagram carries an HMAC (SHA-256) of all that it says, by the secret that all nodes
//! share. Whoever does not know that can make no counter larger, and nobody a member. What he can
//! do is send again what he saw: a counter that was told before is known already, or its time is
//! over; who is a member goes by numbers that only grow.

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use aws_lc_rs::hmac;

use crate::failure::{SecretError, SecretFileError};

/// The first byte of every datagram. Whoever changes what nodes say to each other changes it.
const VERSION: u8 = 1;
const TAG: usize = 32;
/// What sealing adds.
pub(crate) const SEAL: usize = 1 + TAG;
/// The shortest secret. Whoever listens has all the time he likes to try secrets, so it must be a
/// random one.
pub(crate) const SECRET_SHORTEST: usize = 16;

/// What is read of a file at most; nobody types so much, and a device without end is not read for
/// ever.
const FILE_LARGEST: u64 = 4_096;

/// What all nodes know and nobody else.
#[derive(Clone)]
pub struct Secret {
    seal: hmac::Key,
    names: [u8; 16],
}

impl Secret {
    /// A secret of these bytes. Space around it does not count: files end with a line feed.
    ///
    /// # Errors
    ///
    /// [`SecretError`] if it is too short to keep anybody out.
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

    /// The secret that a file holds, of which the first 4,096 bytes count.
    ///
    /// # Errors
    ///
    /// [`SecretFileError`]; it never shows what the file holds.
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

    /// By which the counters of clients are called.
    pub(crate) const fn names(&self) -> [u8; 16] {
        self.names
    }

    /// A datagram that says this.
    pub(crate) fn seal(&self, body: &[u8]) -> Vec<u8> {
        let mut sealed = Vec::with_capacity(SEAL + body.len());
        sealed.push(VERSION);
        sealed.extend_from_slice(hmac::sign(&self.seal, body).as_ref());
        sealed.extend_from_slice(body);
        sealed
    }

    /// What a datagram says, if it is from whoever knows the secret. Takes as long for a tag that
    /// is nearly right as for any other.
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
    fn only_what_was_sealed_with_the_secret_is_opened() {
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
    fn a_secret_that_can_be_guessed_is_none() {
        let error = Secret::new(b"   too short   \n").unwrap_err();
        assert_eq!((error.bytes, error.bytes_min), (9, 16));
        assert!(!format!("{:?}", secret("0123456789abcdef")).contains("0123"));
    }
}
