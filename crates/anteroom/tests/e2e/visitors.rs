//! What visitors, programs and the origin see of a gateway.

mod answers;
mod cookies;
mod introductions;
mod opening;
mod paths;
mod place;
mod revoke;
mod verdicts;
