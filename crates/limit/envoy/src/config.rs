//! Rate limits as Envoy uses them: the YAML files of envoyproxy/ratelimit, and the match of
//! requests with their limits.
//!
//! [`read`] makes [`RateLimits`] from files, or returns every mistake in them.
//! [`RateLimits::applying_to`] returns what applies to each descriptor of a request. Both follow
//! the reference service, so that its files and clients stay as they are. Where they do more, or
//! something else, the item documents it.
//!
//! Deliberately absent: counting (a limit comes with the identity of its counter, and with its
//! algorithm), the verdict over several descriptors, the wire, and the source of files.

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
