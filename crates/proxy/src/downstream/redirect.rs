//! Redirect of http requests to https.

use std::convert::Infallible;
use std::future::{Ready, ready};

use bytes::Bytes;
use http::header::{CONNECTION, HOST, LOCATION};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Uri};

use crate::body::Body;
use crate::downstream::{Arrival, Handler};
use crate::fast_path::Never;

/// Default port of `https://`.
const HTTPS: u16 = 443;

/// Handler that redirects every request to https.
#[derive(Clone, Copy, Debug)]
pub struct ToHttps {
    /// Port of https on the same host.
    pub port: u16,
}

impl Handler for ToHttps {
    type Body = http_body_util::Empty<Bytes>;
    type Decider = Never;
    type Future = Ready<Result<Response<Self::Body>, Infallible>>;

    fn is_own(_: &Response<Self::Body>) -> bool {
        true
    }

    fn handle(&self, _: &Arrival, request: Request<Body>) -> Self::Future {
        let mut response = Response::new(Self::Body::new());
        let headers = response.headers_mut();
        let location = location(request.uri(), request.headers(), self.port);
        let status = match location {
            Some(location) => {
                headers.insert(LOCATION, location);
                // Not 301, so that a POST remains a POST and does not become a GET.
                StatusCode::PERMANENT_REDIRECT
            }
            None => StatusCode::BAD_REQUEST,
        };
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
        *response.status_mut() = status;
        ready(Ok(response))
    }
}

/// Returns the https URL of a request; `None` if its host is unknown.
fn location(uri: &Uri, headers: &HeaderMap, port: u16) -> Option<HeaderValue> {
    let mut hosts = headers.get_all(HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        return None;
    };
    let host = host.to_str().ok()?;
    let name = match host.rsplit_once(':') {
        // The last colon of an IPv6 address is inside brackets.
        Some((name, port)) if !port.ends_with(']') => name,
        _ => host,
    };
    let is_known = |byte: u8| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b':' | b'[' | b']')
    };
    if name.is_empty() || !name.bytes().all(is_known) {
        return None;
    }
    let target = uri.path_and_query().map_or("/", |target| target.as_str());
    if !target.starts_with('/') {
        return None;
    }
    let location = if port == HTTPS {
        format!("https://{name}{target}")
    } else {
        format!("https://{name}:{port}{target}")
    };
    HeaderValue::from_str(&location).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_location_is_the_same_address_by_https() {
        let check = |hosts: &[&'static str], target: &'static str, port, expected: Option<&str>| {
            let hosts = hosts
                .iter()
                .map(|host| (HOST, HeaderValue::from_static(host)));
            let mut headers = HeaderMap::new();
            hosts.for_each(|(name, host)| {
                headers.append(name, host);
            });
            let found = location(&Uri::from_static(target), &headers, port);
            let found = found.as_ref().map(|found| found.to_str().unwrap());
            assert_eq!(found, expected);
        };
        check(
            &["a.example"],
            "/x?y=%0d",
            443,
            Some("https://a.example/x?y=%0d"),
        );
        check(
            &["a.example:80"],
            "/",
            8443,
            Some("https://a.example:8443/"),
        );
        check(&["[::1]:80"], "/", 443, Some("https://[::1]/"));
        check(&["[::1]"], "/", 443, Some("https://[::1]/"));
        check(&["a"], "//b.example/x", 443, Some("https://a//b.example/x"));
        check(&["a@b"], "/", 443, None);
        check(&["a/b"], "/", 443, None);
        check(&[":80"], "/", 443, None);
        check(&["a"], "*", 443, None);
        check(&["a", "b"], "/", 443, None);
        check(&[], "/", 443, None);
    }
}
