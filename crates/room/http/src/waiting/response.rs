//! Status, headers and body of the response to a request without a slot.
//!
//! It is never a redirect, and no cache may store it. The caller adds `Set-Cookie`.

use std::fmt::Write as _;
use std::sync::LazyLock;

use crate::page::{CustomPage, Links, Page, Paths, WaitingView};
use anteroom_config::PageConfig;
use aws_lc_rs::digest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LENGTH, CONTENT_SECURITY_POLICY,
    CONTENT_TYPE, HeaderMap, HeaderValue, REFERRER_POLICY, REFRESH, RETRY_AFTER, VARY,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderName, Response, StatusCode};

use super::json::{JSON, retry_after, to_json};
use super::kind::RequestKind;
use super::{cookies_page, gzip, language_form, leave, position_endpoint};

/// `Content-Security-Policy` of our page: its own style and script by digest, requests and its form
/// to its own site, pictures in the page, nothing else. Framing is allowed: the owner may embed a
/// guarded site.
static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| page_policy(&[]));

fn page_policy(styles: &[&str]) -> HeaderValue {
    let mut all = vec![&**crate::page::STYLE];
    all.extend(styles);
    let script = [&**crate::page::SCRIPT, &**crate::page::TURN_SCRIPT];
    policy(&[("style-src", &all), ("script-src", &script)])
}

/// Returns a policy that allows these sources by digest, and requests to the own site.
pub(super) fn policy(sources: &[(&str, &[&str])]) -> HeaderValue {
    let mut policy = "default-src 'none'; base-uri 'none'; form-action 'self'; \
                      connect-src 'self'; img-src data:"
        .to_owned();
    for (directive, texts) in sources {
        write!(policy, "; {directive}").expect("writing to a String cannot fail");
        for text in *texts {
            let digest = digest::digest(&digest::SHA256, text.as_bytes());
            let digest = STANDARD.encode(digest.as_ref());
            write!(policy, " 'sha256-{digest}'").expect("writing to a String cannot fail");
        }
    }
    HeaderValue::try_from(policy).expect("base64 and directives are visible ASCII")
}

/// Look of a room's page that its policy has to allow.
#[derive(Clone, Debug)]
pub struct Brand {
    policy: HeaderValue,
}

impl Brand {
    /// Returns the look of these settings; `None` if they need nothing of the policy.
    #[must_use]
    pub fn of(page: &PageConfig) -> Option<Self> {
        let style = crate::page::accent_style(page.accent.as_ref()?);
        let policy = page_policy(&[&style]);
        Some(Self { policy })
    }
}

/// Longest address of the page in its own links, in bytes. A longer one would make the page too
/// large; `Referer` replaces it.
const BACK_BYTES_MAX: usize = 256;

/// Paths that pages name.
pub(crate) const PATHS: Paths = Paths {
    position: position_endpoint::PATH,
    language: language_form::PATH,
    cookies: cookies_page::PATH,
    leave: leave::PATH,
};

/// Request headers on which the response depends.
const VARIES: &str =
    "Accept, Accept-Encoding, Accept-Language, Sec-Fetch-Dest, Sec-Fetch-Mode, Cookie";

/// Capacity for all headers of a response.
const HEADERS: usize = 16;

/// Kind and status codes of the response to a waiting visitor.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Answer {
    /// Kind of the request.
    pub kind: RequestKind,
    /// Whether the request was a HEAD: same head, no body.
    pub is_head: bool,
    /// Whether the client reads gzip.
    pub has_gzip: bool,
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
    /// Path and query of the visitor's entry after a form; empty = `target`.
    pub entry: &'a str,
    /// Look of the room's page, if it has one.
    pub brand: Option<&'a Brand>,
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
    let (body, is_packed, content_type) = if is_page {
        let html = HeaderValue::from_static("text/html; charset=utf-8");
        let page = page(view, look, is_after_post);
        let packed = answer.has_gzip.then(|| gzip::compress(&page)).flatten();
        let is_packed = packed.is_some();
        let body = packed.unwrap_or_else(|| page.into_bytes().into());
        (body, is_packed, Some(html))
    } else if answer.kind == RequestKind::Asset {
        (Bytes::new(), false, None)
    } else {
        (to_json(&view.body()), false, Some(JSON))
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
    if is_packed {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
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

fn page<'t>(view: &WaitingView<'_>, look: Look<'t>, is_after_post: bool) -> Page<'t> {
    let entry = match look.entry {
        "" => "".into(),
        entry => language_form::safe_target(entry),
    };
    // After a form, a way back to its address would be a GET that nobody wants.
    let back = if entry.is_empty() {
        look.target
    } else {
        look.entry
    };
    let mut back = language_form::safe_target(back);
    if back.len() > BACK_BYTES_MAX {
        back = "".into();
    }
    let query = language_form::query_of(view.room, view.language, &back);
    let links = Links {
        paths: &PATHS,
        query: &query,
        back: &back,
        entry: &entry,
    };
    match look.template {
        Some(template) => template.page(view, links, is_after_post),
        None => crate::page::page(view, links, is_after_post),
    }
}

/// Adds the headers of a page. An operator's page has no policy, because the operator decides what
/// it loads. Without our script nothing polls, so it reloads by a header.
fn mark_page(headers: &mut HeaderMap, view: &WaitingView<'_>, look: Look<'_>, is_after_post: bool) {
    let tag = HeaderValue::from_static(view.language.tag());
    headers.insert(CONTENT_LANGUAGE, tag);
    let Some(template) = look.template else {
        let policy = look.brand.map_or(&*POLICY, |brand| &brand.policy);
        headers.insert(CONTENT_SECURITY_POLICY, policy.clone());
        return;
    };
    if template.has_script() {
        return;
    }
    let seconds = crate::page::reload_secs(view, is_after_post);
    let refresh = match look.entry {
        "" => HeaderValue::from(seconds),
        entry => {
            let entry = language_form::safe_target(entry);
            let refresh = HeaderValue::try_from(format!("{seconds};url={entry}"));
            refresh.unwrap_or_else(|_| HeaderValue::from(seconds))
        }
    };
    headers.insert(REFRESH, refresh);
}

#[cfg(test)]
mod tests;
