//! Distinct values in a request that identify clients.

use std::borrow::Cow;

/// Error of a request without a usable client.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Unknown {
    /// A part is missing or empty.
    Missing,
    /// The request has more clients than a genuine one can have.
    TooMany,
}

/// Most clients that one request counts for.
pub(crate) const CLIENTS_MAX: usize = 8;

/// Returns the distinct values. Empty ones count as missing.
pub(crate) fn distinct<'r>(
    values: impl Iterator<Item = Cow<'r, [u8]>>,
) -> Result<Vec<Cow<'r, [u8]>>, Unknown> {
    let mut all: Vec<Cow<'r, [u8]>> = Vec::new();
    for value in values.filter(|value| !value.is_empty()) {
        if all.contains(&value) {
            continue;
        }
        if all.len() == CLIENTS_MAX {
            return Err(Unknown::TooMany);
        }
        all.push(value);
    }
    if all.is_empty() {
        return Err(Unknown::Missing);
    }
    Ok(all)
}
