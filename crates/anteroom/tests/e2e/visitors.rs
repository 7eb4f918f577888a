//! Responses and headers that visitors, programs and the origin get.

mod cookies;
mod events;
mod languages;
mod leaving;
mod loops;
mod opening;
mod origin_headers;
mod paths;
mod position;
mod push;
mod responses;
mod revoke;
mod shared_tickets;
mod templates;
mod verdicts;
