//! Rows as bytes.
//!
//! A row is the number of its form, then fields: number, length, content. A reader skips fields
//! that it does not know, and a list that is longer than it knows. So a new figure needs no new
//! form: it gets a field, or a place at the end of a list. A row of another form is an error, and
//! never misread.

use anteroom_room::histogram::{BUCKETS, Histogram};
use anteroom_room::time::{Minute, Timestamp};

use crate::figures::{Level, NodeFigures, RoomFigures};

/// Most bytes of a row. A store keeps tens of thousands for each room.
pub const ROW_BYTES_MAX: usize = 512;

/// Form that this program writes and reads.
const FORM: u8 = 1;

const COUNTS: u64 = 1;
const ANNOUNCED: u64 = 2;
const STATUSES: u64 = 3;
const ROOM: u64 = 4;
const WAITS: u64 = 5;
const INSIDE: u64 = 6;
const INVERSIONS: u64 = 7;
const LATENCY: u64 = 8;

/// Figures of one room at one node over a minute, or over fifteen.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Row {
    /// First minute.
    pub begins: Minute,
    /// Minutes: 1 or 15.
    pub minutes: u64,
    /// Process that counted.
    pub node: u64,
    /// Figures of the node.
    pub figures: NodeFigures,
    /// Figures of the room.
    pub room: RoomFigures,
}

/// Error of reading a row.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RowError {
    /// The row was written by a newer version of this program.
    #[error("history row of form {found}, this program reads form {FORM}")]
    Form {
        /// Form of the row.
        found: u8,
    },
    /// The bytes are no row.
    #[error("history row is damaged")]
    Damaged,
}

impl Row {
    /// Adds the figures of another row of the same node, for the length of both.
    pub fn join(&mut self, other: &Self) {
        self.figures.add(&other.figures);
        self.room.join(&other.room);
    }

    /// Encodes the figures in at most [`ROW_BYTES_MAX`] bytes; the time and the node are the name
    /// of the row in its store. If the histograms are too large, their counts are rounded.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![FORM];
        let figures = &self.figures;
        let announced = &figures.announced;
        put_list(
            &mut bytes,
            COUNTS,
            &[
                figures.arrivals,
                figures.admitted,
                figures.admitted_outside_limits,
                figures.rejected,
                figures.revoked,
            ],
        );
        put_list(
            &mut bytes,
            ANNOUNCED,
            &[
                announced.right,
                announced.early,
                announced.late,
                zigzag(announced.left_before),
                zigzag(announced.left_after),
                zigzag(announced.left_unannounced),
            ],
        );
        put_list(&mut bytes, STATUSES, &figures.origin.statuses);
        put_list(&mut bytes, ROOM, &room_list(&self.room));
        let mut histograms = [
            (WAITS, &figures.waits),
            (INSIDE, &figures.inside),
            (INVERSIONS, &figures.inversions),
            (LATENCY, &figures.origin.latency),
        ]
        .map(|(field, histogram)| (field, histogram, 0_u32, histogram_bytes(histogram, 0)));
        let of = |histograms: &[(u64, &Histogram, u32, Vec<u8>); 4]| -> usize {
            // A field's number and length take at most three bytes.
            histograms.iter().map(|(.., bytes)| bytes.len() + 3).sum()
        };
        while bytes.len() + of(&histograms) > ROW_BYTES_MAX {
            let longest = histograms.iter_mut().max_by_key(|(.., bytes)| bytes.len());
            let Some((_, histogram, shift, bytes)) = longest else {
                break;
            };
            *shift += 1;
            *bytes = histogram_bytes(histogram, *shift);
        }
        for (field, _, _, content) in &histograms {
            if !content.is_empty() {
                put_field(&mut bytes, *field, content);
            }
        }
        bytes
    }

    /// Decodes figures.
    ///
    /// # Errors
    ///
    /// [`RowError`] if the row has another form, or the bytes are none.
    pub fn decode(bytes: &[u8]) -> Result<(NodeFigures, RoomFigures), RowError> {
        let mut bytes = match bytes.split_first() {
            Some((&FORM, rest)) => Bytes(rest),
            Some((&found, _)) if found > FORM => return Err(RowError::Form { found }),
            _ => return Err(RowError::Damaged),
        };
        let (mut figures, mut room) = (NodeFigures::default(), RoomFigures::default());
        while !bytes.0.is_empty() {
            let field = bytes.number().ok_or(RowError::Damaged)?;
            let content = bytes.content().ok_or(RowError::Damaged)?;
            read_field(field, content, &mut figures, &mut room).ok_or(RowError::Damaged)?;
        }
        Ok((figures, room))
    }
}

