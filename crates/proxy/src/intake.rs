//! Checks of every request before the layers see it.
//!
//! One `Host`, one kind of framing, sizes, and a method that a proxy can forward. A request that
//! passes has a [`RequestContext`], a path as its target, no header that only this gateway may
//! send, and a body with a size limit. Rooms and tickets are not known here.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::net::SocketAddr;
use std::sync::Arc;

use crate::downstream::observer::TurnedAway;
use crate::downstream::{Arrival, Handler};
use anteroom_config::SizeLimits;
use futures_util::future::Either;
use http::header::{CONNECTION, CONTENT_LENGTH, COOKIE, HOST, UPGRADE};
use http::request::Parts;
use http::uri::{PathAndQuery, Scheme};
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri, Version};
use tower::util::Oneshot;

use crate::body::Body;
use crate::error_page;
use crate::fast_path::{DecideAtOnce, FastPath, Never};
use crate::forwarded::{self, Client, TrustedProxies};
use crate::loops;
use crate::request_context::RequestContext;
use crate::reverse_proxy::hop;
use crate::status::RequestError;

/// Checks of every request.
#[derive(Debug)]
pub struct Intake {
    trusted: TrustedProxies,
    headers_max: usize,
    uri_bytes_max: usize,
    body_bytes_max: u64,
    body_bytes_per_second_min: u64,
}

impl Intake {
    /// Creates the checks by the config.
    #[must_use]
    pub fn new(sizes: &SizeLimits, trusted: TrustedProxies) -> Self {
        Self {
            trusted,
            headers_max: sizes.request_headers,
            uri_bytes_max: sizes.request_uri_bytes,
            body_bytes_max: sizes.request_body_bytes,
            body_bytes_per_second_min: sizes.body_bytes_per_second_min,
        }
    }

    pub(crate) const fn trusted(&self) -> &TrustedProxies {
        &self.trusted
    }

    pub(crate) const fn headers_max(&self) -> usize {
        self.headers_max
    }

    pub(crate) const fn target_bytes_max(&self) -> usize {
        self.uri_bytes_max
    }

    /// Returns the most bytes of a body.
    pub(crate) fn body_bytes_max(&self) -> usize {
        match self.body_bytes_max {
            0 => usize::MAX,
            bytes => usize::try_from(bytes).unwrap_or(usize::MAX),
        }
    }

    /// Checks a request's head and finds out its client.
    ///
    /// # Errors
    ///
    /// [`RequestError`] for the response. The connection should be closed after it: its next bytes
    /// may not be what the sender thinks.
    pub fn check(
        &self,
        head: &mut Parts,
        peer: SocketAddr,
        connection: forwarded::Scheme,
    ) -> Result<Client, RequestError> {
        if head.headers.len() > self.headers_max {
            return Err(RequestError::TooManyHeaders);
        }
        if head.method == Method::CONNECT || head.method == Method::TRACE {
            return Err(RequestError::NotImplemented);
        }
        if hop::has_foreign_coding(&head.headers) {
            return Err(RequestError::NotImplemented);
        }
        if self.is_too_long(&head.headers)? {
            return Err(RequestError::TooLarge);
        }
        let host = if head.version == Version::HTTP_2 {
            join_cookies(&mut head.headers);
            authority_of(head)?
        } else {
            host_of(head)?
        };
        if !is_host(host.as_bytes()) {
            return Err(RequestError::BadRequest);
        }
        let target = head.uri.path_and_query().map_or("", PathAndQuery::as_str);
        if target.len() > self.uri_bytes_max {
            return Err(RequestError::UriTooLong);
        }
        let client = Client::of(peer, connection, host, &head.headers, &self.trusted);
        let is_marked = self
            .trusted
            .strip(&mut head.headers, client.has_trusted_peer);
        if is_marked && loops::is_loop(&head.headers) {
            return Err(RequestError::LoopDetected);
        }
        Ok(client)
    }

    fn is_too_long(&self, headers: &HeaderMap) -> Result<bool, RequestError> {
        let Some(length) = headers.get(CONTENT_LENGTH) else {
            return Ok(false);
        };
        let length = length
            .to_str()
            .ok()
            .and_then(|length| length.trim().parse().ok());
        let length: u64 = length.ok_or(RequestError::BadRequest)?;
        Ok(self.body_bytes_max > 0 && length > self.body_bytes_max)
    }
}

/// Returns the host of an HTTP/1 request, and makes the target a path.
///
/// RFC 9112, section 3.2: exactly one `Host`, and the authority of an absolute target wins over it.
fn host_of(head: &mut Parts) -> Result<HeaderValue, RequestError> {
    let mut lines = head.headers.get_all(HOST).iter();
    let (Some(host), None) = (lines.next(), lines.next()) else {
        return Err(RequestError::BadRequest);
    };
    let host = host.clone();
    let Some(authority) = head.uri.authority() else {
        return Ok(host);
    };
    let host = HeaderValue::from_str(authority.as_str()).map_err(|_| RequestError::BadRequest)?;
    make_path(head)?;
    head.headers.insert(HOST, host.clone());
    Ok(host)
}

