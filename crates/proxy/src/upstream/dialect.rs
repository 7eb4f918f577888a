//! Conversion of requests between HTTP/1.1 and HTTP/2, and copies of them.

use http::header::{CONNECTION, HOST, TE};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderValue, Request, Uri, Version};

/// Converts a request to HTTP/2. RFC 9113, section 8.3.1: `:authority` replaces `Host`, and
/// hop-by-hop headers are removed.
pub(crate) fn as_http2<B>(mut request: Request<B>, scheme: Scheme) -> Request<B> {
    if request.version() == Version::HTTP_2 {
        return request;
    }
    let host = request.headers_mut().remove(HOST);
    request.headers_mut().remove(CONNECTION);
    let authority = host.and_then(|host| Authority::try_from(host.as_bytes()).ok());
    let mut parts = http::uri::Parts::default();
    parts.path_and_query = Some(target_of(&request));
    parts.scheme = Some(scheme);
    parts.authority = authority;
    if let Ok(uri) = Uri::from_parts(parts) {
        *request.uri_mut() = uri;
    }
    *request.version_mut() = Version::HTTP_2;
    request
}

/// Converts a request to HTTP/1.1.
pub(crate) fn as_http1<B>(mut request: Request<B>) -> Request<B> {
    if request.version() == Version::HTTP_2 {
        if let Some(authority) = request.uri().authority()
            && let Ok(host) = HeaderValue::from_str(authority.as_str())
        {
            request.headers_mut().insert(HOST, host);
        }
        *request.uri_mut() = Uri::from(target_of(&request));
    }
    if request.headers().contains_key(TE) && !request.headers().contains_key(CONNECTION) {
        // RFC 9110, section 10.1.4: a sender of TE names it in Connection.
        let te = HeaderValue::from_static("te");
        request.headers_mut().insert(CONNECTION, te);
    }
    *request.version_mut() = Version::HTTP_11;
    request
}

fn target_of<B>(request: &Request<B>) -> PathAndQuery {
    let target = request.uri().path_and_query().cloned();
    target.unwrap_or_else(|| PathAndQuery::from_static("/"))
}

/// Copies a request without body and extensions.
pub(crate) fn copy<B: Default>(request: &Request<B>) -> Request<B> {
    let mut copy = Request::new(B::default());
    copy.method_mut().clone_from(request.method());
    copy.uri_mut().clone_from(request.uri());
    copy.headers_mut().clone_from(request.headers());
    copy
}
