//! Service of one connection: reads heads, decides, and passes each request on.

use std::future::poll_fn;
use std::io::{Error as IoError, ErrorKind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf as _, Bytes};
use http::header::CONTENT_LENGTH;
use http::{Request, Response};
use http_body::Body as _;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;

use super::buffers::{Buffer, poll_read};
use super::exchange;
use super::own_response::{end_head, framing_of, write_head};
use super::request_head::{
    HeadEnd, HeadLimits, HeadSearch, RequestHead, lines_about, may_begin, no_lines,
};
use super::response_body::{Framing, LAST_CHUNK, write_chunk};
use super::response_head::{may_have_length, write_length};
use super::timer::Timer;
use super::{AtOnce, DecideAtOnce, FastPath, PassedRequest};
use crate::body::Body;
use crate::downstream::activity::{Activity, OpenRequest};
use crate::downstream::connection::Protocols;
use crate::downstream::observer::{AbortReason, FastPathRequest};
use crate::downstream::{Arrival, Handler};
use crate::forwarded::{Client, Scheme, TrustedProxies};
use crate::header_view::HeaderView;
use crate::request_view::RequestView;
use crate::reverse_proxy::{ErrorResponder, OriginOutcome};

/// Most bytes of a head that is mine.
const HEAD_BYTES_MAX: usize = 16 * 1024;
/// Most bytes of a body that is mine. It is sent on with the head, in one write.
const BODY_BYTES_MAX: usize = 16 * 1024;
/// Longest time for which the rest of a body is waited for. Most arrive with their heads. If bodies
/// may stand still for less, it is less.
const BODY_WAIT: Duration = Duration::from_millis(500);
/// Most bytes of later requests that are read while one is served.
const AHEAD_BYTES_MAX: usize = 16 * 1024;

/// End of the service on the fast path.
pub(crate) enum Ending<I> {
    /// The connection has ended.
    Ended,
    /// The next request is not mine.
    NotMine(HandedOver<I>),
}

/// Connection with a request that is not mine.
pub(crate) struct HandedOver<I> {
    pub(crate) io: I,
    /// Bytes that were read and belong to the request, or follow it.
    pub(crate) unread: Vec<u8>,
    /// Time by which the head has to be there.
    pub(crate) head_deadline: Option<Instant>,
}

impl<I> HandedOver<I> {
    /// Hands over a connection of which nothing was read.
    pub(crate) const fn new(io: I) -> Self {
        Self {
            io,
            unread: Vec::new(),
            head_deadline: None,
        }
    }
}

/// Connection with its client.
pub(super) struct Downstream<'a, I> {
    pub(super) io: I,
    /// Bytes that were read and not used.
    input: Buffer,
    /// Bytes for the client.
    pub(super) output: Buffer,
    pub(super) protocols: &'a Protocols,
    pub(super) timer: Timer,
    arrival: &'a Arrival,
    activity: &'a Arc<Activity>,
    /// Whether the client has shut down its side.
    has_ended: bool,
    /// Client of the last request, for the next one with the same host.
    client: Option<Box<KnownClient>>,
}

/// Client, and what its requests get for the origin.
struct KnownClient {
    client: Client,
    lines: Box<[u8]>,
}

impl KnownClient {
    /// Returns the client of a request; `None` if its host is no value of a header.
    fn of(
        arrival: &Arrival,
        head: &RequestHead<'_>,
        trusted: &TrustedProxies,
    ) -> Option<Box<Self>> {
        let scheme = if arrival.is_encrypted {
            Scheme::Https
        } else {
            Scheme::Http
        };
        let host = http::HeaderValue::from_str(head.host).ok()?;
        let client = Client::of(arrival.peer, scheme, host, head.headers(), trusted);
        let lines = lines_about(&client, head.headers());
        Some(Box::new(Self { client, lines }))
    }

    /// Whether the next request over its connection has the same client. Behind a trusted proxy,
    /// each request has its own.
    fn is_also_of(&self, head: &RequestHead<'_>) -> bool {
        !self.client.has_trusted_peer && self.client.host == head.host
    }
}

