//! What must hold for any bytes whatever; called by fuzzers and by the tests.
//!
//! The strict reader of a connection is compared with one that has all of it in memory and believes
//! every line, and with the parser that reads behind it.

use std::cell::RefCell;
use std::convert::Infallible;
use std::future::Future as _;
use std::pin::pin;
use std::task::{Context, Waker};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;

use crate::downstream::screen::{Place, Screen};

/// A request: method and target, and its body if all of it came.
type Found = (String, Option<Vec<u8>>);

/// Reads `data` as what comes by a connection.
///
/// # Panics
///
/// If the strict reader finds something else when the bytes come one by one; if it is content with
/// requests that the naive reader or the parser divides otherwise, or that are framed in two ways;
/// if the parser finds more requests in what is passed on than the strict reader. Any other panic
/// is a mistake too.
pub fn screen(data: &[u8]) {
    let mut whole = Screen::new();
    let looked = whole.look(data);
    let wrong = looked.as_ref().err().map(|violation| violation.at);
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
    // As a connection passes it on.
    let passed = match looked {
        Ok(looked) => data[..looked].to_vec(),
        Err(violation) => {
            let end: &[u8] = if violation.is_in_head {
                b"\0\r\n\r\n"
            } else {
                b"\0"
            };
            [&data[..violation.at], end].concat()
        }
    };
    let parsed = parsed_requests(&passed);
    assert!(parsed.len() as u64 <= whole.heads(), "more than were seen");
    if wrong.is_none() && whole.place() == Place::Between {
        let naive = naive_requests(data).expect("it ends where a request does");
        assert_eq!(naive.len() as u64, whole.heads(), "other requests");
        // The parser may refuse what is not a matter of framing, and ends then.
        assert_eq!(parsed, naive[..parsed.len()], "divided otherwise");
    }
}

/// The requests that hyper finds.
fn parsed_requests(data: &[u8]) -> Vec<Found> {
    let requests = RefCell::new(Vec::new());
    let service = service_fn(async |request: Request<Incoming>| {
        let (head, body) = request.into_parts();
        let at = requests.borrow().len();
        let name = format!("{} {}", head.method, head.uri);
        requests.borrow_mut().push((name, None));
        let body = body
            .collect()
            .await
            .ok()
            .map(|body| body.to_bytes().to_vec());
        requests.borrow_mut()[at].1 = body;
        Ok::<_, Infallible>(Response::new(Empty::<Bytes>::new()))
    });
    let stream = TokioIo::new(tokio::io::join(data, tokio::io::sink()));
    {
        let mut parser = http1::Builder::new();
        parser.half_close(true).header_read_timeout(None);
        let mut connection = pin!(parser.serve_connection(stream, service));
        // Nothing has to be waited for; it gives others a turn now and then.
        let mut cx = Context::from_waker(Waker::noop());
        let turns = data.len() + 16;
        let ended = (0..turns).any(|_| connection.as_mut().poll(&mut cx).is_ready());
        assert!(ended, "it waits");
    }
    requests.into_inner()
}

/// The requests, if they end where `data` does.
fn naive_requests(mut data: &[u8]) -> Option<Vec<Found>> {
    let mut requests = Vec::new();
    loop {
        while let Some(rest) = data.strip_prefix(b"\r\n") {
            data = rest;
        }
        if data.is_empty() {
            return Some(requests);
        }
        let (head, rest) = cut(data, b"\r\n\r\n")?;
        data = rest;
        let head = String::from_utf8_lossy(head);
        let name = head.lines().next()?.rsplit_once(" HTTP/")?.0.to_owned();
        let head = head.to_ascii_lowercase();
        let values = |name: &str| -> Vec<String> {
            let fields = head.split(['\r', '\n']).skip(1);
            let fields = fields.filter_map(|line| line.split_once(':'));
            let named = fields.filter(|(found, _)| found.trim() == name);
            named.map(|(_, value)| value.trim().to_owned()).collect()
        };
        let (codings, lengths) = (values("transfer-encoding"), values("content-length"));
        assert!(codings.len() + lengths.len() <= 1, "framed in two ways");
        let body;
        if let Some(coding) = codings.first() {
            assert_eq!(coding, "chunked");
            (body, data) = naive_chunks(data)?;
        } else if let Some(length) = lengths.first() {
            let length = length.parse().ok()?;
            let (taken, rest) = data.split_at_checked(length)?;
            (body, data) = (taken.to_vec(), rest);
        } else {
            body = Vec::new();
        }
        requests.push((name, Some(body)));
    }
}

/// A body in chunks, and what comes after it.
fn naive_chunks(mut data: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut body = Vec::new();
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
                    return Some((body, data));
                }
            }
        }
        let (chunk, rest) = data.split_at_checked(size)?;
        body.extend_from_slice(chunk);
        data = rest.strip_prefix(b"\r\n")?;
    }
}

fn cut<'a>(data: &'a [u8], at: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let found = memchr::memmem::find(data, at)?;
    Some((&data[..found], &data[found + at.len()..]))
}
