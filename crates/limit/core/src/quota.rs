//! How many calls is each of those assigned that ask ahead, out of one limit?
//!
//! What is assigned is **prepaid**: it is charged to the limit first, as a call is, and spent
//! afterwards. So it does not matter who holds what: a message that is lost, an Envoy that ends or
//! a process that is replaced costs calls, and never makes some. The book of a limit ([`book`])
//! says who gets how many; how long they may be spent is said in [`lasting`].
//!
//! Pure steps with integers. Deliberately absent: clocks, where calls are counted, and the wire.

pub mod book;
pub mod lasting;
pub mod level;
mod member;