/// Serves a connection as long as its requests are mine.
///
/// # Errors
///
/// If the connection breaks, or a side of it is too slow.
pub(crate) async fn drive<I, H>(
    io: I,
    protocols: &Protocols,
    handler: &H,
    fast_path: &FastPath<'_, H::Decider>,
    (arrival, activity): (&Arrival, &Arc<Activity>),
) -> Result<Ending<I>, IoError>
where
    I: AsyncRead + AsyncWrite + Unpin + Send,
    H: Handler,
{
    let mut connection = Downstream {
        io,
        input: Buffer::default(),
        output: Buffer::default(),
        protocols,
        timer: Timer::default(),
        arrival,
        activity,
        has_ended: false,
        client: None,
    };
    loop {
        let (length, deadline) = match connection.next_head().await? {
            Next::Head { length, deadline } => (length, deadline),
            Next::NotMine { deadline } => return Ok(connection.hand_over(deadline)),
            Next::End => {
                poll_fn(|cx| Pin::new(&mut connection.io).poll_shutdown(cx)).await?;
                return Ok(Ending::Ended);
            }
        };
        let mut decision = connection.decide(length, fast_path);
        if let Decision::Later(bytes) = decision {
            let _busy = activity.hold();
            if connection.read_up_to(bytes).await? {
                decision = connection.decide(length, fast_path);
            }
        }
        match decision {
            Decision::Later(_) => {
                arrival.hold.observer().fast_path(FastPathRequest::Body);
                return Ok(connection.hand_over(deadline));
            }
            Decision::NotMine => return Ok(connection.hand_over(deadline)),
            // In boxes, so that an idle connection has no room for a request.
            Decision::Pass(pass) => Box::pin(exchange::forward(&mut connection, pass)).await?,
            Decision::Respond(own) => {
                Box::pin(connection.respond(*own)).await?;
            }
            Decision::Layers(own) => {
                Box::pin(connection.ask_layers(handler, *own)).await?;
            }
        }
    }
}

/// Next event on a connection.
enum Next {
    /// A head of so many bytes.
    Head {
        length: usize,
        deadline: Option<Instant>,
    },
    NotMine {
        deadline: Option<Instant>,
    },
    End,
}

enum Decision<P> {
    NotMine,
    /// The body has not arrived: so many bytes with the head.
    Later(usize),
    Pass(Box<Outgoing<P>>),
    /// The response is there.
    Respond(Box<OwnExchange<Response<Body>>>),
    /// The request goes to the layers.
    Layers(Box<OwnExchange<Request<Body>>>),
}

/// Request that goes to an origin.
pub(super) struct Outgoing<P> {
    pub(super) passed: P,
    pub(super) open: OpenRequest,
    /// Head as the client sent it.
    pub(super) original: Buffer,
    /// Head for the origin.
    pub(super) head: Buffer,
    pub(super) is_head: bool,
    /// Whether it may be sent again when a connection just closed.
    pub(super) is_repeatable: bool,
    pub(super) wants_close: bool,
}

impl<P: PassedRequest> Outgoing<P> {
    /// Returns the response to a request that no origin has responded to.
    pub(super) fn error_response(&self, outcome: OriginOutcome) -> Response<Body> {
        let mut lines = no_lines();
        // It was read before, so it can be read again.
        let head = RequestHead::read(&self.original, &mut lines, HeadLimits::NONE);
        let headers = head.map_or_else(|_| HeaderView::of_lines(&[]), |head| head.headers());
        let language = self.passed.upstream().language;
        ErrorResponder::of_view(headers, language).respond_to_outcome(outcome)
    }
}

/// Request or response that no origin sees from here.
struct OwnExchange<T> {
    message: T,
    open: OpenRequest,
    is_head: bool,
    wants_close: bool,
}

