//! Search for a visitor by its code, with times as people read them.

use anteroom_config::schedule::converted;
use anteroom_room::id::VisitorId;
use anteroom_room::room::find::Known;
use anteroom_room::time::Timestamp;
use anteroom_room::visitor_code::VisitorCode;

use super::RoomHandle;

impl RoomHandle {
    /// Returns what this node knows of visitors with this code, by visitor. Times are wall-clock
    /// times. Holds the room's lock while it looks at each visitor that the node remembers.
    #[must_use]
    pub fn find(&self, code: VisitorCode) -> Vec<(VisitorId, Known)> {
        let found = self.locked(|room, now| room.find(code, now));
        let (wall, room) = (self.wall_now(), self.now());
        let convert = |at: &mut Timestamp| *at = converted(*at, room, wall);
        let mut found: Vec<_> = found.into_iter().collect();
        for (_, known) in &mut found {
            match known {
                Known::Waiting {
                    arrived_at: first,
                    counted_until: second,
                    ..
                }
                | Known::Active {
                    accepted_at: first,
                    ends_at: second,
                } => {
                    convert(first);
                    convert(second);
                }
                Known::Left | Known::Revoked => {}
            }
        }
        found
    }
}
