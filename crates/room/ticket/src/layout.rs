//! Layout of a ticket before it is sealed: fixed fields, little-endian.
//!
//! Version 1: version (1), deployment (8), visitor (16), bucket (8), last check-in (8), accepted at
//! (8, 0 = waiting), flags (1), number of seats (1), and for each seat data center (4), end (8),
//! epoch (4).

use anteroom_room::id::{DataCenterId, DeploymentId, Epoch, VisitorId};
use anteroom_room::ticket::{SEATS_MAX, Seat, Seats, Ticket};
use anteroom_room::time::Timestamp;

const VERSION: u8 = 1;
const FLAG_PROVISIONAL: u8 = 1;
const SEAT_BYTES: usize = 16;
const FIXED_BYTES: usize = 1 + 8 + 16 + 8 + 8 + 8 + 1 + 1;

/// Most bytes of a ticket before sealing.
pub(crate) const CONTENT_BYTES_MAX: usize = FIXED_BYTES + SEATS_MAX * SEAT_BYTES;

/// Error of bytes that are no ticket of a known version.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct NoTicket;

/// Writes a ticket; returns the buffer and the number of its bytes in use.
pub(crate) fn write(deployment: DeploymentId, ticket: &Ticket) -> ([u8; CONTENT_BYTES_MAX], usize) {
    let mut writer = Writer {
        bytes: [0; CONTENT_BYTES_MAX],
        length: 0,
    };
    let flags = if ticket.is_provisional {
        FLAG_PROVISIONAL
    } else {
        0
    };
    writer.put(&[VERSION]);
    writer.put(&deployment.0.to_le_bytes());
    writer.put(&ticket.visitor.0);
    writer.put(&ticket.bucket.0.to_le_bytes());
    writer.put(&ticket.last_check_in_at.0.to_le_bytes());
    writer.put(&ticket.accepted_at.map_or(0, |at| at.0).to_le_bytes());
    writer.put(&[flags]);
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

/// Reads a ticket and the deployment that it belongs to.
pub(crate) fn read(bytes: &[u8]) -> Result<(DeploymentId, Ticket), NoTicket> {
    let mut reader = Reader { rest: bytes };
    if reader.u8()? != VERSION {
        return Err(NoTicket);
    }
    let deployment = DeploymentId(reader.u64()?);
    let visitor = VisitorId(reader.take()?);
    let bucket = Timestamp(reader.u64()?);
    let last_check_in_at = Timestamp(reader.u64()?);
    let accepted_at = Some(Timestamp(reader.u64()?)).filter(|at| at.0 != 0);
    let flags = reader.u8()?;
    if flags & !FLAG_PROVISIONAL != 0 {
        return Err(NoTicket);
    }
    let seats = reader.seats()?;
    if !reader.rest.is_empty() {
        return Err(NoTicket);
    }
    let ticket = Ticket {
        visitor,
        bucket,
        last_check_in_at,
        accepted_at,
        is_provisional: flags & FLAG_PROVISIONAL != 0,
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
}

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

    fn u32(&mut self) -> Result<u32, NoTicket> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, NoTicket> {
        self.take().map(u64::from_le_bytes)
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