impl<I: AsyncRead + AsyncWrite + Unpin + Send> Downstream<'_, I> {
    /// Waits for the head of the next request.
    async fn next_head(&mut self) -> Result<Next, IoError> {
        let mut search = HeadSearch::default();
        let mut deadline = None;
        poll_fn(|cx| self.poll_head(cx, &mut search, &mut deadline)).await
    }

    fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
        search: &mut HeadSearch,
        deadline: &mut Option<(Instant, bool)>,
    ) -> Poll<Result<Next, IoError>> {
        let head_bytes_max = self.protocols.head_bytes.min(HEAD_BYTES_MAX);
        loop {
            let is_idle = self.input.is_empty();
            let by = |deadline: &Option<(Instant, bool)>| deadline.map(|(at, _)| at);
            if !is_idle {
                match search.look(&self.input) {
                    HeadEnd::At(length) if length <= head_bytes_max => {
                        let deadline = by(deadline);
                        return Poll::Ready(Ok(Next::Head { length, deadline }));
                    }
                    HeadEnd::Later
                        if self.input.len() <= head_bytes_max && may_begin(&self.input) => {}
                    HeadEnd::At(_) | HeadEnd::Later | HeadEnd::Odd => {
                        let observer = self.arrival.hold.observer();
                        observer.fast_path(FastPathRequest::Header);
                        let deadline = by(deadline);
                        return Poll::Ready(Ok(Next::NotMine { deadline }));
                    }
                }
            }
            if self.has_ended || (is_idle && self.activity.is_closing()) {
                return Poll::Ready(Ok(Next::End));
            }
            if let Poll::Ready(count) = poll_read(&mut self.io, cx, &mut self.input)? {
                self.has_ended = count == 0;
                continue;
            }
            ready!(self.poll_head_timeout(cx, is_idle, deadline));
            if is_idle {
                return Poll::Ready(Ok(Next::End));
            }
            self.arrival.hold.observer().aborted(AbortReason::SlowHead);
            let error = IoError::new(ErrorKind::TimedOut, "the client is too slow");
            return Poll::Ready(Err(error));
        }
    }

    /// Resolves when the next request, or the rest of its head, does not come in time.
    fn poll_head_timeout(
        &mut self,
        cx: &mut Context<'_>,
        is_idle: bool,
        deadline: &mut Option<(Instant, bool)>,
    ) -> Poll<()> {
        let timeouts = self.protocols.timeouts;
        let at = match *deadline {
            Some((at, was_idle)) if was_idle == is_idle => at,
            // A new client is about to send its first request.
            Some((at, _)) if self.activity.is_new() => at,
            _ => {
                let is_first = self.activity.is_new();
                let limit = if is_idle && !is_first {
                    timeouts.keep_alive
                } else {
                    timeouts.head
                };
                Instant::now() + limit
            }
        };
        *deadline = Some((at, is_idle));
        self.timer.poll(cx, at)
    }

    fn hand_over(self, head_deadline: Option<Instant>) -> Ending<I> {
        let Self { io, mut input, .. } = self;
        Ending::NotMine(HandedOver {
            io,
            unread: input.take(),
            head_deadline,
        })
    }

    /// Decides about the request with a head of so many bytes, and consumes it if it is mine.
    fn decide<D: DecideAtOnce>(
        &mut self,
        length: usize,
        fast_path: &FastPath<'_, D>,
    ) -> Decision<D::Passed> {
        let intake = fast_path.intake;
        let mut lines = no_lines();
        let limits = HeadLimits {
            headers: intake.headers_max(),
            target_bytes: intake.target_bytes_max(),
            body_bytes: intake.body_bytes_max().min(BODY_BYTES_MAX),
        };
        let read = RequestHead::read(&self.input[..length], &mut lines, limits);
        let read = read.and_then(|head| {
            let known = self.client.take().filter(|known| known.is_also_of(&head));
            let client = known.or_else(|| KnownClient::of(self.arrival, &head, intake.trusted()));
            Ok((head, client.ok_or(FastPathRequest::Client)?))
        });
        let decided = read.and_then(|(head, client)| {
            let end = length + head.body_bytes();
            let decision = match self.input.get(length..end) {
                Some(body) => {
                    let connection = (self.arrival, self.activity);
                    decide_about((&head, body), &client, connection, fast_path)?
                }
                None => Decision::Later(end),
            };
            Ok((decision, client, end))
        });
        let observer = self.arrival.hold.observer();
        let (decision, client, end) = match decided {
            Ok(decided) => decided,
            Err(why) => {
                observer.fast_path(why);
                return Decision::NotMine;
            }
        };
        self.client = Some(client);
        match decision {
            Decision::Pass(mut outgoing) => {
                observer.fast_path(FastPathRequest::Forwarded);
                outgoing.original = self.input.split_to(length);
                self.input.consume(end - length);
                Decision::Pass(outgoing)
            }
            Decision::Respond(own) => {
                observer.fast_path(FastPathRequest::Answered);
                self.input.consume(end);
                Decision::Respond(own)
            }
            Decision::Layers(own) => {
                observer.fast_path(FastPathRequest::Layers);
                self.input.consume(end);
                Decision::Layers(own)
            }
            undecided => undecided,
        }
    }

    /// Reads until so many bytes are there. Returns whether they came soon.
    async fn read_up_to(&mut self, bytes: usize) -> Result<bool, IoError> {
        let by = Instant::now() + BODY_WAIT.min(self.protocols.write_idle);
        poll_fn(|cx| {
            while self.input.len() < bytes && !self.has_ended {
                if let Poll::Ready(count) = poll_read(&mut self.io, cx, &mut self.input)? {
                    self.has_ended = count == 0;
                    continue;
                }
                ready!(self.timer.poll(cx, by));
                break;
            }
            Poll::Ready(Ok(self.input.len() >= bytes))
        })
        .await
    }

    /// Writes a response of ours.
    async fn respond(&mut self, own: OwnExchange<Response<Body>>) -> Result<(), IoError> {
        let OwnExchange {
            message: response,
            mut open,
            is_head,
            wants_close,
        } = own;
        let is_last = open.note_head(response.status(), true) || wants_close;
        self.write_response(response, is_head, is_last).await
    }

    /// Passes a request through the layers, and writes their response.
    async fn ask_layers<H: Handler>(
        &mut self,
        handler: &H,
        own: OwnExchange<Request<Body>>,
    ) -> Result<(), IoError> {
        let OwnExchange {
            message: request,
            mut open,
            is_head,
            wants_close,
        } = own;
        let mut response = Box::pin(handler.handle(self.arrival, request));
        let response = poll_fn(|cx| {
            if let Poll::Ready(response) = response.as_mut().poll(cx) {
                return Poll::Ready(Ok::<_, IoError>(response));
            }
            // Ends the wait of a client that has hung up.
            if let Poll::Ready(flushed) = Pin::new(&mut self.io).poll_flush(cx) {
                flushed?;
            }
            ready!(self.poll_client(cx))?;
            Poll::Pending
        })
        .await?;
        let response = match response {
            Ok(response) => response,
            Err(never) => match never {},
        };
        let is_last = open.note_head(response.status(), H::is_own(&response));
        self.write_response(response, is_head, is_last || wants_close)
            .await
    }

    /// Writes a response with its body.
    pub(super) async fn write_response<B>(
        &mut self,
        response: Response<B>,
        is_head: bool,
        is_last: bool,
    ) -> Result<(), IoError>
    where
        B: http_body::Body<Data = Bytes>,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let exact = response.body().size_hint().exact();
        let (status, headers) = (response.status(), response.headers());
        let framing = framing_of(headers, status, is_head, exact);
        let out = self.output.bytes();
        write_head(out, &response, is_head, framing);
        if is_head
            && let Some(length @ 1..) = exact
            && may_have_length(status)
            && !headers.contains_key(CONTENT_LENGTH)
        {
            // That of a GET.
            write_length(out, length);
        }
        end_head(out, is_last);
        let mut body = pin!(response.into_body());
        let mut left = match framing {
            Framing::None => {
                self.flush().await?;
                return self.end_request(is_last);
            }
            Framing::Length(length) => Some(length),
            Framing::Chunks | Framing::UntilClose => None,
        };
        while !body.is_end_stream() && left != Some(0) {
            let frame: Option<_> = poll_fn(|cx| {
                if let Poll::Ready(frame) = body.as_mut().poll_frame(cx) {
                    return Poll::Ready(frame.transpose().map_err(IoError::other));
                }
                // What is there goes out while the rest is waited for.
                ready!(self.poll_write_out(cx))?;
                ready!(self.poll_client(cx))?;
                Poll::Pending
            })
            .await?;
            let Some(frame) = frame else { break };
            // Trailers are only for clients that ask for them, which are not mine.
            let Ok(mut data) = frame.into_data() else {
                continue;
            };
            match &mut left {
                Some(left) => {
                    let room = usize::try_from(*left).unwrap_or(usize::MAX);
                    let count = room.min(data.len());
                    *left -= count as u64;
                    data.truncate(count);
                    self.output.bytes().extend_from_slice(&data);
                }
                None => write_chunk(self.output.bytes(), data.chunk()),
            }
            if self.output.len() >= exchange::WRITE_BYTES {
                self.flush().await?;
            }
        }
        match left {
            Some(0) => {}
            Some(_) => return Err(IoError::other("the body of a response ended early")),
            None => self.output.bytes().extend_from_slice(LAST_CHUNK),
        }
        self.flush().await?;
        self.end_request(is_last)
    }

    /// Ends a request after its response. `is_last`: no other one is served.
    pub(super) fn end_request(&mut self, is_last: bool) -> Result<(), IoError> {
        if is_last {
            self.input.clear();
            self.has_ended = true;
        }
        Ok(())
    }

    /// Writes all that waits for the client.
    pub(super) async fn flush(&mut self) -> Result<(), IoError> {
        poll_fn(|cx| {
            ready!(self.poll_write_out(cx))?;
            Pin::new(&mut self.io).poll_flush(cx)
        })
        .await
    }

    /// Writes what waits for the client.
    pub(super) fn poll_write_out(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), IoError>> {
        while !self.output.is_empty() {
            let count = ready!(Pin::new(&mut self.io).poll_write(cx, &self.output))?;
            if count == 0 {
                return Poll::Ready(Err(ErrorKind::WriteZero.into()));
            }
            self.output.consume(count);
        }
        Poll::Ready(Ok(()))
    }

    /// Notices the end of the client while it waits for a response. Reads what it sends meanwhile,
    /// up to a limit. Never resolves but with an error.
    pub(super) fn poll_client(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), IoError>> {
        while !self.has_ended && self.input.len() < AHEAD_BYTES_MAX {
            let count = ready!(poll_read(&mut self.io, cx, &mut self.input))?;
            // It may have shut down its side only, and still gets its response.
            self.has_ended = count == 0;
        }
        Poll::Pending
    }
}