fn read_field(
    field: u64,
    mut content: Bytes<'_>,
    figures: &mut NodeFigures,
    room: &mut RoomFigures,
) -> Option<()> {
    let announced = &mut figures.announced;
    match field {
        COUNTS => {
            let counts = [
                &mut figures.arrivals,
                &mut figures.admitted,
                &mut figures.admitted_outside_limits,
                &mut figures.rejected,
                &mut figures.revoked,
            ];
            for count in counts {
                *count = content.next()?;
            }
        }
        ANNOUNCED => {
            for count in [
                &mut announced.right,
                &mut announced.early,
                &mut announced.late,
            ] {
                *count = content.next()?;
            }
            let left = [
                &mut announced.left_before,
                &mut announced.left_after,
                &mut announced.left_unannounced,
            ];
            for count in left {
                *count = signed(content.next()?);
            }
        }
        STATUSES => {
            for count in &mut figures.origin.statuses {
                *count = content.next()?;
            }
        }
        ROOM => *room = read_room(content)?,
        WAITS => figures.waits = read_histogram(content)?,
        INSIDE => figures.inside = read_histogram(content)?,
        INVERSIONS => figures.inversions = read_histogram(content)?,
        LATENCY => figures.origin.latency = read_histogram(content)?,
        // A figure of a later version.
        _ => {}
    }
    Some(())
}

fn room_list(room: &RoomFigures) -> [u64; 14] {
    let levels = [
        room.active,
        room.waiting,
        room.total_active_users,
        room.new_users_per_minute,
    ];
    let mut list = [0; 14];
    list[0] = room.samples;
    list[1] = room.as_of.0;
    for (at, level) in levels.into_iter().enumerate() {
        let place = 2 + 3 * at;
        list[place] = level.min.into();
        list[place + 1] = level.max.into();
        list[place + 2] = level.last.into();
    }
    list
}

fn read_room(mut content: Bytes<'_>) -> Option<RoomFigures> {
    let (samples, as_of) = (content.next()?, Timestamp(content.next()?));
    let mut level = || -> Option<Level> {
        let mut value = || u32::try_from(content.next()?).ok();
        Some(Level {
            min: value()?,
            max: value()?,
            last: value()?,
        })
    };
    Some(RoomFigures {
        samples,
        as_of,
        active: level()?,
        waiting: level()?,
        total_active_users: level()?,
        new_users_per_minute: level()?,
    })
}

/// Encodes a histogram: by how many bits its counts are shifted, its first bucket, then the counts.
/// A count of 0 is followed by the number of further ones. Nothing if all are 0.
fn histogram_bytes(histogram: &Histogram, shift: u32) -> Vec<u8> {
    let counts = histogram.counts().map(|count| rounded(count, shift));
    let is_set = |count: &i64| *count != 0;
    let (Some(first), Some(last)) = (
        counts.iter().position(is_set),
        counts.iter().rposition(is_set),
    ) else {
        return Vec::new();
    };
    let mut bytes = Vec::new();
    put_number(&mut bytes, shift.into());
    put_number(&mut bytes, first as u64);
    let mut rest = &counts[first..=last];
    while let Some((count, after)) = rest.split_first() {
        put_number(&mut bytes, zigzag(*count));
        rest = after;
        if *count == 0 {
            let more = rest.iter().take_while(|count| **count == 0).count();
            put_number(&mut bytes, more as u64);
            rest = &rest[more..];
        }
    }
    bytes
}

fn read_histogram(mut content: Bytes<'_>) -> Option<Histogram> {
    let mut histogram = Histogram::default();
    let shift = u32::try_from(content.next()?).ok().filter(|by| *by < 64)?;
    let mut bucket = usize::try_from(content.next()?).ok()?;
    while !content.0.is_empty() {
        let count = signed(content.number()?);
        if count == 0 {
            let more = usize::try_from(content.number()?).ok()?;
            bucket = bucket.checked_add(more)?;
        }
        if bucket >= BUCKETS {
            return None;
        }
        histogram.change(bucket, count.wrapping_shl(shift));
        bucket += 1;
    }
    Some(histogram)
}

