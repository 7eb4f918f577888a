//! Connection to a server, shared by all requests.
//!
//! Commands are sent in order, and replies come back in that order. A task of its own writes and
//! reads, so a caller that stops waiting leaves no half command behind. All queues are bounded.
//!
//! Deliberately absent: reconnecting; see [`crate::link`].

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use anteroom_config::HostPort;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until, timeout};

use crate::failure::{CONNECT_TIMEOUT, Failure, REPLY_TIMEOUT};
use crate::protocol::{Command, ProtocolError, Reply};
use crate::undo::{Acquired, Undo};

/// Most requests that wait for their replies, and most that wait to be sent. At a tenth of a
/// millisecond each that is a tenth of a second; a server that is further behind gets no more.
const WAITING_MAX: usize = 1_024;
/// Most bytes that are buffered ahead of the socket. A request is small; only states of logs are
/// not.
const AHEAD_BYTES: usize = 64 << 10;

/// Connection to a server. Ends with its last reference.
#[derive(Debug)]
pub(crate) struct Connection {
    server: HostPort,
    jobs: mpsc::Sender<Job>,
    driver: AbortHandle,
}

/// Encoded commands and the caller that waits for their replies.
#[derive(Debug)]
struct Job {
    bytes: Vec<u8>,
    waiting: Waiting,
}

#[derive(Debug)]
struct Waiting {
    replies: Vec<Reply>,
    count: usize,
    /// Undoes the first command, if it was carried out.
    undo: Option<Undo>,
    sender: oneshot::Sender<Result<Response, ProtocolError>>,
}

/// Replies of a server.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) replies: Vec<Reply>,
    /// Acquire of the commands; undone unless the receiver keeps it.
    pub(crate) acquired: Option<Acquired>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        // Otherwise the task would wait for unwanted replies and keep the socket open.
        self.driver.abort();
    }
}

impl Connection {
    /// Connects and checks that the server speaks the protocol.
    pub(crate) async fn open(server: &HostPort) -> Result<Self, Failure> {
        let opening = timeout(CONNECT_TIMEOUT, Self::dial(server)).await;
        let late = |_| Failure::ConnectTimeout {
            server: server.clone(),
        };
        opening.map_err(late)?
    }

    async fn dial(server: &HostPort) -> Result<Self, Failure> {
        let no_connection = |source| Failure::Connect {
            server: server.clone(),
            source: Arc::new(source),
        };
        let stream = TcpStream::connect((server.host.as_str(), server.port)).await;
        let stream = stream.map_err(no_connection)?;
        // Commands are small and wait for each other; Nagle's algorithm would cost 40 ms.
        stream.set_nodelay(true).map_err(no_connection)?;
        let (jobs, queue) = mpsc::channel(WAITING_MAX);
        let connection = Self {
            server: server.clone(),
            jobs,
            driver: tokio::spawn(drive(stream, queue)).abort_handle(),
        };
        let hello = connection.execute(&[Command::Hello], None).await;
        let hello = hello.map_err(|failure| match failure {
            Failure::Broken { server } => Failure::HungUp { server },
            other => other,
        });
        match hello?.replies.as_slice() {
            [Reply::Hello] => Ok(connection),
            [Reply::Error(message)] => Err(Failure::ServerError {
                server: server.clone(),
                message: message.clone(),
            }),
            _ => Err(connection.unexpected_reply()),
        }
    }

    /// Sends commands and waits for a reply to each. The caller sets the timeout: what was acquired
    /// by then, or is acquired later, is undone if no caller waits any more.
    pub(crate) async fn execute(
        &self,
        commands: &[Command<'_>],
        undo: Option<Undo>,
    ) -> Result<Response, Failure> {
        let mut bytes = Vec::with_capacity(96 * commands.len());
        for command in commands {
            command.write(&mut bytes);
        }
        let (sender, response) = oneshot::channel();
        let waiting = Waiting {
            replies: Vec::with_capacity(commands.len()),
            count: commands.len(),
            undo,
            sender,
        };
        let server = || self.server.clone();
        let job = Job { bytes, waiting };
        self.jobs.try_send(job).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => Failure::Full { server: server() },
            mpsc::error::TrySendError::Closed(_) => Failure::Broken { server: server() },
        })?;
        match response.await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(source)) => Err(Failure::Malformed {
                server: server(),
                source,
            }),
            Err(_) => Err(Failure::Broken { server: server() }),
        }
    }

    /// Returns whether the connection has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.jobs.is_closed()
    }

    /// Returns the error of a reply that does not match its command.
    pub(crate) fn unexpected_reply(&self) -> Failure {
        Failure::UnexpectedReply {
            server: self.server.clone(),
        }
    }
}

