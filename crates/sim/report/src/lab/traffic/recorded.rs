//! Recorded requests: a CSV file with a time in each line and, if there are several, a client.
//!
//! A time is a number of seconds, with up to six decimals, or a moment such as
//! `2022-02-24T07:10:23.5Z`. All times of a file have one form. The first line may name the
//! columns, the first of them with `time` or `date` in it. Lines may be in any order, because some
//! logs are written when requests end.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use anteroom_limit::time::TimestampUs;
use csv::{ReaderBuilder, StringRecord};
use jiff::Timestamp;

use super::{REQUESTS_MAX, Request, Traffic};

/// Longest file: lines of 100 bytes, for the most requests.
const FILE_BYTES_MAX: u64 = 200_000_000;
/// Longest name of a client.
const NAME_BYTES_MAX: usize = 256;
/// Byte order mark that some programs write.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// Last moment, in seconds: the year 9999. Windows are added to it, and must not overflow.
const SECS_MAX: u64 = 253_402_300_799;

/// Error of reading recorded traffic.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    /// The file cannot be read.
    #[error("{}: cannot read the file", file.display())]
    Open {
        /// File that cannot be read.
        file: PathBuf,
        /// Underlying error.
        source: io::Error,
    },
    /// The file is longer than 200 MB.
    #[error("{}: longer than {FILE_BYTES_MAX} bytes; cut a part out of it", file.display())]
    FileTooLong {
        /// File that is too long.
        file: PathBuf,
    },
    /// A line is wrong.
    #[error("{}:{line}: {mistake}", file.display())]
    Line {
        /// File with the line.
        file: PathBuf,
        /// Number of the line, from 1.
        line: u64,
        /// Mistake in the line.
        mistake: Mistake,
    },
    /// The file has no requests.
    #[error("{}: no line with a time", file.display())]
    Empty {
        /// File without requests.
        file: PathBuf,
    },
}

/// Mistake in a line.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub(crate) enum Mistake {
    /// The time cannot be read.
    #[error(
        "\"{found}\" is not a time; write seconds such as 23.5, or a moment such as \
         2022-02-24T07:10:23.5Z, until the year 9999; a first line may name the columns, such as \
         time,client"
    )]
    NoTime {
        /// Text as found.
        found: String,
    },
    /// The line has more than two fields, or none.
    #[error("{found} fields; write a time, or a time, a comma and a client")]
    Fields {
        /// Number of fields.
        found: usize,
    },
    /// The file has seconds and moments: one of them would be decades away.
    #[error("seconds and moments in one file; write all times in one of both ways")]
    Mixed,
    /// A quote does not end in its line.
    #[error(
        "a quote that is not closed; a name with a quote in it is written \"like \"\"this\"\"\""
    )]
    OpenQuote,
    /// A client's name is too long.
    #[error("a client of {bytes} bytes; at most {NAME_BYTES_MAX}")]
    NameTooLong {
        /// Length of the name.
        bytes: usize,
    },
    /// The request is one too many.
    #[error("more than {REQUESTS_MAX} requests; cut a part out of the file")]
    TooManyRequests,
}

/// Reads a file of requests; an error has the first wrong line.
pub(crate) fn read(file: &Path) -> Result<Traffic, ReadError> {
    let open = |source| ReadError::Open {
        file: file.to_owned(),
        source,
    };
    let mut bytes = Vec::new();
    let opened = File::open(file).map_err(open)?;
    let mut bounded = opened.take(FILE_BYTES_MAX + 1);
    bounded.read_to_end(&mut bytes).map_err(open)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(ReadError::FileTooLong {
            file: file.to_owned(),
        });
    }
    let traffic = parse(&bytes).map_err(|(line, mistake)| ReadError::Line {
        file: file.to_owned(),
        line,
        mistake,
    })?;
    if traffic.requests.is_empty() {
        return Err(ReadError::Empty {
            file: file.to_owned(),
        });
    }
    Ok(Traffic {
        about: format!("recorded in {}", file.display()),
        ..traffic
    })
}

