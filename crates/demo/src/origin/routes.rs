//! Request handler of the shop: passes a request to the checker, takes its time, and picks a page.
//!
//! The pages are in [`super::shop`]. Request bodies are read and ignored.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Either, Full, Limited};
use hyper::body::Incoming;
use tokio::time::Instant;

use super::events::Events;
use super::{Shop, shop};
use crate::checker::OriginRequest;

/// Response header with the end of the visitor's seat, in Unix milliseconds.
///
/// The ticket is sealed, so this is how a visitor knows that it was queued too early.
pub const SHOP_SEAT_ENDS: HeaderName = HeaderName::from_static("shop-seat-ends");

/// Response header with a command for the gateway.
const COMMAND: HeaderName = HeaderName::from_static("anteroom-command");

/// Longest order, in bytes. A longer one is rejected, so that it does not fill the memory.
const ORDER_BYTES_MAX: usize = 64 * 1024;

type Body = Either<Full<Bytes>, Events>;

/// Page that a request is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Route {
    Home,
    Item(u32),
    Checkout,
    Logout,
    Events,
    Checker,
    Unknown,
    WrongMethod(&'static str),
}

impl Route {
    fn of(method: &Method, path: &str) -> Self {
        let (route, is_post) = match path {
            "/" => (Self::Home, false),
            "/checkout" => (Self::Checkout, true),
            "/logout" => (Self::Logout, true),
            "/events" => (Self::Events, false),
            "/judge" => (Self::Checker, false),
            _ => match shop::item_number(path) {
                Some(number) => (Self::Item(number), false),
                None => return Self::Unknown,
            },
        };
        match (is_post, method) {
            (true, &Method::POST) | (false, &(Method::GET | Method::HEAD)) => route,
            (true, _) => Self::WrongMethod("POST"),
            (false, _) => Self::WrongMethod("GET, HEAD"),
        }
    }

    /// Whether the response takes as long as a page does.
    const fn is_work(self) -> bool {
        matches!(
            self,
            Self::Home | Self::Item(_) | Self::Checkout | Self::Logout
        )
    }
}

/// Responds to one request.
pub(super) async fn handle(
    shop: Arc<Shop>,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    let began = Instant::now();
    let route = Route::of(request.method(), request.uri().path());
    let sighting = OriginRequest::from_headers(request.headers(), &shop.options.room);
    let _weight = (sighting.is_none() && route.is_work()).then(|| AnonymousWeight::on(&shop));
    let load = shop.count_in(route, sighting.as_ref());
    let is_order_accepted = Limited::new(request.into_body(), ORDER_BYTES_MAX)
        .collect()
        .await
        .is_ok();
    if route.is_work() {
        tokio::time::sleep(shop.options.service_time.of(load)).await;
        shop.response_times.lock().record(began.elapsed());
    }
    let mut response = if is_order_accepted {
        shop.respond(route, sighting.as_ref())
    } else {
        plain(StatusCode::PAYLOAD_TOO_LARGE, "this order is too long\n")
    };
    if let Some(sighting) = sighting {
        let ends_at = HeaderValue::from(sighting.seat_ends_at.0);
        response.headers_mut().insert(SHOP_SEAT_ENDS, ends_at);
    }
    Ok(response)
}

impl Shop {
    /// Returns the number of active visitors.
    pub(super) fn inside(&self) -> usize {
        let mut checker = self.checker.lock();
        checker.inside(self.clock.now())
    }

    /// Passes the request to the checker; returns the number of visitors that load the shop.
    fn count_in(&self, route: Route, sighting: Option<&OriginRequest>) -> usize {
        let mut checker = self.checker.lock();
        let now = self.clock.now();
        match sighting {
            Some(sighting) => checker.observe(sighting, None, now),
            // A direct request for the verdict is not from a visitor.
            None if route == Route::Checker => {}
            None => checker.observe_without_headers(now),
        }
        let anonymous = self.anonymous.load(Ordering::Relaxed);
        checker.inside(now) + usize::try_from(anonymous).unwrap_or(usize::MAX)
    }

