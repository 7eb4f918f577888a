//! Real tokens by keys that are drawn here, and what becomes of them when something about them is
//! wrong.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod issuer;
mod key_sets;
mod made_up;
mod rfc;
mod verifying;
