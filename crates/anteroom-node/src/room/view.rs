//! What is needed to let somebody pass who is inside, without asking the room.

use std::collections::HashSet;

use anteroom_core::id::{DataCenterId, Epoch, VisitorId};
use anteroom_core::room::Room;
use anteroom_core::rules::Rules;
use anteroom_core::ticket::{Standing, Ticket};
use anteroom_core::time::{Millis, Span};

/// A copy of what changes seldom. Replaced as a whole after every sync.
pub(super) struct View {
    pub(super) rules: Rules,
    pub(super) closed_through: Millis,
    data_center: DataCenterId,
    epoch: Epoch,
    grid: Span,
    revoked: HashSet<VisitorId>,
    /// Before the first answer of its parent, and after its lease, a node does not know whose session
    /// was ended.
    is_complete_until: Millis,
}

impl View {
    pub(super) fn of(room: &Room) -> Self {
        Self {
            rules: *room.rules(),
            closed_through: room.outlook().closed_through,
            data_center: room.data_center(),
            epoch: room.outlook().epoch,
            grid: room.rules().seat_grid(),
            revoked: room.revoked().into_iter().collect(),
            is_complete_until: if room.has_heard_from_parent() {
                room.lease_ends_at()
            } else {
                Millis::ZERO
            },
        }
    }

    pub(super) fn is_revoked(&self, visitor: VisitorId) -> bool {
        self.revoked.contains(&visitor)
    }

    /// Until when the holder of this ticket is inside, if there is nothing else to decide.
    pub(super) fn pass_at_once(
        &self,
        ticket: &Ticket,
        is_navigation: bool,
        now: Millis,
    ) -> Option<Millis> {
        let Standing::Inside { ends_at } = ticket.standing(now, self.closed_through, &self.rules)
        else {
            return None;
        };
        let seat = ticket.seats.of(self.data_center)?;
        let may_be_renewed = self.rules.session_renewal || ticket.is_provisional;
        let is_due = may_be_renewed && ticket.is_check_in_due(now, self.grid, is_navigation);
        let is_plain = now < self.is_complete_until
            && seat.epoch == self.epoch
            && !is_due
            && !ticket.is_from_the_future(now)
            && !self.revoked.contains(&ticket.visitor);
        is_plain.then_some(ends_at)
    }
}