    fn respond(self: &Arc<Self>, route: Route, sighting: Option<&OriginRequest>) -> Response<Body> {
        let inside = self.inside();
        let stats = shop::ShopStats {
            inside,
            capacity: self.options.service_time.capacity,
            page_ms: self.options.service_time.of(inside).as_millis(),
            seat_left: sighting.map(|s| s.seat_ends_at.since(self.clock.now())),
        };
        match route {
            Route::Home => html(shop::home(&stats)),
            Route::Item(number) => html(shop::item(&stats, number)),
            Route::Checkout => html(shop::thanks(&stats)),
            Route::Logout => self.log_out(sighting),
            Route::Events => {
                let mut response = Response::new(Either::Right(Events::new(Arc::clone(self))));
                finish(&mut response, StatusCode::OK, "text/event-stream");
                response
            }
            Route::Checker => self.verdict_response(),
            Route::Unknown => plain(StatusCode::NOT_FOUND, "the shop does not have this\n"),
            Route::WrongMethod(allowed) => {
                let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "not in this way\n");
                let allowed = HeaderValue::from_static(allowed);
                response.headers_mut().insert(ALLOW, allowed);
                response
            }
        }
    }

    fn log_out(&self, sighting: Option<&OriginRequest>) -> Response<Body> {
        if let Some(sighting) = sighting {
            // Before the response is sent: the gateway may grant the seat to another as soon as it
            // has it.
            let mut checker = self.checker.lock();
            checker.revoke(sighting.visitor, self.clock.now());
        }
        let mut response = html(shop::goodbye());
        let revoke = HeaderValue::from_static("revoke");
        response.headers_mut().insert(COMMAND, revoke);
        response
    }

    fn verdict_response(&self) -> Response<Body> {
        let json = serde_json::to_vec(&self.verdict())
            .expect("a verdict is a struct of numbers, which JSON can hold");
        let mut response = Response::new(Either::Left(Full::from(json)));
        finish(&mut response, StatusCode::OK, "application/json");
        response
    }
}

/// Counts like a visitor while it exists.
struct AnonymousWeight<'a>(&'a Shop);

impl<'a> AnonymousWeight<'a> {
    fn on(shop: &'a Shop) -> Self {
        shop.anonymous.fetch_add(1, Ordering::Relaxed);
        Self(shop)
    }
}

impl Drop for AnonymousWeight<'_> {
    fn drop(&mut self) {
        self.0.anonymous.fetch_sub(1, Ordering::Relaxed);
    }
}

fn html(page: String) -> Response<Body> {
    let mut response = Response::new(Either::Left(Full::from(page)));
    finish(&mut response, StatusCode::OK, "text/html; charset=utf-8");
    response
}

fn plain(status: StatusCode, text: &'static str) -> Response<Body> {
    let mut response = Response::new(Either::Left(Full::from(text)));
    finish(&mut response, status, "text/plain; charset=utf-8");
    response
}

fn finish(response: &mut Response<Body>, status: StatusCode, content_type: &'static str) {
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_by_method_and_path() {
        for (method, path, route) in [
            (Method::GET, "/", Route::Home),
            (Method::HEAD, "/", Route::Home),
            (Method::GET, "/item/7", Route::Item(7)),
            (Method::POST, "/item/7", Route::WrongMethod("GET, HEAD")),
            (Method::GET, "/item/seven", Route::Unknown),
            (Method::POST, "/checkout", Route::Checkout),
            (Method::GET, "/checkout", Route::WrongMethod("POST")),
            (Method::GET, "/logout", Route::WrongMethod("POST")),
            (Method::POST, "/logout", Route::Logout),
            (Method::GET, "/events", Route::Events),
            (Method::GET, "/judge", Route::Checker),
            (Method::GET, "/favicon.ico", Route::Unknown),
        ] {
            assert_eq!(Route::of(&method, path), route, "{method} {path}");
        }
    }
}