/// Divides by a power of two and rounds to the nearest.
fn rounded(count: i64, shift: u32) -> i64 {
    if shift == 0 {
        return count;
    }
    if shift >= 63 {
        return 0;
    }
    // Sums of i128 do not overflow, and the quotient fits again.
    let half = 1_i128 << (shift - 1);
    i64::try_from((i128::from(count) + half) >> shift).unwrap_or(0)
}

fn put_list(bytes: &mut Vec<u8>, field: u64, values: &[u64]) {
    if values.iter().all(|value| *value == 0) {
        return;
    }
    // Zeros at the end are what a reader takes for missing ones.
    let used = values.iter().rposition(|value| *value != 0).unwrap_or(0);
    let mut content = Vec::new();
    for value in &values[..=used] {
        put_number(&mut content, *value);
    }
    put_field(bytes, field, &content);
}

fn put_field(bytes: &mut Vec<u8>, field: u64, content: &[u8]) {
    put_number(bytes, field);
    put_number(bytes, content.len() as u64);
    bytes.extend_from_slice(content);
}

/// Writes a number, seven bits in a byte, lowest first.
fn put_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(u8::try_from(number & 0x7f).unwrap_or(0) | 0x80);
        number >>= 7;
    }
    bytes.push(u8::try_from(number).unwrap_or(0));
}

/// Maps small numbers of either sign to small ones.
const fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)).cast_unsigned()
}

const fn signed(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -((number & 1).cast_signed())
}

/// Bytes that are still to be read.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    /// Reads a number; `None` if there is none.
    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for place in 0..10 {
            let (&byte, rest) = self.0.split_first()?;
            self.0 = rest;
            let bits = u64::from(byte & 0x7f);
            if place == 9 && bits > 1 {
                return None;
            }
            number |= bits << (7 * place);
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    /// Reads the next number of a list; 0 after its end.
    fn next(&mut self) -> Option<u64> {
        if self.0.is_empty() {
            return Some(0);
        }
        self.number()
    }

    /// Reads a length and as many bytes.
    fn content(&mut self) -> Option<Self> {
        let length = usize::try_from(self.number()?).ok()?;
        let (content, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(Bytes(content))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anteroom_room::time::DurationMs;

    fn row() -> Row {
        let mut row = Row::default();
        row.figures.arrivals = 7;
        row.figures.announced.left_after = -1;
        row.figures.waits.note(DurationMs(5_000));
        row
    }

    #[test]
    fn an_empty_row_is_its_form() {
        assert_eq!(Row::default().encode(), [FORM]);
        assert_eq!(Row::decode(&[FORM]), Ok(Default::default()));
    }

    #[test]
    fn a_row_of_a_newer_form_is_not_misread() {
        let mut bytes = row().encode();
        bytes[0] = FORM + 1;
        assert_eq!(Row::decode(&bytes), Err(RowError::Form { found: FORM + 1 }));
        assert_eq!(Row::decode(&[]), Err(RowError::Damaged));
        assert_eq!(Row::decode(&[0]), Err(RowError::Damaged));
    }

    #[test]
    fn figures_of_a_later_version_are_skipped() {
        let mut bytes = row().encode();
        put_field(&mut bytes, 99, b"anything");
        assert_eq!(Row::decode(&bytes), Ok((row().figures, row().room)));
        let mut bytes = vec![FORM];
        put_list(&mut bytes, COUNTS, &[1, 2, 3, 4, 5, 6]);
        let figures = Row::decode(&bytes).unwrap().0;
        assert_eq!((figures.arrivals, figures.revoked), (1, 5));
    }

    #[test]
    fn half_a_row_is_damaged() {
        let bytes = row().encode();
        assert_eq!(
            Row::decode(&bytes[..bytes.len() - 1]),
            Err(RowError::Damaged)
        );
        for content in [
            &[64, 0][..],
            &[0, 200, 2, 2],
            &[0, 103, 0, 1],
            &[0, 0, 0x80],
        ] {
            let mut bytes = vec![FORM];
            put_field(&mut bytes, WAITS, content);
            assert_eq!(Row::decode(&bytes), Err(RowError::Damaged), "{content:?}");
        }
    }

    #[test]
    fn numbers_of_either_sign_come_back() {
        for number in [0, 1, -1, 63, -64, i64::MAX, i64::MIN] {
            let mut bytes = Vec::new();
            put_number(&mut bytes, zigzag(number));
            assert_eq!(Bytes(&bytes).number().map(signed), Some(number));
        }
        assert_eq!(Bytes(&[0xff; 10]).number(), None, "more than 64 bits");
    }
}
