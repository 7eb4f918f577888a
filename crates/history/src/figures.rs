//! Figures of a room over some minutes: those of a node, which are added, and those of the room.

pub use anteroom_room::figures::AnnouncedWaits;
use anteroom_room::figures::MinuteFigures;
use anteroom_room::histogram::Histogram;
use anteroom_room::rules::Limits;
use anteroom_room::time::Timestamp;

/// Class of a response of the origin.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StatusClass {
    /// Status 100 to 199.
    Informational,
    /// Status 200 to 299.
    Success,
    /// Status 300 to 399.
    Redirect,
    /// Status 400 to 499.
    ClientError,
    /// Status 500 and above.
    ServerError,
    /// No response, or none that can be passed on.
    None,
}

impl StatusClass {
    /// Number of classes.
    pub const COUNT: usize = 6;
}

/// Responses of a room's origins at one node: counts since the start, or of some minutes.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct OriginTotals {
    /// Times until the heads of responses.
    pub latency: Histogram,
    /// Requests by class, in the order of [`StatusClass`].
    pub statuses: [u64; StatusClass::COUNT],
}

impl OriginTotals {
    /// Returns what was counted since `before`. If origins were replaced, counts began anew.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let pairs = self.statuses.iter().zip(&before.statuses);
        if pairs.clone().any(|(now, before)| now < before) {
            return *self;
        }
        let mut since = *self;
        for (bucket, count) in before.latency.counts().iter().enumerate() {
            since.latency.change(bucket, count.wrapping_neg());
        }
        for (now, before) in since.statuses.iter_mut().zip(&before.statuses) {
            *now = now.saturating_sub(*before);
        }
        since
    }

    fn add(&mut self, other: &Self) {
        self.latency.add(&other.latency);
        for (own, more) in self.statuses.iter_mut().zip(&other.statuses) {
            *own = own.saturating_add(*more);
        }
    }
}

/// Figures of a node, which readers add up over nodes and over time.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct NodeFigures {
    /// Visitors who came without a ticket.
    pub arrivals: u64,
    /// Visitors admitted under the limits. The slot of each was leased for this time.
    pub admitted: u64,
    /// Visitors admitted outside the limits.
    pub admitted_outside_limits: u64,
    /// Responses that rejected a visitor.
    pub rejected: u64,
    /// Sessions that the origin ended.
    pub revoked: u64,
    /// First announced waits by how they came true, and visitors who left.
    pub announced: AnnouncedWaits,
    /// Times waited by admitted visitors who waited.
    pub waits: Histogram,
    /// Times inside, of sessions that ended.
    pub inside: Histogram,
    /// Inversions: how much later admitted visitors arrived than others who still waited.
    pub inversions: Histogram,
    /// Responses of the origins.
    pub origin: OriginTotals,
}

impl NodeFigures {
    /// Returns the figures of a minute, as the room and its origins counted them.
    #[must_use]
    pub fn of(minute: &MinuteFigures, origin: OriginTotals) -> Self {
        // Destructured, so that a new figure cannot be forgotten here.
        let MinuteFigures {
            minute: _,
            arrivals,
            admitted,
            admitted_outside_limits,
            rejected,
            revoked,
            announced,
            waits,
            inside,
            inversions,
        } = *minute;
        Self {
            arrivals,
            admitted,
            admitted_outside_limits,
            rejected,
            revoked,
            announced,
            waits,
            inside,
            inversions,
            origin,
        }
    }

    /// Adds the figures of another node, or of another time. The order has no effect.
    pub fn add(&mut self, other: &Self) {
        let counts = [
            (&mut self.arrivals, other.arrivals),
            (&mut self.admitted, other.admitted),
            (
                &mut self.admitted_outside_limits,
                other.admitted_outside_limits,
            ),
            (&mut self.rejected, other.rejected),
            (&mut self.revoked, other.revoked),
            (&mut self.announced.right, other.announced.right),
            (&mut self.announced.early, other.announced.early),
            (&mut self.announced.late, other.announced.late),
        ];
        for (own, more) in counts {
            *own = own.saturating_add(more);
        }
        let (own, more) = (&mut self.announced, &other.announced);
        let left = [
            (&mut own.left_before, more.left_before),
            (&mut own.left_after, more.left_after),
            (&mut own.left_unannounced, more.left_unannounced),
        ];
        for (own, more) in left {
            *own = own.wrapping_add(more);
        }
        self.waits.add(&other.waits);
        self.inside.add(&other.inside);
        self.inversions.add(&other.inversions);
        self.origin.add(&other.origin);
    }

    /// Returns the visitors who stopped waiting and were not admitted. If a node has crashed, those
    /// that another node took over are missing.
    #[must_use]
    pub fn abandoned(&self) -> u64 {
        let AnnouncedWaits {
            left_before,
            left_after,
            left_unannounced,
            ..
        } = self.announced;
        let sum = left_before
            .wrapping_add(left_after)
            .wrapping_add(left_unannounced);
        sum.max(0).unsigned_abs()
    }
}

/// Value that changed over time.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Level {
    /// Lowest value.
    pub min: u32,
    /// Highest value.
    pub max: u32,
    /// Newest value.
    pub last: u32,
}

impl Level {
    fn at(value: u32) -> Self {
        Self {
            min: value,
            max: value,
            last: value,
        }
    }
}

/// Facts about the room in one reply of the ledger.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Sample {
    /// Time of the reply.
    pub at: Timestamp,
    /// Active visitors at all nodes.
    pub active: u32,
    /// Waiting visitors at all nodes.
    pub waiting: u32,
    /// Limits in force.
    pub limits: Limits,
}

/// Figures of the room, from the ledger. They are the same at each node, so they are never added.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct RoomFigures {
    /// Number of replies; without any, all values are 0 and mean nothing.
    pub samples: u64,
    /// Time of the newest reply.
    pub as_of: Timestamp,
    /// Active visitors.
    pub active: Level,
    /// Waiting visitors.
    pub waiting: Level,
    /// Limit of active visitors.
    pub total_active_users: Level,
    /// Limit of admissions in a minute.
    pub new_users_per_minute: Level,
}

impl RoomFigures {
    /// Returns the figures of one reply.
    #[must_use]
    pub fn of(sample: Sample) -> Self {
        Self {
            samples: 1,
            as_of: sample.at,
            active: Level::at(sample.active),
            waiting: Level::at(sample.waiting),
            total_active_users: Level::at(sample.limits.total_active_users),
            new_users_per_minute: Level::at(sample.limits.new_users_per_minute),
        }
    }

    /// Joins what another node saw, or what was seen at another time. The order has no effect: the
    /// newest value is that of the newest reply, and of two at one time the higher one.
    pub fn join(&mut self, other: &Self) {
        if other.samples == 0 {
            return;
        }
        if self.samples == 0 {
            *self = *other;
            return;
        }
        let is_newer = other.as_of > self.as_of;
        let is_as_new = other.as_of == self.as_of;
        let levels = [
            (&mut self.active, other.active),
            (&mut self.waiting, other.waiting),
            (&mut self.total_active_users, other.total_active_users),
            (&mut self.new_users_per_minute, other.new_users_per_minute),
        ];
        for (own, other) in levels {
            own.min = own.min.min(other.min);
            own.max = own.max.max(other.max);
            if is_newer || (is_as_new && other.last > own.last) {
                own.last = other.last;
            }
        }
        self.as_of = self.as_of.max(other.as_of);
        self.samples = self.samples.saturating_add(other.samples);
    }
}