/// Decides about a request that is mine so far.
fn decide_about<D: DecideAtOnce>(
    (head, body): (&RequestHead<'_>, &[u8]),
    known: &KnownClient,
    (arrival, activity): (&Arrival, &Arc<Activity>),
    fast_path: &FastPath<'_, D>,
) -> Result<Decision<D::Passed>, FastPathRequest> {
    let claim = arrival.hold.claim();
    if claim.turned_away().is_some() {
        return Err(FastPathRequest::Client);
    }
    let (path, query) = head.path_and_query();
    let view = RequestView {
        method: head.method,
        client: &known.client,
        host: head.host,
        target: head.target,
        path,
        query,
        headers: head.headers(),
        connection: Some(&claim),
        is_over_limit: false,
    };
    let (is_head, wants_close) = (head.is_head(), head.wants_close);
    let passed = match fast_path.decider.decide_at_once(&view) {
        AtOnce::Pass(passed) => passed,
        AtOnce::Respond(response) => {
            return Ok(Decision::Respond(Box::new(OwnExchange {
                message: *response,
                open: activity.begin(),
                is_head,
                wants_close,
            })));
        }
        AtOnce::Layers(extensions) => {
            let mut request = map_request(head, body).ok_or(FastPathRequest::Header)?;
            *request.extensions_mut() = extensions;
            return Ok(Decision::Layers(Box::new(OwnExchange {
                message: request,
                open: activity.begin(),
                is_head,
                wants_close,
            })));
        }
    };
    let mut for_origin = Buffer::default();
    let out = for_origin.bytes();
    let about = (&known.client, &*known.lines);
    head.write(out, about, fast_path.intake.trusted());
    passed.write_headers(out);
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(body);
    // In a box, because it moves from hand to hand.
    Ok(Decision::Pass(Box::new(Outgoing {
        passed,
        open: activity.begin(),
        original: Buffer::default(),
        head: for_origin,
        is_head,
        is_repeatable: body.is_empty() && head.method.is_idempotent(),
        wants_close,
    })))
}

/// Returns the request as the layers know it; `None` if they would not take it like this.
fn map_request(head: &RequestHead<'_>, body: &[u8]) -> Option<Request<Body>> {
    let mut request = Request::new(match body {
        [] => Body::empty(),
        body => Body::full(Bytes::copy_from_slice(body)),
    });
    *request.method_mut() = head.method.clone();
    *request.uri_mut() = head.target.parse().ok()?;
    let headers = request.headers_mut();
    headers.reserve(head.lines.len());
    for line in head.lines {
        let name = http::HeaderName::from_bytes(line.name.as_bytes()).ok()?;
        headers.append(name, http::HeaderValue::from_bytes(line.value).ok()?);
    }
    Some(request)
}
