//! Middleware that rejects requests before they reach a handler: long paths, unexpected bodies,
//! pages of other sites, foreign host names.
//!
//! Host names are checked in [`crate::hosts`]. [`crate::serve()`] bounds the size and duration of a
//! request. The listen address decides who may connect.

use std::sync::Arc;

use axum::body::HttpBody as _;
use axum::extract::Request;
use axum::http::Method;
use axum::http::header::{CACHE_CONTROL, HeaderName, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use crate::api_error::ApiError;
use crate::client_v4;
use crate::hosts::{AllowedHosts, is_own_origin};

/// Maximum bytes of path and query: a path of three ids, and a query with a room's name.
const TARGET_BYTES_MAX: usize = 512;

/// Header with which a browser states the relation of the requesting page to this site.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Paths that supervisors may request by any host name. The responses contain nothing but yes or
/// no.
const OF_ANY_HOST: [&str; 2] = ["/livez", "/readyz"];

/// Rejects requests that no operator sends, and marks every response as uncacheable.
pub(crate) async fn guard(request: Request, next: Next) -> Response {
    match rejection(&request) {
        Some(error) => refused(request.uri().path(), error),
        None => marked(next.run(request).await),
    }
}

/// Returns the response to a request that reaches no handler, as clients of its path expect it.
pub(crate) fn refused(path: &str, error: ApiError) -> Response {
    marked(if path.starts_with(client_v4::PREFIX) {
        client_v4::refused(error)
    } else {
        error.into_response()
    })
}

/// Marks a response as uncacheable, and as no other type than it says.
fn marked(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

fn rejection(request: &Request) -> Option<ApiError> {
    let target = request.uri().path_and_query();
    if target.is_some_and(|target| target.as_str().len() > TARGET_BYTES_MAX) {
        return Some(ApiError::PathTooLong);
    }
    let hosts = request.extensions().get::<Arc<AllowedHosts>>();
    let is_of_any_host = OF_ANY_HOST.contains(&request.uri().path());
    if !is_of_any_host && hosts.is_some_and(|hosts| !hosts.allow(request.uri(), request.headers()))
    {
        return Some(ApiError::Host);
    }
    if !is_own_origin(request.uri(), request.headers()) {
        return Some(ApiError::CrossSite);
    }
    let mut sites = request.headers().get_all(SEC_FETCH_SITE).iter();
    if sites.any(|site| site.as_bytes().eq_ignore_ascii_case(b"cross-site")) {
        return Some(ApiError::CrossSite);
    }
    // Handlers of these requests bound the body where they read it.
    let method = request.method();
    let may_have_body = [Method::POST, Method::PUT, Method::PATCH].contains(method);
    (!may_have_body && !request.body().is_end_stream()).then_some(ApiError::Body)
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn check(path: &str, headers: &[(&str, &str)], body: &'static str, expected: Option<ApiError>) {
        let mut request = Request::builder().uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = if body.is_empty() {
            Body::empty()
        } else {
            Body::from(body)
        };
        let request = request.body(body).unwrap();
        assert_eq!(rejection(&request), expected, "{path} {headers:?}");
    }

    #[test]
    fn only_pages_of_other_sites_are_rejected() {
        let of = |site| [("sec-fetch-site", site)];
        check("/", &[], "", None);
        check("/", &of("none"), "", None);
        check("/", &of("same-origin"), "", None);
        check("/", &of("cross-site"), "", Some(ApiError::CrossSite));
        check("/", &of("Cross-Site"), "", Some(ApiError::CrossSite));
        let twice = [("sec-fetch-site", "none"), ("sec-fetch-site", "cross-site")];
        check("/", &twice, "", Some(ApiError::CrossSite));
    }

    #[test]
    fn the_longest_path_passes() {
        let name = "n".repeat(64);
        check(&format!("/api/v1/rooms/{name}/state"), &[], "", None);
        let long = format!("/?{}", "q".repeat(TARGET_BYTES_MAX - 1));
        check(&long, &[], "", Some(ApiError::PathTooLong));
        check(&long[..TARGET_BYTES_MAX], &[], "", None);
    }

    #[test]
    fn an_unexpected_body_is_rejected() {
        check("/", &[], "hello", Some(ApiError::Body));
    }
}