/// Returns the host of an HTTP/2 request, and makes the target a path.
///
/// RFC 9113, section 8.3.1: if both `:authority` and `Host` are present, they must be equal.
fn authority_of(head: &mut Parts) -> Result<HeaderValue, RequestError> {
    let mut lines = head.headers.get_all(HOST).iter();
    let (host, None) = (lines.next(), lines.next()) else {
        return Err(RequestError::BadRequest);
    };
    let host = match (head.uri.authority(), host) {
        (Some(authority), Some(host))
            if !authority
                .as_str()
                .as_bytes()
                .eq_ignore_ascii_case(host.as_bytes()) =>
        {
            return Err(RequestError::BadRequest);
        }
        (Some(authority), _) => HeaderValue::from_str(authority.as_str()).ok(),
        (None, host) => host.cloned(),
    };
    let host = host.ok_or(RequestError::BadRequest)?;
    if head.uri.authority().is_some() {
        make_path(head)?;
    }
    head.headers.insert(HOST, host.clone());
    Ok(host)
}

/// Reduces an absolute target to its path and query.
fn make_path(head: &mut Parts) -> Result<(), RequestError> {
    let is_http = |scheme: &Scheme| *scheme == Scheme::HTTP || *scheme == Scheme::HTTPS;
    if !head.uri.scheme().is_some_and(is_http) {
        return Err(RequestError::BadRequest);
    }
    let target = head.uri.path_and_query().cloned();
    head.uri = Uri::from(target.unwrap_or_else(|| PathAndQuery::from_static("/")));
    Ok(())
}

/// Joins the `Cookie` lines that HTTP/2 allows (RFC 9113, section 8.2.3), because readers of
/// cookies expect one line.
fn join_cookies(headers: &mut HeaderMap) {
    let mut crumbs = headers.get_all(COOKIE).iter();
    let (Some(first), Some(second)) = (crumbs.next(), crumbs.next()) else {
        return;
    };
    let mut whole = first.as_bytes().to_vec();
    for crumb in std::iter::once(second).chain(crumbs) {
        whole.extend_from_slice(b"; ");
        whole.extend_from_slice(crumb.as_bytes());
    }
    // Header values joined by visible characters are a valid value.
    if let Ok(whole) = HeaderValue::from_bytes(&whole) {
        headers.insert(COOKIE, whole);
    }
}

/// Whether the text is a host name or address, perhaps with a port. Stricter than the RFC, which
/// allows `%` and quotes that no host on the Internet has.
fn is_host(host: &[u8]) -> bool {
    let is_known =
        |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b':');
    let is_known_or_bracket = |byte: &u8| is_known(byte) || matches!(byte, b'[' | b']');
    match host {
        [] | [b':', ..] => false,
        [b'[', ..] => host.iter().all(is_known_or_bracket) && host.contains(&b']'),
        _ => host.iter().all(is_known) && host.iter().filter(|byte| **byte == b':').count() <= 1,
    }
}

/// Service behind the checks.
#[derive(Clone)]
pub struct Checked<S, D = Never> {
    intake: Arc<Intake>,
    inner: S,
    decider: Option<D>,
}

impl<S, D> Checked<S, D> {
    /// Puts the checks in front of a service. With a decider, plain requests that it lets pass take
    /// the [`fast_path`](crate::fast_path).
    pub fn new(intake: Intake, inner: S, decider: Option<D>) -> Self {
        Self {
            intake: Arc::new(intake),
            inner,
            decider,
        }
    }
}

impl<S, D> Handler for Checked<S, D>
where
    D: DecideAtOnce,
    S: tower::Service<Request<Body>, Response = Response<Body>, Error = Infallible>
        + Clone
        + Send
        + Sync
        + 'static,
    S::Future: Send,
{
    type Body = Body;
    type Decider = D;
    type Future = Either<Ready<Result<Response<Body>, Infallible>>, Oneshot<S, Request<Body>>>;

    fn is_own(response: &Response<Body>) -> bool {
        response.body().is_own()
    }

    fn fast_path(&self) -> Option<FastPath<'_, D>> {
        let decider = self.decider.as_ref()?;
        Some(FastPath {
            intake: &self.intake,
            decider,
        })
    }

    fn handle(&self, arrival: &Arrival, request: Request<Body>) -> Self::Future {
        let (mut head, body) = request.into_parts();
        let connection = if arrival.is_encrypted {
            forwarded::Scheme::Https
        } else {
            forwarded::Scheme::Http
        };
        let claim = arrival.hold.claim();
        let checked = match claim.turned_away() {
            Some(TurnedAway::Address) => Err(RequestError::TooManyConnections),
            Some(_) => Err(RequestError::Unavailable),
            None => self.intake.check(&mut head, arrival.peer, connection),
        };
        let client = match checked {
            Ok(client) => client,
            Err(refusal) => return Either::Left(ready(Ok(error_response(&head, refusal)))),
        };
        let is_upgrade = head.headers.contains_key(UPGRADE);
        head.extensions.insert(RequestContext {
            connection: Some(claim),
            hold: is_upgrade.then(|| arrival.hold.clone()),
            ..RequestContext::new(client)
        });
        let mut body = body.limited(self.intake.body_bytes_max);
        if head.version == Version::HTTP_2 {
            // For HTTP/1, `screened` enforces the minimum rate.
            body = body.paced(self.intake.body_bytes_per_second_min);
        }
        let request = Request::from_parts(head, body);
        Either::Right(Oneshot::new(self.inner.clone(), request))
    }
}

/// Returns the error response to a request that failed the checks.
fn error_response(head: &Parts, refusal: RequestError) -> Response<Body> {
    let mut response = error_page::error_response(&head.headers, refusal);
    // HTTP/2 has no such header, and its streams are separate anyway.
    if head.version != Version::HTTP_2 {
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(CONNECTION, close);
    }
    response
}

#[cfg(test)]
mod tests;
