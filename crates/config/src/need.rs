//! Table that some limits need, such as that of the servers that count them.

use crate::notes::Location;
use crate::problem::Finding;
use crate::reader::Table;

/// A table that some limits need.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Need {
    /// Name of the table.
    pub(crate) table: &'static str,
    /// Finding if the table is missing.
    pub(crate) finding: &'static str,
    /// Text of what is allowed if the table is missing.
    pub(crate) allowed: &'static str,
}

impl Need {
    /// Reads the table. It is optional unless a limit needs it. `needs` are the tables that limits
    /// need, with locations.
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
            root.notes.report(location, finding, self.allowed, None);
        }
        None
    }
}
