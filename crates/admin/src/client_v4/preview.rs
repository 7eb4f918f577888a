//! Previews of waiting pages: an operator's template at an address that nobody can guess, for an
//! hour.
//!
//! The page runs in a sandbox: scripts of a template must not act as the operator who looks at it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, Query, State};
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::envelope::{Mistakes, Refusal, Reply};
use super::rooms::new_id;
use super::{Answer, Call};
use crate::api_error::ApiError;
use crate::api_state::Inner;

/// Most previews at a time, of up to a megabyte each. One more replaces the oldest.
const PREVIEWS_MAX: usize = 16;
/// Lifetime of a preview.
const LIFETIME: Duration = Duration::from_secs(3_600);
/// Field with the template.
const CUSTOM_HTML: &str = "custom_html";
/// Page where visitors would not wait.
const NOBODY_WAITS: &str = "<!doctype html><title>Preview</title><p>With the queueing method \
                            \"passthrough\" visitors do not wait: they see the site.</p>";

/// Templates that operators look at.
#[derive(Default)]
pub(crate) struct Previews(Mutex<VecDeque<Preview>>);

struct Preview {
    id: String,
    html: String,
    ends_at: Instant,
}

impl Previews {
    fn add(&self, id: String, html: String) {
        let mut all = self.0.lock();
        if all.len() >= PREVIEWS_MAX {
            all.pop_front();
        }
        all.push_back(Preview {
            id,
            html,
            ends_at: Instant::now() + LIFETIME,
        });
    }

    fn find(&self, id: &str) -> Option<String> {
        let mut all = self.0.lock();
        let now = Instant::now();
        all.retain(|preview| now < preview.ends_at);
        let found = all.iter().find(|preview| preview.id == id)?;
        Some(found.html.clone())
    }
}

pub(super) fn create(call: &Call<'_>) -> Answer {
    if call.method != Method::POST {
        return Err(Refusal::method());
    }
    let html = call.object()?.get(CUSTOM_HTML).and_then(Value::as_str);
    let mut mistakes = Mistakes::default();
    let Some(html) = html else {
        mistakes.add(CUSTOM_HTML, "custom_html has to be a template");
        return Err(Refusal::invalid(mistakes));
    };
    if let Err(found) = call.inner.api_rooms.preview(html, &BTreeMap::new()) {
        for message in found {
            mistakes.add(CUSTOM_HTML, format!("custom_html: {message}"));
        }
    }
    mistakes.check()?;
    let id = new_id()?;
    let url = format!("http://{}/preview/{id}", call.host);
    call.inner.previews.add(id, html.to_owned());
    Ok(Reply::of(json!({ "preview_url": url })))
}

/// Shows a preview. Its address is the only secret, as with the API that this one is like.
pub(crate) async fn show(
    State(inner): State<Arc<Inner>>,
    Path(id): Path<String>,
    Query(query): Query<BTreeMap<String, String>>,
) -> Response {
    let Some(html) = inner.previews.find(&id) else {
        return ApiError::UnknownPath.into_response();
    };
    // It was checked when it was made.
    let page = inner.api_rooms.preview(&html, &query).ok().flatten();
    let page = page.unwrap_or_else(|| NOBODY_WAITS.to_owned());
    let headers = [
        (
            CONTENT_TYPE,
            HeaderValue::from_static("text/html; charset=utf-8"),
        ),
        (
            CONTENT_SECURITY_POLICY,
            HeaderValue::from_static("sandbox allow-scripts"),
        ),
    ];
    (StatusCode::OK, headers, page).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn previews_end_after_an_hour_and_the_oldest_makes_room() {
        let previews = Previews::default();
        for number in 0..=PREVIEWS_MAX {
            previews.add(number.to_string(), "page".to_owned());
        }
        assert_eq!(previews.find("0"), None);
        assert_eq!(previews.find("1").as_deref(), Some("page"));
        tokio::time::advance(LIFETIME).await;
        assert_eq!(previews.find("1"), None);
    }
}
