//! Status, headers and body of the response to a request without a slot.
//!
//! It is never a redirect, and no cache may store it. The caller adds `Set-Cookie`.

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

/// `Content-Security-Policy` of our page: its own style and script by digest, requests and its form
/// to its own site, nothing else. Framing is allowed: the owner may embed a guarded site.
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

/// Longest address of the page in its own form, in bytes. A longer one would make the page too
/// large; `Referer` replaces it.
const BACK_BYTES_MAX: usize = 256;

/// Request headers on which the response depends.
const VARIES: &str = "Accept, Accept-Language, Sec-Fetch-Dest, Sec-Fetch-Mode, Cookie";

/// Capacity for all headers of a response.
const HEADERS: usize = 16;

/// Kind and status codes of the response to a waiting visitor.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Answer {
    /// Kind of the request.
    pub kind: RequestKind,
    /// Whether the request was a HEAD: same head, no body.
    pub is_head: bool,
    /// `queueing_status_code` of the room.
    pub queueing_status: StatusCode,
    /// `non_navigation_status_code` of the room.
    pub non_navigation_status: StatusCode,
}

/// Template and target of a page.
#[derive(Clone, Copy, Debug)]
pub struct Look<'a> {
    /// Page of the operator; `None` = ours.
    pub template: Option<&'a CustomPage>,
    /// Path and query of the request.
    pub target: &'a str,
}

/// Builds what all responses share. Otherwise the first visitor of a rush would wait for it.
pub(crate) fn prepare() {
    LazyLock::force(&POLICY);
    crate::page::prepare();
}

/// Builds the response to a request without a slot.
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
    // Room for the headers that follow and those that the caller adds, in one allocation.
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
    let position = position_endpoint::url(view.room, view.language);
    let mut back = language_form::safe_target(look.target);
    if back.len() > BACK_BYTES_MAX {
        back = "".into();
    }
    let links = Links {
        position: &position,
        language: language_form::PATH,
        back: &back,
    };
    match look.template {
        Some(template) => template.html(view, links, is_after_post),
        None => crate::page::html(view, links, is_after_post),
    }
}

/// Adds the headers of a page. An operator's page has no policy, because the operator decides what
/// it loads. It has no script of ours that polls, so it reloads by a header.
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
