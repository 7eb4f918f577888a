//! What does a client ask, and how much may it ask at once?
//!
//! # Why the bounds are wide
//!
//! Envoy lets a request pass whose question is refused, unless it was told otherwise. A bound that
//! a visitor could reach would be a way around every limit; these are reached by nobody whom Envoy
//! lets in as it is set up at first.

/// Most descriptors of one request. Envoy sends one for each rate limit of a route and its virtual
/// host, a handful; each costs a look and a counter.
pub const DESCRIPTORS_MAX: usize = 100;

/// Most entries of one descriptor, and so the most descriptors inside each other in a file. Envoy
/// sends one for each action; files go four or five deep.
pub const ENTRIES_MAX: usize = 32;

/// Most bytes of all keys and values of one descriptor. Values are headers and paths, and Envoy
/// takes 60 KiB of those together if it is not told otherwise; they may be sent more than once.
/// What is longer would be kept as the name of a counter.
pub const DESCRIPTOR_BYTES_MAX: usize = 256 << 10;

/// A question.
#[derive(Clone, Copy, Debug)]
pub struct Request<'r> {
    /// Whose limits.
    pub domain: &'r str,
    /// What is known about the request that is to be limited, in several ways.
    pub descriptors: &'r [RequestDescriptor<'r>],
    /// How much it counts where a descriptor does not say; 0 is taken as 1.
    pub hits_addend: u32,
}

/// One way to look at a request.
#[derive(Clone, Copy, Debug)]
pub struct RequestDescriptor<'r> {
    /// Keys with values.
    pub entries: &'r [Entry<'r>],
    /// The limit, if the client brings one.
    pub limit: Option<Override>,
    /// How much it counts, if the client says so; 0 asks and counts nothing.
    pub hits: Option<u64>,
}

/// A key with a value.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Entry<'r> {
    /// The key.
    pub key: &'r str,
    /// The value; may be empty.
    pub value: &'r str,
}

impl<'r> Entry<'r> {
    pub(super) const fn pair(&self) -> (&'r str, &'r str) {
        (self.key, self.value)
    }
}

/// A limit that a client brings.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Override {
    /// How many requests.
    pub requests_per_unit: u32,
    /// In which time, as a number of the wire; see [`crate::config::Unit::from_number`].
    pub unit: i32,
}

/// Why a question has no answer. The first two are said as the reference service says them.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// No domain.
    #[error("rate limit domain must not be empty")]
    EmptyDomain,
    /// No descriptors.
    #[error("rate limit descriptor list must not be empty")]
    NoDescriptors,
    /// More descriptors than are looked at.
    #[error("{found} rate limit descriptors are more than {DESCRIPTORS_MAX}")]
    TooManyDescriptors {
        /// How many there are.
        found: usize,
    },
    /// More entries than any file is deep.
    #[error("{found} entries of rate limit descriptor {descriptor} are more than {ENTRIES_MAX}")]
    TooManyEntries {
        /// Which descriptor, from 0.
        descriptor: usize,
        /// How many there are.
        found: usize,
    },
    /// Keys and values that are too long to be the name of a counter.
    #[error(
        "{bytes} bytes in rate limit descriptor {descriptor} are more than {DESCRIPTOR_BYTES_MAX}"
    )]
    TooLong {
        /// Which descriptor, from 0.
        descriptor: usize,
        /// How long they are together.
        bytes: usize,
    },
    /// A limit per an unknown time. The reference service ends there, all of it.
    #[error("unit {unit} of the limit of rate limit descriptor {descriptor} is not known")]
    UnknownUnit {
        /// Which descriptor, from 0.
        descriptor: usize,
        /// The number of the unit.
        unit: i32,
    },
}

impl Request<'_> {
    pub(super) fn check(&self) -> Result<(), RequestError> {
        let descriptors = self.descriptors.iter();
        let lengths = descriptors.map(|descriptor| {
            let entries = descriptor.entries.iter();
            entries.map(|entry| entry.key.len() + entry.value.len())
        });
        check_bounds(self.domain, lengths)
    }

    pub(super) fn hits_of(&self, descriptor: &RequestDescriptor<'_>) -> u64 {
        descriptor
            .hits
            .unwrap_or_else(|| self.hits_addend.max(1).into())
    }
}

/// Whether a question is within bounds, before anything is made of it: told by the lengths of all
/// entries of each of its descriptors.
///
/// # Errors
///
/// [`RequestError`] if it has no domain, or no descriptors, or more in it than is looked at.
pub fn check_bounds<D>(domain: &str, descriptors: D) -> Result<(), RequestError>
where
    D: ExactSizeIterator,
    D::Item: ExactSizeIterator<Item = usize>,
{
    if domain.is_empty() {
        return Err(RequestError::EmptyDomain);
    }
    match descriptors.len() {
        0 => return Err(RequestError::NoDescriptors),
        found if found > DESCRIPTORS_MAX => {
            return Err(RequestError::TooManyDescriptors { found });
        }
        _ => {}
    }
    for (descriptor, lengths) in descriptors.enumerate() {
        let found = lengths.len();
        if found > ENTRIES_MAX {
            return Err(RequestError::TooManyEntries { descriptor, found });
        }
        let bytes = lengths.sum();
        if bytes > DESCRIPTOR_BYTES_MAX {
            return Err(RequestError::TooLong { descriptor, bytes });
        }
    }
    Ok(())
}
