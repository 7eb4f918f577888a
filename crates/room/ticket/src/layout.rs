//! Layout of a ticket before it is sealed: fixed fields, little-endian.
//!
//! Version 2: version (1), deployment (8), visitor (16), bucket (8), last check-in (8), accepted at
//! (8, 0 = waiting), flags (1), counted until (2, 0 = not counted), announcement (17, if the flag
//! says so), unseen loss (17, if the flag says so), number of seats (1). For each seat: data center
//! (4), end (8), epoch (4). `counted until` is in steps of half a second after the last check-in.
//!
//! Announcement: position (4), time of admission (4), time of the first response that had one (4)
//! and the time of admission in it (4), reason of a rise (1). Times are in seconds after the
//! bucket; 0 is none.
//!
//! Unseen loss: kind (1), time (8) and the last request before it (8, 0 = not needed).
//!
//! Version 1 has neither `counted until` nor an announcement. It is still read, so that visitors
//! keep their positions when a deployment is upgraded.

use std::num::NonZeroU32;

use anteroom_room::id::{DataCenterId, DeploymentId, Epoch, VisitorId};
use anteroom_room::queue_position::{Loss, Rise};
use anteroom_room::ticket::{
    AfterArrival, Announced, FirstSeat, Promise, SEATS_MAX, Seat, Seats, Ticket,
};
use anteroom_room::time::Timestamp;
use anteroom_room::waiting::COUNT_GRAIN;

const VERSION: u8 = 2;
/// Previous version, which is read and no longer written.
const VERSION_BEFORE: u8 = 1;
const FLAG_NEWCOMER: u8 = 1;
const FLAG_ANNOUNCED: u8 = 2;
const FLAG_TURN: u8 = 4;
const FLAG_EXTENDED_TURN: u8 = 8;
const FLAG_MISSED_TURN: u8 = 16;
const FLAG_UNSEEN_LOSS: u8 = 32;
const ANNOUNCED_BYTES: usize = 4 * 4 + 1;
const LOSS_BYTES: usize = 1 + 8 + 8;
const SEAT_BYTES: usize = 16;
const FIXED_BYTES: usize = 1 + 8 + 16 + 8 + 8 + 8 + 1 + 2 + 1;

/// Most bytes of a ticket before sealing.
pub(crate) const CONTENT_BYTES_MAX: usize =
    FIXED_BYTES + ANNOUNCED_BYTES + LOSS_BYTES + SEATS_MAX * SEAT_BYTES;

/// Error of bytes that are no ticket of a known version.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct NoTicket;

/// Writes a ticket; returns the buffer and the number of its bytes in use.
pub(crate) fn write(deployment: DeploymentId, ticket: &Ticket) -> ([u8; CONTENT_BYTES_MAX], usize) {
    let mut writer = Writer {
        bytes: [0; CONTENT_BYTES_MAX],
        length: 0,
    };
    let has_announced = ticket.announced != Announced::default();
    let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
    let first_seat = ticket.first_seat.map_or(0, |first| match first {
        FirstSeat::Newcomer => FLAG_NEWCOMER,
        FirstSeat::Turn => FLAG_TURN,
        FirstSeat::ExtendedTurn => FLAG_EXTENDED_TURN,
    });
    let flags = first_seat
        | flag(has_announced, FLAG_ANNOUNCED)
        | flag(ticket.has_missed_turn, FLAG_MISSED_TURN)
        | flag(ticket.unseen_loss.is_some(), FLAG_UNSEEN_LOSS);
    writer.put(&[VERSION]);
    writer.put(&deployment.0.to_le_bytes());
    writer.put(&ticket.visitor.0);
    writer.put(&ticket.bucket.0.to_le_bytes());
    writer.put(&ticket.last_check_in_at.0.to_le_bytes());
    writer.put(&ticket.accepted_at.map_or(0, |at| at.0).to_le_bytes());
    writer.put(&[flags]);
    writer.put(&counted_steps(ticket).to_le_bytes());
    if has_announced {
        writer.put_announced(ticket);
    }
    if let Some(loss) = ticket.unseen_loss {
        writer.put_loss(loss);
    }
    let count_at = writer.length;
    writer.put(&[0]);
    for seat in ticket.seats.iter() {
        writer.put(&seat.data_center.0.to_le_bytes());
        writer.put(&seat.ends_at.0.to_le_bytes());
        writer.put(&seat.epoch.0.to_le_bytes());
        writer.bytes[count_at] += 1;
    }
    (writer.bytes, writer.length)
}

