//! One request and its response: to an origin, and back to the client.

use std::future::poll_fn;
use std::io::{Error as IoError, ErrorKind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::time::Instant;

use super::PassedRequest;
use super::buffers::{Buffer, poll_read, poll_read_with};
use super::driver::{Downstream, Outgoing};
use super::own_response::{end_head, write_head};
use super::response_body::{BodyReader, Framing, Malformed, Progress};
use super::response_head::{self, Form, NoHead, Reading, ResponseHead};
use crate::body::Body;
use crate::reverse_proxy::OriginOutcome;
use crate::upstream::open_connections::{Idle, Reusable};
use crate::upstream::{Delivery, Failure, Origin, STALE_WITHIN, is_gone};

/// Bytes for the client that are written at once.
pub(super) const WRITE_BYTES: usize = 64 * 1024;
/// Most interim responses before a response.
const INTERIM_MAX: usize = 16;
/// Bytes of one body after which other connections have a turn.
const TURN_BYTES: usize = 128 * 1024;

/// Response whose head has arrived.
struct Arrived {
    head: ResponseHead,
    origin: TcpStream,
    /// Bytes after the head.
    rest: Buffer,
    connections: Arc<Idle<TcpStream>>,
}

/// Reason for a missing response.
enum NoResponse {
    Failed(Failure),
    TimedOut,
    /// The client is gone, and gets nothing.
    ClientGone(IoError),
}

/// Failed attempt on one connection.
struct NotSent {
    reason: NoResponse,
    /// Whether nothing of the request was sent.
    is_unsent: bool,
    /// Whether the connection was just being closed, so that the request may be sent again.
    is_stale: bool,
}

impl NotSent {
    fn final_one(reason: NoResponse) -> Self {
        Self {
            reason,
            is_unsent: false,
            is_stale: false,
        }
    }
}

/// Forwards a request, and its response to the client.
///
/// # Errors
///
/// If the client is gone or too slow, or its response breaks off.
pub(super) async fn forward<I, P>(
    client: &mut Downstream<'_, I>,
    mut request: Box<Outgoing<P>>,
) -> Result<(), IoError>
where
    I: AsyncRead + AsyncWrite + Unpin + Send,
    P: PassedRequest,
{
    let group = Arc::clone(&request.passed.upstream().group);
    let mut delivery = Delivery::new(group, false, client.protocols.origin_response);
    let arrived = send(client, &mut delivery, &request).await;
    request.head.clear();
    match arrived {
        Ok(arrived) => {
            let outcome = OriginOutcome::Answered(arrived.head.status);
            // Before the attempt is settled, which would end it.
            let _lease = delivery.take_lease();
            delivery.settle(outcome);
            respond(client, request, arrived, outcome).await
        }
        Err(NoResponse::ClientGone(error)) => Err(error),
        Err(reason) => {
            let outcome = match &reason {
                NoResponse::Failed(failure) => failure.outcome(),
                _ => OriginOutcome::TimedOut,
            };
            delivery.settle(outcome);
            drop(delivery);
            // In a box of its own, because it is seldom needed.
            Box::pin(respond_with_error(client, request, outcome)).await
        }
    }
}

/// Writes the response to a request that no origin has responded to.
async fn respond_with_error<I, P>(
    client: &mut Downstream<'_, I>,
    mut request: Box<Outgoing<P>>,
    outcome: OriginOutcome,
) -> Result<(), IoError>
where
    I: AsyncRead + AsyncWrite + Unpin + Send,
    P: PassedRequest,
{
    let response = request.error_response(outcome);
    let response = request.passed.finish(response).await;
    let is_last = request.open.note_head(response.status(), true);
    let is_last = is_last || request.wants_close;
    client
        .write_response(response, request.is_head, is_last)
        .await
}

/// Sends a request to one origin after the other, and waits for the head of the response.
async fn send<I, P>(
    client: &mut Downstream<'_, I>,
    delivery: &mut Delivery<Body>,
    request: &Outgoing<P>,
) -> Result<Arrived, NoResponse>
where
    I: AsyncRead + AsyncWrite + Unpin + Send,
    P: PassedRequest,
{
    let deadline = Instant::now() + client.protocols.origin_response;
    let mut may_use_idle = true;
    loop {
        let origin = delivery.begin(true);
        let not_sent = match attempt(client, &origin, request, may_use_idle, deadline).await {
            Ok(arrived) => return Ok(arrived),
            Err(not_sent) => not_sent,
        };
        if let NoResponse::Failed(failure) = &not_sent.reason {
            delivery.note_failure(failure, true);
            if not_sent.is_unsent && delivery.may_go_elsewhere() {
                delivery.leave(failure.outcome());
                continue;
            }
            if not_sent.is_stale && may_use_idle && request.is_repeatable {
                delivery.repeat();
                may_use_idle = false;
                continue;
            }
        }
        return Err(not_sent.reason);
    }
}

/// Sends a request over one connection, and waits for the head of the response.
async fn attempt<I, P>(
    client: &mut Downstream<'_, I>,
    origin: &Origin<Body>,
    request: &Outgoing<P>,
    may_use_idle: bool,
    deadline: Instant,
) -> Result<Arrived, NotSent>
where
    I: AsyncRead + AsyncWrite + Unpin + Send,
    P: PassedRequest,
{
    let idle = may_use_idle.then(|| origin.pool.fast().take()).flatten();
    let was_used = idle.is_some();
    let mut stream = match idle {
        Some(stream) => stream,
        None => connect(client, origin, deadline).await?,
    };
    let sent_at = Instant::now();
    let broken = |error: IoError| NotSent {
        is_unsent: false,
        is_stale: was_used && is_gone(&error) && sent_at.elapsed() < STALE_WITHIN,
        reason: NoResponse::Failed(Failure::Broken(error.into())),
    };
    match write_head_to(client, &mut stream, &request.head, deadline).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => return Err(broken(error)),
        Err(reason) => return Err(NotSent::final_one(reason)),
    }
    let mut input = Buffer::default();
    let mut interim = 0;
    loop {
        let is_first = input.is_empty() && interim == 0;
        match read_from(client, &mut stream, &mut input, deadline).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) if is_first => return Err(broken(error)),
            Ok(Err(error)) => {
                let failure = Failure::Broken(error.into());
                return Err(NotSent::final_one(NoResponse::Failed(failure)));
            }
            Err(reason) => return Err(NotSent::final_one(reason)),
        }
        let read = look_for_head(client, &mut input, request, origin, &mut interim);
        match read {
            Ok(None) => {}
            Ok(Some(head)) => {
                return Ok(Arrived {
                    head,
                    origin: stream,
                    rest: input,
                    connections: Arc::clone(origin.pool.fast()),
                });
            }
            Err(failure) => return Err(NotSent::final_one(NoResponse::Failed(failure))),
        }
    }
}

