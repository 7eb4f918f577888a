//! Small page around a waiting room: the choice of a language, the end of a wait. It has the style
//! of the waiting page and no script.

use std::sync::LazyLock;

use anteroom_config::language::Language;
use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_LANGUAGE, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue,
    REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderName, Response};

use super::response::policy;
use crate::page::{STYLE, escaped};

/// Policy of the page: its style, links and forms.
static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| policy(&[("style-src", &[&*STYLE])]));

/// Content of a page, as HTML.
pub(super) struct Notice<'a> {
    pub(super) language: Language,
    /// Name of the site, as text.
    pub(super) brand: &'a str,
    /// Title and heading, one of our texts.
    pub(super) heading: &'static str,
    /// HTML below the heading.
    pub(super) html: String,
}

/// Builds the response with a page.
pub(super) fn respond(notice: &Notice<'_>) -> Response<Bytes> {
    let tag = notice.language.tag();
    let direction = if notice.language.is_rtl() {
        "rtl"
    } else {
        "ltr"
    };
    let (brand, heading, html) = (escaped(notice.brand), notice.heading, &notice.html);
    let style = &*STYLE;
    let page = format!(
        "<!doctype html><html lang=\"{tag}\" dir=\"{direction}\"><head><meta charset=\"utf-8\">\
         <title>{heading} \u{b7} {brand}</title>\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <link rel=\"icon\" href=\"data:,\"><style>{style}</style></head>\
         <body><header><p>{brand}</p></header><main><h1 id=\"heading\">{heading}</h1>{html}\
         </main></body></html>"
    );
    let mut response = Response::new(Bytes::from(page));
    let headers = response.headers_mut();
    let html = HeaderValue::from_static("text/html; charset=utf-8");
    headers.insert(CONTENT_TYPE, html);
    headers.insert(CONTENT_LANGUAGE, HeaderValue::from_static(tag));
    headers.insert(CONTENT_SECURITY_POLICY, POLICY.clone());
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    const ROBOTS: HeaderName = HeaderName::from_static("x-robots-tag");
    headers.insert(ROBOTS, HeaderValue::from_static("noindex"));
    response
}
