//! A table without which some limits mean nothing, such as that of the servers that count them.

use crate::notes::Location;
use crate::problem::Finding;
use crate::reader::Table;

/// A table that some limits need.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Need {
    /// Its name.
    pub(crate) table: &'static str,
    /// What is wrong without it.
    pub(crate) finding: &'static str,
    /// What is allowed without it.
    pub(crate) allowed: &'static str,
}

impl Need {
    /// Reads the table, which may be left out unless a limit needs it. `needs` are the tables that
    /// limits need, and where they say so.
    pub(crate) fn read<T>(
        self,
        root: &mut Table<'_>,
        needs: &[&(Self, Location)],
        read: fn(Table<'_>) -> Option<T>,
    ) -> Option<T> {
        if root.has(self.table) {
            return read(root.table(self.table));
        }
        for (_, location) in needs.iter().filter(|(need, _)| *need == self) {
            let finding = Finding::Remark(self.finding.to_owned());
            root.notes.refuse(location, finding, self.allowed, None);
        }
        None
    }
}
