//! The keys of a deployment, and sealing and opening under them.
//!
//! A sealed ticket is base64url of key id (4), nonce (12), ciphertext, tag (16). Several keys
//! open, the newest seals, so that an operator can rotate keys without losing sessions.

use anteroom_room::id::DeploymentId;
use anteroom_room::ticket::Ticket;
use aws_lc_rs::aead::{AES_256_GCM_SIV, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::digest::{SHA256, digest};

use crate::base64url;
use crate::layout::{self, CONTENT_BYTES_MAX};

/// Bytes of a nonce.
pub const NONCE_BYTES: usize = 12;
/// Longest cookie value that is decoded; a longer one is malformed.
pub const TICKET_CHARS_MAX: usize = 256;

const KEY_ID_BYTES: usize = 4;
const TAG_BYTES: usize = 16;
const HEAD_BYTES: usize = KEY_ID_BYTES + NONCE_BYTES;
const SEALED_BYTES_MAX: usize = HEAD_BYTES + CONTENT_BYTES_MAX + TAG_BYTES;

const _: () = assert!(
    SEALED_BYTES_MAX.div_ceil(3) * 4 <= TICKET_CHARS_MAX,
    "a ticket with all its seats fits a cookie of the promised size"
);

/// Keys of a deployment, newest first.
pub struct KeyRing {
    keys: Vec<RingKey>,
}

struct RingKey {
    id: [u8; KEY_ID_BYTES],
    key: LessSafeKey,
}

impl std::fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "KeyRing({} keys)", self.keys.len())
    }
}

/// Associated data of a ticket: the room and the cookie that carries it.
#[derive(Clone, Debug)]
pub struct Binding {
    data: Vec<u8>,
}

/// Sealed ticket, as a cookie carries it.
pub type SealedTicket = String;

/// Error of opening a cookie. The visitor counts as new; it never sees an error page.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Text without the form of a ticket, or of an unknown version.
    #[error("malformed ticket")]
    Malformed,
    /// Ticket sealed under a key that is not on the ring.
    #[error("ticket of an unknown key")]
    UnknownKey,
    /// Ticket that was changed, or is of another room or another cookie.
    #[error("forged ticket")]
    Forged,
    /// Ticket of another deployment, or of this one before it lost its data.
    #[error("ticket of another deployment")]
    OtherDeployment,
}

impl Binding {
    /// Returns the binding to a room and the name of its cookie.
    #[must_use]
    pub fn new(cookie: &str, room: &str) -> Self {
        let data = ["anteroom ticket", cookie, room].join("\0").into_bytes();
        Self { data }
    }
}

impl KeyRing {
    /// Makes a ring of AES-256 keys, newest first.
    ///
    /// # Panics
    ///
    /// If `keys` is empty: nothing could be sealed.
    #[must_use]
    pub fn new(keys: &[[u8; 32]]) -> Self {
        assert!(!keys.is_empty(), "a key ring has at least one key");
        let keys = keys
            .iter()
            .map(|bytes| RingKey {
                id: key_id(bytes),
                key: LessSafeKey::new(
                    UnboundKey::new(&AES_256_GCM_SIV, bytes).expect("32 bytes are an AES-256 key"),
                ),
            })
            .collect();
        Self { keys }
    }

    /// Seals a ticket under the newest key. A nonce should not repeat. If it does, an observer
    /// learns only whether the two tickets are equal.
    ///
    /// # Panics
    ///
    /// Never: a ticket is far shorter than the longest text of the cipher.
    #[must_use]
    pub fn seal(
        &self,
        ticket: &Ticket,
        deployment: DeploymentId,
        binding: &Binding,
        nonce: [u8; NONCE_BYTES],
    ) -> SealedTicket {
        let newest = &self.keys[0];
        let (mut content, length) = layout::write(deployment, ticket);
        let tag = newest
            .key
            .seal_in_place_separate_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(&binding.data),
                &mut content[..length],
            )
            .expect("a ticket is shorter than the longest text of the cipher");
        let mut sealed = [0; SEALED_BYTES_MAX];
        let tag_at = HEAD_BYTES + length;
        let end = tag_at + TAG_BYTES;
        sealed[..KEY_ID_BYTES].copy_from_slice(&newest.id);
        sealed[KEY_ID_BYTES..HEAD_BYTES].copy_from_slice(&nonce);
        sealed[HEAD_BYTES..tag_at].copy_from_slice(&content[..length]);
        sealed[tag_at..end].copy_from_slice(tag.as_ref());
        base64url::encode(&sealed[..end])
    }

    /// Opens a cookie's value.
    ///
    /// # Errors
    ///
    /// [`OpenError`] for anything that was not sealed by this deployment for this room.
    pub fn open(
        &self,
        text: &str,
        deployment: DeploymentId,
        binding: &Binding,
    ) -> Result<Ticket, OpenError> {
        if text.len() > TICKET_CHARS_MAX {
            return Err(OpenError::Malformed);
        }
        let mut buffer = [0; TICKET_CHARS_MAX];
        let length = base64url::decode(text, &mut buffer).map_err(|_| OpenError::Malformed)?;
        let (head, sealed) = buffer[..length]
            .split_at_mut_checked(HEAD_BYTES)
            .ok_or(OpenError::Malformed)?;
        let (id, nonce) = head.split_at(KEY_ID_BYTES);
        let nonce: [u8; NONCE_BYTES] = nonce.try_into().map_err(|_| OpenError::Malformed)?;
        let key = self
            .keys
            .iter()
            .find(|key| key.id == *id)
            .ok_or(OpenError::UnknownKey)?;
        let content = key
            .key
            .open_in_place(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(&binding.data),
                sealed,
            )
            .map_err(|_| OpenError::Forged)?;
        let (sealed_for, ticket) = layout::read(content).map_err(|_| OpenError::Malformed)?;
        if sealed_for == deployment {
            Ok(ticket)
        } else {
            Err(OpenError::OtherDeployment)
        }
    }
}

fn key_id(key: &[u8; 32]) -> [u8; KEY_ID_BYTES] {
    let digest = digest(&SHA256, key);
    let mut id = [0; KEY_ID_BYTES];
    id.copy_from_slice(&digest.as_ref()[..KEY_ID_BYTES]);
    id
}

#[cfg(test)]
mod tests;