/// Returns the steps from the last check-in until the end of the count; 0 if it is not counted.
fn counted_steps(ticket: &Ticket) -> u16 {
    let until = ticket.counted_until.unwrap_or_default();
    let from = ticket.last_check_in_at.0 / COUNT_GRAIN.0;
    let steps = (until.0 / COUNT_GRAIN.0).saturating_sub(from);
    u16::try_from(steps).unwrap_or(u16::MAX)
}

/// Returns the end of the count so many steps after the last check-in.
fn counted_until(last_check_in_at: Timestamp, steps: u16) -> Option<Timestamp> {
    let from = last_check_in_at.floor_to(COUNT_GRAIN).0;
    let until = from.checked_add(u64::from(steps) * COUNT_GRAIN.0)?;
    (steps > 0).then_some(Timestamp(until))
}

/// Reads a ticket and the deployment that it belongs to.
pub(crate) fn read(bytes: &[u8]) -> Result<(DeploymentId, Ticket), NoTicket> {
    let mut reader = Reader { rest: bytes };
    let has_count = match reader.u8()? {
        VERSION => true,
        VERSION_BEFORE => false,
        _ => return Err(NoTicket),
    };
    let deployment = DeploymentId(reader.u64()?);
    let visitor = VisitorId(reader.take()?);
    let bucket = Timestamp(reader.u64()?);
    let last_check_in_at = Timestamp(reader.u64()?);
    let accepted_at = Some(Timestamp(reader.u64()?)).filter(|at| at.0 != 0);
    let flags = reader.u8()?;
    if flags & FLAG_ANNOUNCED != 0 && !has_count {
        return Err(NoTicket);
    }
    let first_seat = match flags & !(FLAG_ANNOUNCED | FLAG_MISSED_TURN | FLAG_UNSEEN_LOSS) {
        0 => None,
        FLAG_NEWCOMER => Some(FirstSeat::Newcomer),
        FLAG_TURN => Some(FirstSeat::Turn),
        FLAG_EXTENDED_TURN => Some(FirstSeat::ExtendedTurn),
        _ => return Err(NoTicket),
    };
    let steps = if has_count { reader.u16()? } else { 0 };
    let announced = if flags & FLAG_ANNOUNCED == 0 {
        Announced::default()
    } else {
        reader.announced()?
    };
    let unseen_loss = if flags & FLAG_UNSEEN_LOSS == 0 {
        None
    } else {
        Some(reader.loss()?)
    };
    let seats = reader.seats()?;
    if !reader.rest.is_empty() {
        return Err(NoTicket);
    }
    let ticket = Ticket {
        visitor,
        bucket,
        last_check_in_at,
        accepted_at,
        first_seat,
        has_missed_turn: flags & FLAG_MISSED_TURN != 0,
        counted_until: counted_until(last_check_in_at, steps),
        announced,
        unseen_loss,
        seats,
    };
    Ok((deployment, ticket))
}

struct Writer {
    bytes: [u8; CONTENT_BYTES_MAX],
    length: usize,
}

impl Writer {
    fn put(&mut self, field: &[u8]) {
        let end = self.length + field.len();
        self.bytes[self.length..end].copy_from_slice(field);
        self.length = end;
    }

    fn put_announced(&mut self, ticket: &Ticket) {
        let Announced {
            position,
            admission,
            first,
            rise,
        } = ticket.announced;
        for number in [
            position,
            admission.map(|at| at.0),
            first.map(|first| first.at.0),
            first.map(|first| first.admission.0),
        ] {
            self.put(&number.map_or(0, NonZeroU32::get).to_le_bytes());
        }
        let code = rise.and_then(|rise| RISES.iter().position(|known| *known == rise));
        let code = code.map_or(0, |code| code + 1);
        self.put(&[u8::try_from(code).unwrap_or(0)]);
    }

