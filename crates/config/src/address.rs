//! Where is a server? Hosts and stores as people write them, in the one form in which they are
//! compared and shown.
//!
//! Nothing is resolved or connected to, and nothing shows a password. Errors are exhaustive:
//! whoever reads settings tells each of them in words of its own, and is to miss none.

#[doc(hidden)]
pub mod fuzz;
pub mod host;
pub mod password;
pub mod store_address;
pub mod valkey;
