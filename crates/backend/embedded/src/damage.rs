//! Difference between a damaged file and a disk that fails.

/// Whether an error means that the file is damaged. A disk that fails is no damage.
#[must_use]
pub(crate) fn is_damage(error: &redb::Error) -> bool {
    use std::io::ErrorKind::{InvalidData, UnexpectedEof};
    match error {
        redb::Error::Io(error) => matches!(error.kind(), InvalidData | UnexpectedEof),
        redb::Error::Corrupted(_)
        | redb::Error::RepairAborted
        | redb::Error::TableTypeMismatch { .. }
        | redb::Error::TypeDefinitionChanged { .. }
        | redb::Error::TableIsMultimap(_)
        | redb::Error::TableDoesNotExist(_) => true,
        _ => false,
    }
}