/// Writes the head of a request.
async fn write_head_to<I>(
    client: &mut Downstream<'_, I>,
    stream: &mut TcpStream,
    head: &[u8],
    deadline: Instant,
) -> Result<Result<(), IoError>, NoResponse>
where
    I: AsyncRead + AsyncWrite + Unpin + Send,
{
    let mut sent = 0;
    while sent < head.len() {
        let written = poll_fn(|cx| {
            if let Poll::Ready(result) = Pin::new(&mut *stream).poll_write(cx, &head[sent..]) {
                return Poll::Ready(Ok(result));
            }
            client.poll_wait(cx, deadline).map(Err)
        });
        match written.await? {
            Ok(count) => sent += count,
            Err(error) => return Ok(Err(error)),
        }
    }
    Ok(Ok(()))
}

/// Reads some bytes of a response. The end of the connection is an error.
async fn read_from<I>(
    client: &mut Downstream<'_, I>,
    stream: &mut TcpStream,
    input: &mut Buffer,
    deadline: Instant,
) -> Result<Result<usize, IoError>, NoResponse>
where
    I: AsyncRead + AsyncWrite + Unpin + Send,
{
    let read = poll_fn(|cx| {
        if let Poll::Ready(result) = poll_read(stream, cx, input) {
            return Poll::Ready(Ok(result));
        }
        client.poll_wait(cx, deadline).map(Err)
    });
    Ok(match read.await? {
        Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
        other => other,
    })
}

