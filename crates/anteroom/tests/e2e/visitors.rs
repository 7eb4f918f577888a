//! What visitors, programs and the origin see of a gateway.

mod answers;
mod cookies;
mod introductions;
mod languages;
mod loops;
mod opening;
mod paths;
mod place;
mod push;
mod revoke;
mod shared_tickets;
mod templates;
mod verdicts;
