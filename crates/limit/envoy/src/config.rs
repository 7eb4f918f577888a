//! Rate limits as Envoy asks for them: the YAML of envoyproxy/ratelimit as it is, and which of its
//! limits a request meets.
//!
//! [`read`] makes [`RateLimits`] of files, or tells every mistake in them;
//! [`RateLimits::applying_to`] says what applies to each descriptor of a request. Both do as the
//! reference service does, so that its files and its clients can stay; where they do more or
//! otherwise, the item says so.
//!
//! Deliberately absent: counting (a limit is told, with the identity of its counter, and which
//! algorithm was chosen), the verdict over several descriptors, the wire, and where files come
//! from.

mod algorithm;
mod descriptors;
#[doc(hidden)]
pub mod fuzz;
mod matching;
mod metadata;
mod mistake;
mod notice;
mod reading;
mod unit;
mod wildcard;
mod yaml;

pub use algorithm::AlgorithmChoice;
pub use descriptors::{Limit, RateLimits};
pub use matching::identity::CounterIdentity;
pub use matching::request::{
    DESCRIPTOR_BYTES_MAX, DESCRIPTORS_MAX, ENTRIES_MAX, Entry, Override, Request,
    RequestDescriptor, RequestError, check_bounds,
};
pub use matching::{AppliedLimit, Applies, Matched};
pub use metadata::{Metadata, Value};
pub use mistake::{Defect, Mistake, Mistakes, WrongType};
pub use notice::{Notice, Remark};
pub use reading::{
    CannotKeep, FILE_BYTES_MAX, FILE_DESCRIPTORS_MAX, File, Keep, Read, SameDomain, read, read_for,
};
pub use unit::Unit;
