//! The values in a request that tell clients apart, each once.

use std::borrow::Cow;

/// Why nobody can be told from a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Unknown {
    /// Something is not there, or empty.
    Missing,
    /// It could be more clients than anybody honest is.
    TooMany,
}

/// Most clients that one call is counted to.
pub(crate) const CLIENTS_MAX: usize = 8;

/// The values, each once. Whoever sends an empty one might as well not send it.
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
