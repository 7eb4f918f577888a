//! Which requests are not even looked at? Long paths, bodies of questions, pages of other sites.
//!
//! Host names that are not ours are not either: see [`crate::hosts`].
//!
//! How much of a request is read, and for how long, is bounded in [`crate::serve()`]. Who may
//! connect is up to the address that is listened on.

use std::sync::Arc;

use axum::body::HttpBody as _;
use axum::extract::Request;
use axum::http::Method;
use axum::http::header::{CACHE_CONTROL, HeaderName, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use crate::hosts::{AllowedHosts, is_own_origin};
use crate::refusal::Refusal;

/// Most bytes of path and query: twice the longest path that there is, a state of a room whose
/// name is as long as names get.
const TARGET_BYTES_MAX: usize = 160;

/// Browsers say with it whose page asks; everybody else leaves it out.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// What supervisors ask, by whatever name they have for this process. The answers say nothing but
/// yes and no.
const OF_ANY_HOST: [&str; 2] = ["/livez", "/readyz"];

/// Refuses what nobody with a reason to be here sends, and marks every answer as one of a moment.
pub(crate) async fn guard(request: Request, next: Next) -> Response {
    let mut response = match refusal(&request) {
        Some(refusal) => refusal.into_response(),
        None => next.run(request).await,
    };
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

fn refusal(request: &Request) -> Option<Refusal> {
    let target = request.uri().path_and_query();
    if target.is_some_and(|target| target.as_str().len() > TARGET_BYTES_MAX) {
        return Some(Refusal::PathTooLong);
    }
    let hosts = request.extensions().get::<Arc<AllowedHosts>>();
    let is_of_any_host = OF_ANY_HOST.contains(&request.uri().path());
    if !is_of_any_host && hosts.is_some_and(|hosts| !hosts.allow(request.uri(), request.headers()))
    {
        return Some(Refusal::Host);
    }
    if !is_own_origin(request.uri(), request.headers()) {
        return Some(Refusal::CrossSite);
    }
    let mut sites = request.headers().get_all(SEC_FETCH_SITE).iter();
    if sites.any(|site| site.as_bytes().eq_ignore_ascii_case(b"cross-site")) {
        return Some(Refusal::CrossSite);
    }
    // What changes something says so in a body, which is bounded where it is read.
    let may_have_body = request.method() == Method::POST;
    (!may_have_body && !request.body().is_end_stream()).then_some(Refusal::Body)
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn check(path: &str, headers: &[(&str, &str)], body: &'static str, expected: Option<Refusal>) {
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
        assert_eq!(refusal(&request), expected, "{path} {headers:?}");
    }

    #[test]
    fn only_pages_of_other_sites_are_sent_away() {
        let of = |site| [("sec-fetch-site", site)];
        check("/", &[], "", None);
        check("/", &of("none"), "", None);
        check("/", &of("same-origin"), "", None);
        check("/", &of("cross-site"), "", Some(Refusal::CrossSite));
        check("/", &of("Cross-Site"), "", Some(Refusal::CrossSite));
        let twice = [("sec-fetch-site", "none"), ("sec-fetch-site", "cross-site")];
        check("/", &twice, "", Some(Refusal::CrossSite));
    }

    #[test]
    fn the_longest_path_that_there_is_passes() {
        let name = "n".repeat(64);
        check(&format!("/rooms/{name}/state"), &[], "", None);
        let long = format!("/?{}", "q".repeat(TARGET_BYTES_MAX - 1));
        check(&long, &[], "", Some(Refusal::PathTooLong));
        check(&long[..TARGET_BYTES_MAX], &[], "", None);
    }

    #[test]
    fn a_body_is_refused() {
        check("/", &[], "hello", Some(Refusal::Body));
    }
}
