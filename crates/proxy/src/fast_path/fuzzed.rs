//! Results of the fast path for arbitrary bytes, for [`fuzz`](crate::fuzz).

use std::net::{IpAddr, Ipv4Addr};

use http::{HeaderMap, HeaderValue, Version};
use ipnet::IpNet;

use super::own_response::{end_head, write_head};
use super::request_head::{HeadEnd, HeadLimits, HeadSearch, RequestHead, lines_about, no_lines};
use super::response_body::{BodyReader, Progress};
use super::response_head::{self, Form, NoHead, Reading};
use crate::forwarded::{self, Client, Scheme, TrustedProxies};
use crate::header_view::HeaderView;
use crate::reverse_proxy::hop;
use crate::{cookies, loops};

const PEER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

/// Returns the trusted proxies, of which the peer may be one.
fn proxies(is_trusted: bool) -> TrustedProxies {
    TrustedProxies::new(is_trusted.then(|| IpNet::from(PEER)))
}

fn client<'a>(
    host: HeaderValue,
    headers: impl Into<HeaderView<'a>>,
    trusted: &TrustedProxies,
) -> Client {
    Client::of((PEER, 1_000).into(), Scheme::Http, host, headers, trusted)
}

/// Returns the length of the request at the start of the bytes, and what is sent on; `None` if it
/// is not mine, or its body is not there.
pub(crate) fn sent_on(bytes: &[u8], is_trusted: bool) -> Option<(usize, Vec<u8>)> {
    let HeadEnd::At(length) = HeadSearch::default().look(bytes) else {
        return None;
    };
    let mut lines = no_lines();
    let head = RequestHead::read(&bytes[..length], &mut lines, HeadLimits::NONE).ok()?;
    let host = HeaderValue::from_str(head.host).ok()?;
    let trusted = proxies(is_trusted);
    let client = client(host, head.headers(), &trusted);
    let about = lines_about(&client, head.headers());
    let mut out = Vec::new();
    head.write(&mut out, (&client, &about), &trusted);
    out.extend_from_slice(b"\r\n");
    let end = length + head.body_bytes();
    out.extend_from_slice(bytes.get(length..end)?);
    Some((end, out))
}

/// Changes the headers of a request as the layers and the proxy do.
pub(crate) fn change_as_usual(headers: &mut HeaderMap, host: HeaderValue, is_trusted: bool) {
    let trusted = proxies(is_trusted);
    let client = client(host, &*headers, &trusted);
    trusted.strip(headers, client.has_trusted_peer);
    cookies::without(headers, cookies::PREFIX);
    hop::clean_request(headers);
    forwarded::write(headers, &client);
    hop::via(headers, Version::HTTP_11);
    loops::mark(headers);
}

/// Response as a client gets it.
pub(crate) struct ToClient {
    pub(crate) head: Vec<u8>,
    /// Body as it is sent: with its chunks, if it has some.
    pub(crate) body: Vec<u8>,
    pub(crate) has_ended: bool,
}

/// Returns what a client gets of a response that arrives in pieces of so many bytes, before its
/// connection ends; `None` if its head is not passed on.
pub(crate) fn response_to_client(bytes: &[u8], is_head: bool, piece: usize) -> Option<ToClient> {
    let mut input = Vec::new();
    let mut found: Option<(ToClient, BodyReader)> = None;
    for part in bytes.chunks(piece) {
        input.extend_from_slice(part);
        if found.is_none() {
            found = read_head(&mut input, is_head)?;
        }
        let Some((response, reader)) = &mut found else {
            continue;
        };
        let read = reader.read(&input, &mut response.body);
        input.clear();
        if read != Ok(Progress::Open) {
            response.has_ended = read.is_ok();
            return found.map(|(response, _)| response);
        }
    }
    let (mut response, mut reader) = found?;
    response.has_ended = reader.end(&mut response.body).is_ok();
    Some(response)
}

/// Reads a head and removes it from the input; `None` in the result if more bytes are needed.
///
/// The result is `None` if the head is not passed on.
fn read_head(input: &mut Vec<u8>, is_head: bool) -> Option<Option<(ToClient, BodyReader)>> {
    let reading = Reading {
        is_head,
        headers_max: response_head::HEADERS_MAX,
        makes_map: false,
    };
    loop {
        match response_head::read(input, reading, Vec::new()) {
            Ok(head) => {
                input.drain(..head.length);
                let mut out = match head.form {
                    Form::Lines(lines) => lines,
                    Form::Map(mut response) => {
                        // As the rooms do it.
                        for name in ["anteroom-command", "cf-waiting-room-command"] {
                            response.headers_mut().remove(name);
                        }
                        let mut out = Vec::new();
                        write_head(&mut out, &response, is_head, head.framing);
                        out
                    }
                };
                end_head(&mut out, false);
                let response = ToClient {
                    head: out,
                    body: Vec::new(),
                    has_ended: false,
                };
                return Some(Some((response, BodyReader::new(head.framing))));
            }
            Err((NoHead::Interim(length), _)) => {
                input.drain(..length);
            }
            Err((NoHead::Later, _)) => return Some(None),
            Err((NoHead::TooLarge | NoHead::Broken, _)) => return None,
        }
    }
}
