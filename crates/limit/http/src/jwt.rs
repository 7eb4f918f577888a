//! What does a signed token (JWT, RFC 7519) prove, by the public keys of a JWKS (RFC 7517)?
//!
//! Signatures and times are verified, and a few claims are handed out as texts. Where a token comes
//! from, what time it is, and what a claim is good for is not known here; nothing here shows a
//! token.
//!
//! # Invariants
//!
//! - A key is used with the algorithms of its own kind alone, whatever a token's header asks for:
//!   no `none`, and no HMAC, for there is no key for them.
//! - One token costs one signature at most: the key is found by its `kid`, or is the only one that
//!   fits.
//! - Bytes from outside never panic, and more than [`TOKEN_BYTES_MAX`] are not looked at.
//!
//! # Why not a crate
//!
//! `jsonwebtoken` is kept passively, reads the system's clock by itself, parses a key anew for each
//! token, and brings a second base64. What is left of JWT without encryption, secrets and signing
//! is small, and the signatures are those of the library that TLS has already.

mod algorithm;
mod cache;
mod key_set;
mod token;
mod verifier;

pub use algorithm::Algorithm;
pub use key_set::{FILE_BYTES_MAX, KEYS_MAX, KeySet, KeySetError};
pub use token::{Expected, Proof, Rejection, TOKEN_BYTES_MAX};
pub use verifier::Verifier;
