//! What must hold for any bytes whatever; called by fuzzers and by the tests.
//!
//! The strict reader of a connection is compared with one that has all of it in memory and believes
//! every line.

use crate::screen::{Place, Screen};

/// Reads `data` as what comes by a connection.
///
/// # Panics
///
/// If the strict reader finds something else when the bytes come one by one; if it is content with
/// requests that the naive reader divides otherwise, or that are framed in two ways. Any other panic is
/// a mistake too.
pub fn screen(data: &[u8]) {
    let mut whole = Screen::new();
    let wrong = whole.look(data).err().map(|violation| violation.at);
    let mut pieces = Screen::new();
    let found = data
        .chunks(1)
        .enumerate()
        .find_map(|(at, byte)| pieces.look(byte).err().map(|violation| at + violation.at));
    assert_eq!(wrong, found, "cut into bytes it is another violation");
    assert_eq!(
        (whole.heads(), whole.place()),
        (pieces.heads(), pieces.place())
    );
    if wrong.is_none() && whole.place() == Place::Between {
        assert_eq!(naive_requests(data), Some(whole.heads()), "other requests");
    }
}

/// How many requests there are, if they end where `data` does.
fn naive_requests(mut data: &[u8]) -> Option<u64> {
    let mut requests = 0;
    loop {
        while let Some(rest) = data.strip_prefix(b"\r\n") {
            data = rest;
        }
        if data.is_empty() {
            return Some(requests);
        }
        let (head, rest) = cut(data, b"\r\n\r\n")?;
        requests += 1;
        data = rest;
        let head = String::from_utf8_lossy(head).to_ascii_lowercase();
        let values = |name: &str| -> Vec<String> {
            let fields = head.split(['\r', '\n']).skip(1);
            let fields = fields.filter_map(|line| line.split_once(':'));
            let named = fields.filter(|(found, _)| found.trim() == name);
            named.map(|(_, value)| value.trim().to_owned()).collect()
        };
        let (codings, lengths) = (values("transfer-encoding"), values("content-length"));
        assert!(codings.len() + lengths.len() <= 1, "framed in two ways");
        if let Some(coding) = codings.first() {
            assert_eq!(coding, "chunked");
            data = naive_chunks(data)?;
        } else if let Some(length) = lengths.first() {
            data = data.get(length.parse::<usize>().ok()?..)?;
        }
    }
}

/// What comes after a body in chunks.
fn naive_chunks(mut data: &[u8]) -> Option<&[u8]> {
    loop {
        let (line, rest) = cut(data, b"\r\n")?;
        let line = std::str::from_utf8(line).ok()?;
        let size = line.split(';').next().unwrap_or_default().trim();
        let size = usize::from_str_radix(size, 16).ok()?;
        data = rest;
        if size == 0 {
            loop {
                let (line, rest) = cut(data, b"\r\n")?;
                data = rest;
                if line.is_empty() {
                    return Some(data);
                }
            }
        }
        data = data.get(size..)?.strip_prefix(b"\r\n")?;
    }
}

fn cut<'a>(data: &'a [u8], at: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let found = memchr::memmem::find(data, at)?;
    Some((&data[..found], &data[found + at.len()..]))
}