/// Reads requests; an error has the wrong line and its mistake.
fn parse(bytes: &[u8]) -> Result<Traffic, (u64, Mistake)> {
    let mut clients: BTreeMap<String, u32> = BTreeMap::new();
    let mut requests = Vec::new();
    let mut kind = None;
    let mut is_first = true;
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    for (line, bytes) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let fields = fields(text).map_err(|mistake| (line, mistake))?;
        let is_heading = is_first && is_heading(&fields);
        is_first = false;
        if is_heading {
            continue;
        }
        let (at, name) = read_line(fields, &mut kind).map_err(|mistake| (line, mistake))?;
        if requests.len() == REQUESTS_MAX {
            return Err((line, Mistake::TooManyRequests));
        }
        // There are at most as many clients as requests.
        let next = u32::try_from(clients.len()).unwrap_or(u32::MAX);
        let client = *clients.entry(name).or_insert(next);
        requests.push(Request { at, client });
    }
    let mut names = vec![String::new(); clients.len()];
    for (name, client) in clients {
        names[client as usize] = name;
    }
    Ok(Traffic {
        names,
        ..Traffic::new(String::new(), requests)
    })
}

/// Splits a line into fields. Each line is read separately, because an unclosed quote would take
/// all further lines for one name.
fn fields(line: &str) -> Result<Vec<String>, Mistake> {
    let quotes = line.bytes().filter(|byte| *byte == b'"').count();
    if quotes == 0 {
        // A CSV reader is much slower than this, and few lines need it.
        return Ok(line
            .split(',')
            .map(|field| field.trim().to_owned())
            .collect());
    }
    if !quotes.is_multiple_of(2) {
        return Err(Mistake::OpenQuote);
    }
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        .trim(csv::Trim::All)
        .from_reader(line.as_bytes());
    let mut record = StringRecord::new();
    // Reading UTF-8 from memory cannot fail.
    reader.read_record(&mut record).unwrap_or(false);
    Ok(record.iter().map(str::to_owned).collect())
}

/// Whether the first line names the columns: its first field has `time` or `date` in it, which no
/// time has.
fn is_heading(fields: &[String]) -> bool {
    let first = fields.first().map(|field| field.to_ascii_lowercase());
    first.is_some_and(|first| first.contains("time") || first.contains("date"))
}

/// Form of times in a file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    Seconds,
    Moments,
}

fn read_line(
    fields: Vec<String>,
    kind: &mut Option<Kind>,
) -> Result<(TimestampUs, String), Mistake> {
    let found = fields.len();
    let mut fields = fields.into_iter();
    let (Some(time), name, 1..=2) = (fields.next(), fields.next().unwrap_or_default(), found)
    else {
        return Err(Mistake::Fields { found });
    };
    if name.len() > NAME_BYTES_MAX {
        return Err(Mistake::NameTooLong { bytes: name.len() });
    }
    let in_seconds = seconds(&time).map(|at| (Kind::Seconds, at));
    let read = in_seconds.or_else(|| Some((Kind::Moments, moment(&time)?)));
    let (is, at) = read.ok_or_else(|| Mistake::NoTime {
        found: time.chars().take(40).flat_map(char::escape_debug).collect(),
    })?;
    if *kind.get_or_insert(is) != is {
        return Err(Mistake::Mixed);
    }
    Ok((at, name))
}

/// Parses `23`, `23.5` or `1645686623.000001` without floats, which are wrong in the sixth decimal.
fn seconds(text: &str) -> Option<TimestampUs> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_digits(whole) || !is_digits(decimals) || decimals.len() > 6 {
        return None;
    }
    let whole: u64 = whole.parse().ok().filter(|secs| *secs <= SECS_MAX)?;
    let micros: u64 = format!("{decimals:0<6}").parse().ok()?;
    Some(TimestampUs(whole * 1_000_000 + micros))
}

