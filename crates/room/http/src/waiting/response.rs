//! Which status, headers and body does a request without a slot get?
//!
//! Never a redirect, never anything that a cache may keep. `Set-Cookie` is added by the caller.

use std::fmt::Write as _;
use std::sync::LazyLock;

use crate::page::{CustomPage, Links, WaitingView};
use aws_lc_rs::digest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_LANGUAGE, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE,
    HeaderMap, HeaderValue, REFERRER_POLICY, REFRESH, RETRY_AFTER, VARY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderName, Response, StatusCode};

use super::json::{JSON, retry_after, to_json};
use super::kind::RequestKind;
use super::{language_form, position_endpoint};

/// The `Content-Security-Policy` of our page: its own style and script by digest, questions and its
/// form to its own site, nothing else. Framing is left open: a guarded site may be embedded by its
/// owner.
static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let mut policy = "default-src 'none'; base-uri 'none'; form-action 'self'; \
                      connect-src 'self'; img-src data:"
        .to_owned();
    let sources = [
        ("style-src", &*crate::page::STYLE),
        ("script-src", &*crate::page::SCRIPT),
    ];
    for (directive, source) in sources {
        let digest = digest::digest(&digest::SHA256, source.as_bytes());
        let digest = STANDARD.encode(digest.as_ref());
        write!(policy, "; {directive} 'sha256-{digest}'").expect("writing to a String cannot fail");
    }
    HeaderValue::try_from(policy).expect("base64 and directives are visible ASCII")
});

/// Longest way back that a page names. A longer one would take it over its size; then the browser
/// is asked where it came from.
const NAMED_BYTES_MAX: usize = 256;

/// Every header that decides what an answer is.
const VARIES: &str = "Accept, Accept-Language, Sec-Fetch-Dest, Sec-Fetch-Mode, Cookie";

/// As many headers as an answer has, and some more.
const HEADERS: usize = 16;

/// How a waiting visitor is to be answered.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Answer {
    /// What the sender can make use of.
    pub kind: RequestKind,
    /// Whether the request was a HEAD: same head, no body.
    pub is_head: bool,
    /// The room's `queueing_status_code`.
    pub queueing_status: StatusCode,
    /// The room's `non_navigation_status_code`.
    pub non_navigation_status: StatusCode,
}

/// What a page looks like.
#[derive(Clone, Copy, Debug)]
pub struct Look<'a> {
    /// The operator's own page; `None` = ours.
    pub template: Option<&'a CustomPage>,
    /// Path and query that were asked for.
    pub target: &'a str,
}

/// Makes what all answers share. Otherwise the first visitor of a rush would wait for it.
pub(crate) fn prepare() {
    LazyLock::force(&POLICY);
    crate::page::prepare();
}

/// Builds the answer to a request without a slot.
#[must_use]
pub fn respond(view: &WaitingView<'_>, answer: Answer, look: Look<'_>) -> Response<Bytes> {
    let is_page = answer.kind.is_page();
    let is_after_post = answer.kind == RequestKind::PageAfterPost;
    let (body, content_type) = if is_page {
        let html = HeaderValue::from_static("text/html; charset=utf-8");
        let page = Bytes::from(page(view, look, is_after_post));
        (page, Some(html))
    } else if answer.kind == RequestKind::Asset {
        (Bytes::new(), None)
    } else {
        (to_json(&view.body()), Some(JSON))
    };
    let length = body.len();
    let mut response = Response::new(if answer.is_head { Bytes::new() } else { body });
    *response.status_mut() = if answer.kind.has_queueing_status() {
        answer.queueing_status
    } else {
        answer.non_navigation_status
    };
    // What follows here and what the caller adds, without growing in between.
    *response.headers_mut() = HeaderMap::with_capacity(HEADERS);
    let headers = response.headers_mut();
    if let Some(content_type) = content_type {
        headers.insert(CONTENT_TYPE, content_type);
    }
    if answer.is_head {
        headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(VARY, HeaderValue::from_static(VARIES));
    headers.insert(RETRY_AFTER, HeaderValue::from(retry_after(view)));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    const ROBOTS: HeaderName = HeaderName::from_static("x-robots-tag");
    headers.insert(ROBOTS, HeaderValue::from_static("noindex"));
    if is_page {
        mark_page(headers, view, look, is_after_post);
    }
    response
}

fn page(view: &WaitingView<'_>, look: Look<'_>, is_after_post: bool) -> String {
    let place = position_endpoint::url(view.room, view.language);
    let mut back = language_form::way_back(look.target);
    if back.len() > NAMED_BYTES_MAX {
        back = "".into();
    }
    let links = Links {
        place: &place,
        language: language_form::PATH,
        back: &back,
    };
    match look.template {
        Some(template) => template.html(view, links, is_after_post),
        None => crate::page::html(view, links, is_after_post),
    }
}

/// What a page of the operator's may load and run is the operator's business, and it has nothing
/// that asks again by itself, as in the product that such templates come from: the header does it.
fn mark_page(headers: &mut HeaderMap, view: &WaitingView<'_>, look: Look<'_>, is_after_post: bool) {
    let tag = HeaderValue::from_static(view.language.tag());
    headers.insert(CONTENT_LANGUAGE, tag);
    if look.template.is_none() {
        headers.insert(CONTENT_SECURITY_POLICY, POLICY.clone());
    } else if let Some(seconds) = crate::page::reload_secs(view, is_after_post) {
        headers.insert(REFRESH, HeaderValue::from(seconds));
    }
}

#[cfg(test)]
mod tests;
