//! Which requests are not even looked at?
//!
//! Everything between hyper's parser and the layers: one `Host`, one kind of framing, sizes, a
//! method that a proxy can pass on. What comes out has the extensions [`Peer`] and [`Client`], a
//! path as its target, no header that only this gateway may send, and a body that ends at its
//! limit. Rooms and tickets are not known here.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anteroom_config::SizeLimits;
use futures_util::future::Either;
use http::header::{CONNECTION, CONTENT_LENGTH, HOST, UPGRADE};
use http::request::Parts;
use http::uri::{PathAndQuery, Scheme};
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri};
use hyper::body::Incoming;
use tower::util::Oneshot;

use super::ConnectionHold;
use crate::body::Body;
use crate::error_page::{self, Format};
use crate::forwarded::{self, Client, Peer, TrustedProxies};
use crate::proxy::hop;
use crate::status::Refusal;
use crate::waiting::push;

/// What every request is checked against.
#[derive(Debug)]
pub struct Intake {
    trusted: TrustedProxies,
    headers_max: usize,
    body_bytes_max: u64,
    body_idle: Duration,
}

impl Intake {
    /// Checks after the config.
    #[must_use]
    pub const fn new(sizes: &SizeLimits, body_idle: Duration, trusted: TrustedProxies) -> Self {
        Self {
            trusted,
            headers_max: sizes.request_headers,
            body_bytes_max: sizes.request_body_bytes,
            body_idle,
        }
    }

    /// Checks a request's head and adds [`Peer`] and [`Client`].
    ///
    /// # Errors
    ///
    /// The [`Refusal`] to answer with. The connection should be closed with it: what follows on it
    /// may not be what its sender thinks it is.
    pub fn check(&self, head: &mut Parts, peer: SocketAddr) -> Result<(), Refusal> {
        if head.headers.len() > self.headers_max {
            return Err(Refusal::TooManyHeaders);
        }
        if head.method == Method::CONNECT || head.method == Method::TRACE {
            return Err(Refusal::NotImplemented);
        }
        if hop::has_foreign_coding(&head.headers) {
            return Err(Refusal::NotImplemented);
        }
        if self.is_too_long(&head.headers)? {
            return Err(Refusal::TooLarge);
        }
        let host = host_of(head)?;
        forwarded::strip_own(&mut head.headers);
        let client = Client::of(peer, host, &head.headers, &self.trusted);
        head.extensions.insert(Peer(peer));
        head.extensions.insert(client);
        Ok(())
    }

    fn is_too_long(&self, headers: &HeaderMap) -> Result<bool, Refusal> {
        let Some(length) = headers.get(CONTENT_LENGTH) else {
            return Ok(false);
        };
        let length = length
            .to_str()
            .ok()
            .and_then(|length| length.trim().parse().ok());
        let length: u64 = length.ok_or(Refusal::BadRequest)?;
        Ok(self.body_bytes_max > 0 && length > self.body_bytes_max)
    }
}

/// The one host that a request is for; makes the target a path.
///
/// RFC 9112, section 3.2: exactly one `Host`, and the authority of an absolute target wins over it.
fn host_of(head: &mut Parts) -> Result<HeaderValue, Refusal> {
    let mut lines = head.headers.get_all(HOST).iter();
    let (Some(host), None) = (lines.next(), lines.next()) else {
        return Err(Refusal::BadRequest);
    };
    let mut host = host.clone();
    if let Some(authority) = head.uri.authority() {
        let is_http = |scheme: &Scheme| *scheme == Scheme::HTTP || *scheme == Scheme::HTTPS;
        if !head.uri.scheme().is_some_and(is_http) {
            return Err(Refusal::BadRequest);
        }
        host = HeaderValue::from_str(authority.as_str()).map_err(|_| Refusal::BadRequest)?;
        head.headers.insert(HOST, host.clone());
        let target = head.uri.path_and_query().cloned();
        head.uri = Uri::from(target.unwrap_or_else(|| PathAndQuery::from_static("/")));
    }
    if is_host(host.as_bytes()) {
        Ok(host)
    } else {
        Err(Refusal::BadRequest)
    }
}

/// A name or address, perhaps with a port. Narrower than the RFC, which lets in `%` and quotes
/// that no host on the Internet has.
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

/// A service behind the checks, for one connection.
pub(super) struct Checked<S> {
    intake: Arc<Intake>,
    peer: SocketAddr,
    hold: ConnectionHold,
    inner: S,
}

impl<S> Checked<S> {
    pub(super) const fn new(
        intake: Arc<Intake>,
        peer: SocketAddr,
        hold: ConnectionHold,
        inner: S,
    ) -> Self {
        Self {
            intake,
            peer,
            hold,
            inner,
        }
    }
}

impl<S> hyper::service::Service<Request<Incoming>> for Checked<S>
where
    S: tower::Service<Request<Body>, Response = Response<Body>, Error = Infallible> + Clone,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Either<Ready<Result<Response<Body>, Infallible>>, Oneshot<S, Request<Body>>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let (mut head, body) = request.into_parts();
        if let Err(refusal) = self.intake.check(&mut head, self.peer) {
            let format = Format::asked_for(&head.headers);
            let mut response = error_page::answer(refusal, format);
            response
                .headers_mut()
                .insert(CONNECTION, HeaderValue::from_static("close"));
            return Either::Left(ready(Ok(response)));
        }
        if head.headers.contains_key(UPGRADE) || head.uri.path() == push::PATH {
            head.extensions.insert(self.hold.clone());
        }
        let body = Body::incoming(body, self.intake.body_idle).limited(self.intake.body_bytes_max);
        let request = Request::from_parts(head, body);
        Either::Right(Oneshot::new(self.inner.clone(), request))
    }
}

#[cfg(test)]
mod tests;