fn moment(text: &str) -> Option<TimestampUs> {
    let moment: Timestamp = text.parse().ok()?;
    u64::try_from(moment.as_microsecond()).ok().map(TimestampUs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(u64, u32)]) {
        let traffic = parse(text.as_bytes()).unwrap();
        let found: Vec<(u64, u32)> = traffic
            .requests
            .iter()
            .map(|request| (request.at.0, request.client))
            .collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn times_are_seconds_or_moments_and_clients_are_numbered_as_they_come() {
        check("1\n2.5\n", &[(1_000_000, 0), (2_500_000, 0)]);
        check(
            "time,client\n# a comment\n2,b\n1.000001,a\n3,b\n",
            &[(1_000_001, 1), (2_000_000, 0), (3_000_000, 0)],
        );
        check(
            "2022-02-24T07:00:00Z,a\n2022-02-24T08:00:01+01:00,a\n",
            &[
                (super::super::BEGIN.0, 0),
                (super::super::BEGIN.0 + 1_000_000, 0),
            ],
        );
        check("0,\"a, b\"", &[(0, 0)]);
        check(
            "\u{feff}Request_Time;x\r\n0 , a\r\n\r\n1,a",
            &[(0, 0), (1_000_000, 0)],
        );
        assert_eq!(parse(b"1,\"a \"\"b\"\"\"").unwrap().names, ["a \"b\""]);
        assert_eq!(parse(b"1,\xff").unwrap().names, ["\u{fffd}"]);
        assert_eq!(parse(b"1,x\n2,y").unwrap().names, ["x", "y"]);
    }

    #[test]
    fn a_mistake_is_reported_with_its_line() {
        let no_time = |found: &str| Mistake::NoTime {
            found: found.to_owned(),
        };
        for (text, line, mistake) in [
            ("time\n1\nx\n", 3, no_time("x")),
            ("1\n-1\n", 2, no_time("-1")),
            ("1.0000001\n", 1, no_time("1.0000001")),
            ("1e3\n", 1, no_time("1e3")),
            ("253402300800", 1, no_time("253402300800")),
            ("1969-12-31T23:59:59Z", 1, no_time("1969-12-31T23:59:59Z")),
            ("1,a,b\n", 1, Mistake::Fields { found: 3 }),
            (
                "# a comment\n\n1\n2,\"a\",b\n",
                4,
                Mistake::Fields { found: 3 },
            ),
            ("noon\n1\n", 1, no_time("noon")),
            ("time\ntime\n", 2, no_time("time")),
            ("1,\"a\n2,a\n3,a\n", 1, Mistake::OpenQuote),
            ("1,\"a\n2,\"b\n3,c\n", 1, Mistake::OpenQuote),
            ("1,a\n2,a\"", 2, Mistake::OpenQuote),
            ("time\n1\n2022-02-24T07:00:00Z\n", 3, Mistake::Mixed),
            ("2022-02-24T07:00:00Z\n1645686000\n", 2, Mistake::Mixed),
        ] {
            assert_eq!(parse(text.as_bytes()), Err((line, mistake)), "{text}");
        }
        let long = format!("1\n1,{}", "x".repeat(257));
        let error = parse(long.as_bytes()).unwrap_err();
        assert_eq!(error, (2, Mistake::NameTooLong { bytes: 257 }));
    }

    #[test]
    fn an_error_has_the_file_name_and_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("requests.csv");
        let message = |text: &str| {
            std::fs::write(&file, text).unwrap();
            read(&file).unwrap_err().to_string()
        };
        assert!(message("1\nnoon\n").contains("requests.csv:2: \"noon\" is not a time"));
        assert!(message("").contains("no line with a time"));
        let missing = read(&folder.path().join("none.csv")).unwrap_err();
        assert!(missing.to_string().contains("none.csv: cannot read"));
    }
}
