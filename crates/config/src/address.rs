//! Hosts and addresses of stores as people write them, in the one form in which they are compared
//! and shown.
//!
//! Nothing here resolves names or connects, and nothing shows a password. The error enums are
//! exhaustive, so that a reader of settings has a text of its own for each error.

#[doc(hidden)]
pub mod fuzz;
pub mod host;
pub mod password;
pub mod store_address;
pub mod valkey;