impl Waiting {
    fn complete(self) {
        let first = self.replies.first();
        let undo = self.undo.filter(|undo| undo.is_due_after(first));
        let response = Response {
            replies: self.replies,
            acquired: undo.map(Acquired::new),
        };
        // If the caller has left, the response is dropped here, which undoes the acquire.
        let _ = self.sender.send(Ok(response));
    }
}

/// Writes commands and delivers replies until the connection is dropped or ends. Waiting callers
/// then get an error.
async fn drive(stream: TcpStream, mut jobs: mpsc::Receiver<Job>) {
    let mut pipe = Pipe::default();
    let ended = pump(stream, &mut jobs, &mut pipe).await;
    // Closed before waiting callers learn of it, so that the next request does not come here.
    jobs.close();
    if let Err(Ended::Malformed(error)) = ended
        && let Some(waiting) = pipe.waiting.pop_front()
    {
        // The caller may have left.
        let _ = waiting.sender.send(Err(error));
    }
}

/// Commands and replies in flight.
#[derive(Default)]
struct Pipe {
    out: Vec<u8>,
    /// Bytes of `out` that were written.
    written: usize,
    read: Vec<u8>,
    waiting: VecDeque<Waiting>,
}

/// Reason for the end of a connection.
enum Ended {
    Gone,
    Malformed(ProtocolError),
}

impl From<io::Error> for Ended {
    fn from(_: io::Error) -> Self {
        Self::Gone
    }
}

async fn pump(
    mut stream: TcpStream,
    jobs: &mut mpsc::Receiver<Job>,
    pipe: &mut Pipe,
) -> Result<(), Ended> {
    let (mut reader, mut writer) = stream.split();
    let mut reply_until = Instant::now() + REPLY_TIMEOUT;
    loop {
        let may_take = pipe.waiting.len() < WAITING_MAX && pipe.out.len() < AHEAD_BYTES;
        tokio::select! {
            job = jobs.recv(), if may_take => {
                let Some(Job { bytes, waiting }) = job else {
                    return Ok(());
                };
                if pipe.waiting.is_empty() {
                    reply_until = Instant::now() + REPLY_TIMEOUT;
                }
                pipe.out.extend_from_slice(&bytes);
                pipe.waiting.push_back(waiting);
            }
            wrote = writer.write(&pipe.out[pipe.written..]), if !pipe.out.is_empty() => {
                pipe.advance(wrote?)?;
            }
            read = reader.read_buf(&mut pipe.read) => {
                if read? == 0 {
                    return Err(Ended::Gone);
                }
                reply_until = Instant::now() + REPLY_TIMEOUT;
                pipe.deliver()?;
            }
            () = sleep_until(reply_until), if !pipe.waiting.is_empty() => {
                return Err(Ended::Gone);
            }
        }
    }
}

impl Pipe {
    fn advance(&mut self, bytes: usize) -> Result<(), Ended> {
        if bytes == 0 {
            return Err(Ended::Gone);
        }
        self.written += bytes;
        if self.written == self.out.len() {
            self.out.clear();
            self.written = 0;
        }
        Ok(())
    }

    /// Delivers replies to waiting callers, in order.
    fn deliver(&mut self) -> Result<(), Ended> {
        let mut consumed = 0;
        while let Some((reply, length)) =
            Reply::read(&self.read[consumed..]).map_err(Ended::Malformed)?
        {
            consumed += length;
            let Some(first) = self.waiting.front_mut() else {
                // No command waits for this reply.
                return Err(Ended::Gone);
            };
            first.replies.push(reply);
            if first.replies.len() == first.count
                && let Some(waiting) = self.waiting.pop_front()
            {
                waiting.complete();
            }
        }
        self.read.drain(..consumed);
        Ok(())
    }
}
