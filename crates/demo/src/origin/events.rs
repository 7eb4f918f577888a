//! Stream of server-sent events that shows a browser how full the shop is.
//!
//! It has no end; the connection ends it. It sends one event a second, so that an open page costs
//! almost nothing.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame};
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::Shop;

/// Time between two events; people read no faster.
const PERIOD: Duration = Duration::from_secs(1);

/// The body of `/events`.
#[derive(Debug)]
pub(super) struct Events {
    shop: Arc<Shop>,
    interval: Interval,
}

impl Events {
    /// Creates a stream whose first event is sent at once.
    pub(super) fn new(shop: Arc<Shop>) -> Self {
        let mut interval = interval(PERIOD);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { shop, interval }
    }
}

impl Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        ready!(self.interval.poll_tick(context));
        let inside = self.shop.inside();
        let page_ms = self.shop.options.service_time.of(inside).as_millis();
        let event = format!("data: {{\"inside\":{inside},\"pageMs\":{page_ms}}}\n\n");
        Poll::Ready(Some(Ok(Frame::data(Bytes::from(event)))))
    }
}
