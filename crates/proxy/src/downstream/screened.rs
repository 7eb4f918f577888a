//! HTTP/1 connection as the parser sees it: checked by the [`Screen`] and with timeouts.
//!
//! Timeouts are enforced here, because only here is it known whether a request has begun: for a
//! head, for the next request on an idle connection, and for the rate of a body.

use std::io::{Error as IoError, ErrorKind, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

use crate::downstream::activity::{Activity, IdleTimeouts};
use crate::downstream::hold::ConnectionHold;
use crate::downstream::observer::AbortReason;
use crate::downstream::pace::Pace;
use crate::downstream::screen::{RequestPhase, Screen};
use crate::fast_path::HandedOver;

/// Stream behind a screen.
pub(crate) struct Screened<T> {
    io: T,
    screen: Screen,
    is_tunnel: bool,
    /// Bytes to yield after a violation.
    end: &'static [u8],
    /// Bytes to yield next, if characters were encoded.
    encoded: Vec<u8>,
    /// Bytes that were read before: by the fast path, or together with a request for an upgrade,
    /// whose response decides whether they are HTTP.
    early: Vec<u8>,
    /// Requests that were served before.
    served: u64,
    timeouts: IdleTimeouts,
    activity: Arc<Activity>,
    hold: ConnectionHold,
    pace: Pace,
    /// Present wait and its deadline.
    wait: Option<(Wait, Instant)>,
    /// Timer that may fire early and is reset then: a reset for each request costs more.
    sleep: Option<Pin<Box<Sleep>>>,
}

/// Wait with a timeout, and the number of its request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Wait {
    Head(u64),
    Next(u64),
}

impl<T> Screened<T> {
    /// Puts a screen in front of a connection whose first requests may have been served already.
    pub(crate) fn new(
        HandedOver {
            io,
            unread,
            head_deadline,
        }: HandedOver<T>,
        timeouts: IdleTimeouts,
        pace: Pace,
        activity: Arc<Activity>,
        hold: ConnectionHold,
    ) -> Self {
        Self {
            io,
            served: activity.requests(),
            screen: Screen::new(),
            is_tunnel: false,
            end: b"",
            encoded: Vec::new(),
            early: unread,
            timeouts,
            activity,
            hold,
            pace,
            wait: head_deadline.map(|until| (Wait::Head(0), until)),
            sleep: None,
        }
    }

    /// Returns the present wait and its timeout, if it has one.
    fn awaited(&self) -> Option<(Wait, Duration)> {
        let request = self.screen.heads();
        match self.screen.phase() {
            RequestPhase::Head => Some((Wait::Head(request), self.timeouts.head)),
            // A new client is about to send its first request.
            RequestPhase::Between if self.activity.is_new() => {
                Some((Wait::Head(request), self.timeouts.head))
            }
            RequestPhase::Between if self.activity.is_idle() => {
                Some((Wait::Next(request), self.timeouts.keep_alive))
            }
            RequestPhase::Between | RequestPhase::Body | RequestPhase::Beyond => None,
        }
    }

