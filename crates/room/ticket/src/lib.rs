//! Seals and opens the ticket that a visitor carries.
//!
//! The cipher is AES-256-GCM-SIV. Nonces of many nodes under one key may collide by chance, and
//! this mode then reveals no more than that two tickets are equal. The core decides the standing of
//! a ticket; the caller draws the nonces.

mod base64url;
mod layout;
mod ring;

pub use ring::{Binding, KeyRing, NONCE_BYTES, OpenError, SealedTicket, TICKET_CHARS_MAX};

/// Entry points for fuzzing.
#[doc(hidden)]
pub mod fuzz {
    use anteroom_room::id::DeploymentId;

    use crate::{Binding, KeyRing};

    /// Opens arbitrary bytes as a ticket, sealed and unsealed. Nothing may panic, and each parsed
    /// ticket must survive being written and read again.
    pub fn ticket(data: &[u8]) {
        let ring = KeyRing::new(&[[7; 32]]);
        let binding = Binding::new("__anteroom_fuzz", "fuzz");
        let text = String::from_utf8_lossy(data);
        let opened = ring.open(&text, DeploymentId(1), &binding);
        assert!(opened.is_err(), "a guessed tag does not open");
        if let Ok((deployment, ticket)) = crate::layout::read(data) {
            let (bytes, length) = crate::layout::write(deployment, &ticket);
            assert_eq!(
                crate::layout::read(&bytes[..length]),
                Ok((deployment, ticket))
            );
        }
    }
}