/// Looks for the head of a response in what has arrived, and removes it and interim responses
/// before it. Returns `None` if more bytes are needed.
fn look_for_head<I, P: PassedRequest>(
    client: &mut Downstream<'_, I>,
    input: &mut Buffer,
    request: &Outgoing<P>,
    origin: &Origin<Body>,
    interim: &mut usize,
) -> Result<Option<ResponseHead>, Failure> {
    let limits = origin.pool.limits();
    let reading = Reading {
        is_head: request.is_head,
        headers_max: limits.headers,
        makes_map: request.passed.changes_response(),
    };
    while !input.is_empty() {
        let out = client.output.take();
        match response_head::read(input, reading, out) {
            Ok(head) if head.length > limits.head_bytes => return Err(Failure::TooLarge),
            Ok(head) => {
                input.consume(head.length);
                return Ok(Some(head));
            }
            Err((no_head, out)) => {
                client.output.put(out);
                match no_head {
                    NoHead::Later if input.len() <= limits.head_bytes => return Ok(None),
                    NoHead::Interim(length) if *interim < INTERIM_MAX => {
                        *interim += 1;
                        input.consume(length);
                    }
                    NoHead::Later | NoHead::TooLarge => return Err(Failure::TooLarge),
                    NoHead::Interim(_) | NoHead::Broken => {
                        return Err(Failure::Broken("the response is not valid".into()));
                    }
                }
            }
        }
    }
    Ok(None)
}

/// Opens a connection to an origin.
async fn connect<I>(
    client: &mut Downstream<'_, I>,
    origin: &Origin<Body>,
    deadline: Instant,
) -> Result<TcpStream, NotSent>
where
    I: AsyncRead + AsyncWrite + Unpin + Send,
{
    let mut connecting = std::pin::pin!(origin.pool.connect_plain());
    let connected = poll_fn(|cx| {
        if let Poll::Ready(result) = connecting.as_mut().poll(cx) {
            return Poll::Ready(Ok(result));
        }
        client.poll_wait(cx, deadline).map(Err)
    });
    match connected.await {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(error)) => Err(NotSent {
            reason: NoResponse::Failed(Failure::Connect(error)),
            is_unsent: true,
            is_stale: false,
        }),
        Err(reason) => Err(NotSent::final_one(reason)),
    }
}

/// Writes an origin's response to the client.
async fn respond<I, P>(
    client: &mut Downstream<'_, I>,
    mut request: Box<Outgoing<P>>,
    arrived: Arrived,
    outcome: OriginOutcome,
) -> Result<(), IoError>
where
    I: AsyncRead + AsyncWrite + Unpin + Send,
    P: PassedRequest,
{
    let Arrived {
        head,
        origin,
        rest,
        connections,
    } = arrived;
    let is_last = request.open.note_head(head.status, false) || request.wants_close;
    match head.form {
        Form::Lines(mut lines) => {
            request.passed.handle_response(head.status, &mut lines);
            client.output.put(lines);
        }
        Form::Map(mut response) => {
            response.extensions_mut().insert(outcome);
            let response = Box::pin(request.passed.finish(*response)).await;
            let out = client.output.bytes();
            write_head(out, &response, request.is_head, head.framing);
        }
    }
    end_head(client.output.bytes(), is_last);
    // The line in the access log ends with the head, as on the slow path.
    drop(request.passed);
    let body = Transfer {
        origin,
        rest,
        reader: BodyReader::new(head.framing),
        idle: client.protocols.write_idle,
    };
    let reusable = body.run(client, head.framing == Framing::None).await?;
    if head.keeps_alive
        && let Some(stream) = reusable
    {
        connections.put(stream, Handle::current().id());
    }
    client.end_request(is_last)
}

