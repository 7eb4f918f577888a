//! Does what passes through the gateway come out as it should?
//!
//! Real sockets, with clients and origins written by hand on either side: in `tests/proxy` a gateway
//! without rooms, and one with everything; in `tests/doorway` what no client would send. For tests;
//! nothing here ships.
