//! How is a request said in HTTP/1.1, how in HTTP/2, and how once more?

use http::header::{CONNECTION, HOST, TE};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderValue, Request, Uri, Version};

/// RFC 9113, section 8.3.1: what `Host` says is said by `:authority`; nothing concerns the
/// connection alone.
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

/// Takes back what was done for HTTP/2, and says what HTTP/1.1 wants to hear.
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
        // RFC 9110, section 10.1.4: whoever sends TE names it in Connection.
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

/// The same request once more, without body and extensions.
pub(crate) fn copy<B: Default>(request: &Request<B>) -> Request<B> {
    let mut copy = Request::new(B::default());
    copy.method_mut().clone_from(request.method());
    copy.uri_mut().clone_from(request.uri());
    copy.headers_mut().clone_from(request.headers());
    copy
}
