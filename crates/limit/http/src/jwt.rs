//! Verification of signed tokens (JWT, RFC 7519) with the public keys of a JWKS (RFC 7517).
//!
//! Verifies signatures and times, and returns a few claims as texts. Deliberately absent: where a
//! token comes from, the clock, and what a claim is used for. No type here shows a token when it is
//! formatted.
//!
//! # Invariants
//!
//! - A key is used only with algorithms of its own kind, whatever the header of a token names: no
//!   `none`, and no HMAC, as there is no key for them.
//! - One token costs one signature at most: the key is found by its `kid`, or is the only one that
//!   fits.
//! - Input bytes never cause a panic, and more than [`TOKEN_BYTES_MAX`] are not read.
//!
//! # Why not a crate
//!
//! `jsonwebtoken` is maintained passively, reads the system's clock, parses a key again for each
//! token, and brings a second base64. JWT without encryption, secrets and signing is small, and the
//! TLS library already verifies these signatures.

mod algorithm;
mod cache;
mod key_set;
mod token;
mod verifier;

pub use algorithm::Algorithm;
pub use key_set::{FILE_BYTES_MAX, KEYS_MAX, KeySet, KeySetError};
pub use token::{Expected, Proof, Rejection, TOKEN_BYTES_MAX};
pub use verifier::Verifier;
