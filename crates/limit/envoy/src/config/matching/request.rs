//! Rate limit request of a client, and its bounds.
//!
//! # Why the bounds are wide
//!
//! By default Envoy admits a request if its rate limit request fails. A bound that a visitor could
//! reach would be a way around every limit. No client reaches these through Envoy's default
//! settings.

/// Most descriptors of one request. Envoy sends one for each rate limit of a route and its virtual
/// host, a handful; each costs a match and a counter.
pub const DESCRIPTORS_MAX: usize = 100;

/// Most entries of one descriptor, and so the deepest nesting in a file. Envoy sends one for each
/// action; files go four or five deep.
pub const ENTRIES_MAX: usize = 32;

/// Most bytes of all keys and values of one descriptor. Values are headers and paths; by default
/// Envoy accepts 60 KiB of those together, and may send them more than once. The bound limits the
/// name of a counter.
pub const DESCRIPTOR_BYTES_MAX: usize = 256 << 10;

/// Rate limit request.
#[derive(Clone, Copy, Debug)]
pub struct Request<'r> {
    /// Domain of the limits.
    pub domain: &'r str,
    /// Descriptors of the request that is to be limited.
    pub descriptors: &'r [RequestDescriptor<'r>],
    /// Hits where a descriptor has none; 0 is taken as 1.
    pub hits_addend: u32,
}

/// Descriptor of a request.
#[derive(Clone, Copy, Debug)]
pub struct RequestDescriptor<'r> {
    /// Keys with values.
    pub entries: &'r [Entry<'r>],
    /// Limit, if the client sends one.
    pub limit: Option<Override>,
    /// Hits, if the client sends them; 0 peeks and counts nothing.
    pub hits: Option<u64>,
}

/// Key with a value.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Entry<'r> {
    /// Key.
    pub key: &'r str,
    /// Value; may be empty.
    pub value: &'r str,
}

impl<'r> Entry<'r> {
    pub(super) const fn pair(&self) -> (&'r str, &'r str) {
        (self.key, self.value)
    }
}

/// Limit that a client sends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Override {
    /// Requests per unit.
    pub requests_per_unit: u32,
    /// Number of the unit on the wire; see [`crate::config::Unit::from_number`].
    pub unit: i32,
}

/// Error of an invalid request. The first two texts are the reference service's.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The domain is empty.
    #[error("rate limit domain must not be empty")]
    EmptyDomain,
    /// Descriptors are missing.
    #[error("rate limit descriptor list must not be empty")]
    NoDescriptors,
    /// Number of descriptors above the bound.
    #[error("{found} rate limit descriptors are more than {DESCRIPTORS_MAX}")]
    TooManyDescriptors {
        /// Number of descriptors.
        found: usize,
    },
    /// A descriptor has more entries than any file is deep.
    #[error("{found} entries of rate limit descriptor {descriptor} are more than {ENTRIES_MAX}")]
    TooManyEntries {
        /// Index of the descriptor, from 0.
        descriptor: usize,
        /// Number of entries.
        found: usize,
    },
    /// Keys and values are too long for the name of a counter.
    #[error(
        "{bytes} bytes in rate limit descriptor {descriptor} are more than {DESCRIPTOR_BYTES_MAX}"
    )]
    TooLong {
        /// Index of the descriptor, from 0.
        descriptor: usize,
        /// Sum of their lengths in bytes.
        bytes: usize,
    },
    /// The unit of a limit is unknown. The reference service crashes then.
    #[error("unit {unit} of the limit of rate limit descriptor {descriptor} is not known")]
    UnknownUnit {
        /// Index of the descriptor, from 0.
        descriptor: usize,
        /// Number of the unit.
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

/// Checks the bounds of a request before anything is derived from it, from the lengths of all
/// entries of each descriptor.
///
/// # Errors
///
/// [`RequestError`] if it has no domain or no descriptors, or exceeds a bound.
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
