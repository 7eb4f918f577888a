//! Verification of real tokens with generated keys, and of tokens with one fault.
#![expect(clippy::unwrap_used, reason = "a test that cannot continue fails")]

mod issuer;
mod key_sets;
mod made_up;
mod rfc;
mod verifying;