    /// Resolves when no bytes have arrived within the timeout.
    fn poll_timeout(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), IoError>> {
        let Some((wait, limit)) = self.awaited() else {
            self.wait = None;
            if self.screen.phase() == RequestPhase::Body {
                self.pace.wait(Instant::now());
            }
            return Poll::Pending;
        };
        let until = match self.wait {
            Some((known, until)) if known == wait => until,
            _ => Instant::now() + limit,
        };
        self.wait = Some((wait, until));
        let sleep = self
            .sleep
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(until)));
        if sleep.deadline() > until {
            sleep.as_mut().reset(until);
        }
        loop {
            ready!(sleep.as_mut().poll(cx));
            if sleep.deadline() >= until {
                break;
            }
            sleep.as_mut().reset(until);
        }
        match wait {
            // End of the stream, as if the client had closed it.
            Wait::Next(_) => Poll::Ready(Ok(())),
            Wait::Head(_) if self.screen.phase() == RequestPhase::Between => Poll::Ready(Ok(())),
            Wait::Head(_) => Poll::Ready(Err(self.abort(AbortReason::SlowHead))),
        }
    }

    /// Replaces raw characters of queries after `start` by their encoded form, as browsers send
    /// them.
    fn encode_raw(&mut self, buffer: &mut ReadBuf<'_>, start: usize) {
        let came = &buffer.filled()[start..];
        let raw = self.screen.raw().iter().copied();
        let raw = raw.take_while(|at| *at < came.len());
        let Some(first) = raw.clone().next() else {
            return;
        };
        let mut from = first;
        for at in raw {
            self.encoded.extend_from_slice(&came[from..at]);
            self.encoded.extend_from_slice(match came[at] {
                b'<' => b"%3C",
                b'>' => b"%3E",
                _ => b"%22",
            });
            from = at + 1;
        }
        self.encoded.extend_from_slice(&came[from..]);
        buffer.set_filled(start + first);
        self.read_encoded(buffer);
    }

    fn read_encoded(&mut self, buffer: &mut ReadBuf<'_>) {
        let count = self.encoded.len().min(buffer.remaining());
        buffer.put_slice(&self.encoded[..count]);
        self.encoded.drain(..count);
    }

    fn abort(&self, reason: AbortReason) -> IoError {
        self.hold.observer().aborted(reason);
        IoError::new(ErrorKind::TimedOut, "the client is too slow")
    }

    /// Resolves after the response to an upgrade, with the connection as a tunnel or as HTTP.
    fn poll_upgrade_response(&mut self, cx: &Context<'_>) -> Poll<()> {
        self.is_tunnel = ready!(self.activity.poll_upgrade(cx));
        if !self.is_tunnel {
            self.screen.resume();
        }
        Poll::Ready(())
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Screened<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<(), IoError>> {
        let this = self.get_mut();
        if !this.encoded.is_empty() {
            this.read_encoded(buffer);
            return Poll::Ready(Ok(()));
        }
        if this.screen.has_ended() {
            let (now, later) = this.end.split_at(this.end.len().min(buffer.remaining()));
            buffer.put_slice(now);
            this.end = later;
            return Poll::Ready(Ok(()));
        }
        if this.screen.awaits_response() && !this.is_tunnel {
            ready!(this.poll_upgrade_response(cx));
        }
        let start = buffer.filled().len();
        if !this.early.is_empty() {
            let count = this.early.len().min(buffer.remaining());
            buffer.put_slice(&this.early[..count]);
            this.early.drain(..count);
        } else if Pin::new(&mut this.io).poll_read(cx, buffer)?.is_pending() {
            return if this.is_tunnel {
                Poll::Pending
            } else {
                this.poll_timeout(cx)
            };
        }
        if this.is_tunnel {
            return Poll::Ready(Ok(()));
        }
        let came = &mut buffer.filled_mut()[start..];
        let count = came.len();
        if this.screen.phase() == RequestPhase::Body && this.pace.is_too_slow(count, Instant::now())
        {
            return Poll::Ready(Err(this.abort(AbortReason::SlowBody)));
        }
        match this.screen.look(came) {
            Ok(looked) => {
                if looked < count && this.screen.awaits_response() {
                    // Before the rest, which may have been early as well.
                    this.early.splice(..0, came[looked..].iter().copied());
                }
                buffer.set_filled(start + looked);
            }
            Err(violation) => {
                came[violation.at] = 0;
                buffer.set_filled(start + violation.at + 1);
                if violation.is_in_head {
                    // A parser that has seen the beginning of a head parses it again when it has
                    // ended.
                    this.end = b"\r\n\r\n";
                }
                this.hold.observer().aborted(AbortReason::Framing);
            }
        }
        if this.screen.awaits_response() {
            this.activity
                .request_upgrade(this.served + this.screen.heads());
        }
        if !this.screen.raw().is_empty() {
            this.encode_raw(buffer, start);
        }
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Screened<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize, IoError>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<Result<usize, IoError>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), IoError>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), IoError>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests;