/// Number of bytes of a body that were read, and what they are.
type ReadBody = (usize, Result<Progress, Malformed>);

/// Body on its way from an origin to the client.
struct Transfer {
    origin: TcpStream,
    rest: Buffer,
    reader: BodyReader,
    idle: Duration,
}

impl Transfer {
    /// Moves the body. Returns the connection if the response ended exactly.
    async fn run<I>(
        mut self,
        client: &mut Downstream<'_, I>,
        has_no_body: bool,
    ) -> Result<Option<TcpStream>, IoError>
    where
        I: AsyncRead + AsyncWrite + Unpin + Send,
    {
        let mut came = self.rest.len();
        let mut read = self.reader.read(&self.rest, client.output.bytes());
        self.rest.clear();
        let mut turn = 0;
        loop {
            // What is valid goes out even if a mistake follows, so that the client knows of it.
            client.flush().await?;
            if let Progress::Ended(at) = read.map_err(|_| malformed())? {
                let is_exact = at == came && !(has_no_body && has_bytes(&self.origin));
                return Ok(is_exact.then_some(self.origin));
            }
            if turn >= TURN_BYTES {
                turn = 0;
                tokio::task::yield_now().await;
            }
            let deadline = Instant::now() + self.idle;
            match poll_fn(|cx| self.poll_more(client, cx, deadline)).await? {
                Some((count, next)) => (came, read) = (count, next),
                None => {
                    let ended = self.reader.end(client.output.bytes());
                    ended.map_err(|_| early())?;
                    client.flush().await?;
                    return Ok(None);
                }
            }
            turn += came;
        }
    }

    /// Reads more of the body. Returns `None` at the end of the connection.
    fn poll_more<I>(
        &mut self,
        client: &mut Downstream<'_, I>,
        cx: &mut Context<'_>,
        deadline: Instant,
    ) -> Poll<Result<Option<ReadBody>, IoError>>
    where
        I: AsyncRead + AsyncWrite + Unpin + Send,
    {
        let (reader, output) = (&mut self.reader, &mut client.output);
        let read = poll_read_with(&mut self.origin, cx, |bytes| {
            (!bytes.is_empty()).then(|| (bytes.len(), reader.read(bytes, output.bytes())))
        })?;
        if read.is_ready() {
            return read.map(Ok);
        }
        match ready!(client.poll_wait(cx, deadline)) {
            NoResponse::ClientGone(error) => Poll::Ready(Err(error)),
            _ => Poll::Ready(Err(IoError::new(
                ErrorKind::TimedOut,
                "the origin sends no more of its response",
            ))),
        }
    }
}

impl<I: AsyncRead + AsyncWrite + Unpin + Send> Downstream<'_, I> {
    /// Resolves if the wait for an origin is over, because the client is gone or it was too long.
    fn poll_wait(&mut self, cx: &mut Context<'_>, deadline: Instant) -> Poll<NoResponse> {
        if let Poll::Ready(Err(error)) = self.poll_client(cx) {
            return Poll::Ready(NoResponse::ClientGone(error));
        }
        self.timer.poll(cx, deadline).map(|()| NoResponse::TimedOut)
    }
}

fn malformed() -> IoError {
    IoError::other("a chunk of a response is malformed")
}

fn early() -> IoError {
    IoError::new(ErrorKind::UnexpectedEof, "a response ended early")
}

/// Whether bytes have arrived that belong to no response. An origin may send a body where none is
/// allowed, a moment after the head.
fn has_bytes(stream: &TcpStream) -> bool {
    use rustix::net::{RecvFlags, recv};
    let mut byte = [0];
    let peeked = recv(stream, &mut byte, RecvFlags::PEEK | RecvFlags::DONTWAIT);
    peeked != Err(rustix::io::Errno::AGAIN)
}

impl Reusable for TcpStream {
    /// Whether the origin has neither closed the connection nor sent bytes that nobody asked for.
    fn is_ready(&self) -> bool {
        let read = self.try_read(&mut [0]);
        read.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
    }

    fn is_closed(&self) -> bool {
        !self.is_ready()
    }
}
