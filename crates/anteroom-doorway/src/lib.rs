//! What comes to the door, and what does the origin see of it? Nothing but tests: requests by HTTP/1 and
//! HTTP/2, in bytes that no client library would send, through the whole gateway but its rooms.
//!
//! They stand apart from `anteroom-front` and `anteroom-gateway` because it takes both to answer.