    fn put_loss(&mut self, loss: Loss) {
        let (kind, ended_at, last_request_at) = match loss {
            Loss::Session {
                ended_at,
                was_idle: true,
            } => (loss_kind::IDLE_SESSION, ended_at, Timestamp::ZERO),
            Loss::Session { ended_at, .. } => (loss_kind::FIXED_SESSION, ended_at, Timestamp::ZERO),
            Loss::Position {
                last_request_at,
                ended_at,
            } => (loss_kind::POSITION, ended_at, last_request_at),
            Loss::Turn {
                ended_at,
                is_near_front: true,
            } => (loss_kind::TURN_NEAR_FRONT, ended_at, Timestamp::ZERO),
            Loss::Turn { ended_at, .. } => (loss_kind::TURN, ended_at, Timestamp::ZERO),
            Loss::Revoked => (loss_kind::REVOKED, Timestamp::ZERO, Timestamp::ZERO),
        };
        self.put(&[kind]);
        self.put(&ended_at.0.to_le_bytes());
        self.put(&last_request_at.0.to_le_bytes());
    }
}

/// Kinds of a loss. The times are those of the loss.
mod loss_kind {
    pub(super) const IDLE_SESSION: u8 = 0;
    pub(super) const FIXED_SESSION: u8 = 1;
    pub(super) const POSITION: u8 = 2;
    pub(super) const TURN_NEAR_FRONT: u8 = 3;
    pub(super) const TURN: u8 = 4;
    pub(super) const REVOKED: u8 = 5;
}

/// Reasons of a rise, by their code less one.
const RISES: [Rise; 3] = [Rise::LimitLowered, Rise::Slower, Rise::EarlierVisitors];

struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], NoTicket> {
        let (field, rest) = self.rest.split_first_chunk().ok_or(NoTicket)?;
        self.rest = rest;
        Ok(*field)
    }

    fn u8(&mut self) -> Result<u8, NoTicket> {
        self.take::<1>().map(|[byte]| byte)
    }

    fn u16(&mut self) -> Result<u16, NoTicket> {
        self.take().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, NoTicket> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, NoTicket> {
        self.take().map(u64::from_le_bytes)
    }

    fn announced(&mut self) -> Result<Announced, NoTicket> {
        let mut number = || self.u32().map(NonZeroU32::new);
        let (position, admission) = (number()?, number()?.map(AfterArrival));
        let first = number()?.map(AfterArrival).zip(number()?.map(AfterArrival));
        let rise = match self.u8()? {
            0 => None,
            code => Some(*RISES.get(usize::from(code) - 1).ok_or(NoTicket)?),
        };
        Ok(Announced {
            position,
            admission,
            first: first.map(|(at, admission)| Promise { at, admission }),
            rise,
        })
    }

    fn loss(&mut self) -> Result<Loss, NoTicket> {
        let kind = self.u8()?;
        let ended_at = Timestamp(self.u64()?);
        let last_request_at = Timestamp(self.u64()?);
        match kind {
            loss_kind::IDLE_SESSION | loss_kind::FIXED_SESSION => Ok(Loss::Session {
                ended_at,
                was_idle: kind == loss_kind::IDLE_SESSION,
            }),
            loss_kind::POSITION => Ok(Loss::Position {
                last_request_at,
                ended_at,
            }),
            loss_kind::TURN_NEAR_FRONT | loss_kind::TURN => Ok(Loss::Turn {
                ended_at,
                is_near_front: kind == loss_kind::TURN_NEAR_FRONT,
            }),
            loss_kind::REVOKED => Ok(Loss::Revoked),
            _ => Err(NoTicket),
        }
    }

    fn seats(&mut self) -> Result<Seats, NoTicket> {
        let count = self.u8()?;
        let mut seats = Seats::default();
        for _ in 0..count {
            let seat = Seat {
                data_center: DataCenterId(self.u32()?),
                ends_at: Timestamp(self.u64()?),
                epoch: Epoch(self.u32()?),
            };
            if seats.of(seat.data_center).is_some() {
                return Err(NoTicket);
            }
            seats.put(seat);
        }
        if seats.iter().count() == usize::from(count) {
            Ok(seats)
        } else {
            Err(NoTicket)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(counted_until: Option<Timestamp>) -> Ticket {
        Ticket {
            visitor: VisitorId([7; 16]),
            bucket: Timestamp(1_694_432_754_000),
            last_check_in_at: Timestamp(1_694_432_755_300),
            accepted_at: None,
            first_seat: None,
            has_missed_turn: false,
            counted_until,
            announced: Announced::default(),
            unseen_loss: None,
            seats: Seats::default(),
        }
    }

    fn read_back(ticket: &Ticket) -> Ticket {
        let (bytes, length) = write(DeploymentId(1), ticket);
        read(&bytes[..length]).expect("it was just written").1
    }

    #[test]
    fn a_ticket_says_until_when_its_visitor_is_counted() {
        let counted = waiting(Some(Timestamp(1_694_432_832_500)));
        assert_eq!(read_back(&counted), counted);
        let absurd = waiting(Some(Timestamp::NEVER));
        let longest = Timestamp(1_694_432_755_000 + 65_535 * 500);
        assert_eq!(read_back(&absurd).counted_until, Some(longest));
        let over = waiting(Some(Timestamp(1_694_432_755_000)));
        assert_eq!(read_back(&over).counted_until, None);
    }

    #[test]
    fn a_ticket_has_the_announcement_to_its_visitor() {
        let number = |n| NonZeroU32::new(n).unwrap();
        let after = |secs| AfterArrival(number(secs));
        let announced = Announced {
            position: Some(number(413)),
            admission: Some(after(1_000)),
            first: Some(Promise {
                at: after(6),
                admission: after(u32::MAX),
            }),
            rise: Some(Rise::Slower),
        };
        let parts = [
            announced,
            Announced {
                position: None,
                ..announced
            },
            Announced {
                admission: None,
                rise: Some(Rise::EarlierVisitors),
                ..announced
            },
            Announced {
                first: None,
                rise: Some(Rise::LimitLowered),
                ..announced
            },
        ];
        for announced in parts {
            let ticket = Ticket {
                announced,
                ..waiting(None)
            };
            assert_eq!(read_back(&ticket), ticket);
        }
    }

    #[test]
    fn a_ticket_says_whether_its_seat_is_held_for_a_turn() {
        let kinds = [
            FirstSeat::Newcomer,
            FirstSeat::Turn,
            FirstSeat::ExtendedTurn,
        ];
        for first_seat in kinds.map(Some).into_iter().chain([None]) {
            for has_missed_turn in [true, false] {
                let ticket = Ticket {
                    first_seat,
                    has_missed_turn,
                    ..waiting(None)
                };
                assert_eq!(read_back(&ticket), ticket);
            }
        }
        let (mut bytes, length) = write(DeploymentId(1), &waiting(None));
        for flags in [FLAG_TURN | FLAG_NEWCOMER, 64, 128] {
            bytes[49] = flags;
            assert_eq!(read(&bytes[..length]), Err(NoTicket), "{flags}");
        }
    }

    #[test]
    fn a_ticket_carries_a_loss_to_the_next_page() {
        let ended_at = Timestamp(1_694_432_700_123);
        let session = |was_idle| Loss::Session { ended_at, was_idle };
        let turn = |is_near_front| Loss::Turn {
            ended_at,
            is_near_front,
        };
        let position = Loss::Position {
            last_request_at: Timestamp(1_694_432_400_123),
            ended_at,
        };
        let both = [true, false];
        let losses = both.map(session).into_iter().chain(both.map(turn));
        for loss in losses.chain([position, Loss::Revoked]) {
            let ticket = Ticket {
                unseen_loss: Some(loss),
                ..waiting(None)
            };
            assert_eq!(read_back(&ticket), ticket);
        }
        let (mut bytes, length) = write(
            DeploymentId(1),
            &Ticket {
                unseen_loss: Some(Loss::Revoked),
                ..waiting(None)
            },
        );
        bytes[FIXED_BYTES - 1] = 6;
        assert_eq!(read(&bytes[..length]), Err(NoTicket), "an unknown kind");
    }

    #[test]
    fn an_unknown_reason_of_a_rise_is_no_ticket() {
        let ticket = Ticket {
            announced: Announced {
                position: Some(NonZeroU32::MIN),
                ..Announced::default()
            },
            ..waiting(None)
        };
        let (mut bytes, length) = write(DeploymentId(1), &ticket);
        bytes[length - 2] = 4;
        assert_eq!(read(&bytes[..length]), Err(NoTicket));
    }

    #[test]
    fn a_ticket_of_the_previous_version_keeps_its_position_and_is_not_counted() {
        let ticket = waiting(None);
        let (bytes, length) = write(DeploymentId(1), &ticket);
        let mut before = bytes[..length].to_vec();
        before[0] = VERSION_BEFORE;
        before.drain(50..52);
        assert_eq!(read(&before), Ok((DeploymentId(1), ticket)));
    }
}
