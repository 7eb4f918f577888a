//! One connection to one server, shared by all who call.
//!
//! Commands go out in the order in which they come, and answers come back in that order. A task of
//! its own writes and reads, so nobody who stops waiting leaves half a command behind. All that
//! waits is bounded.
//!
//! Deliberately absent: when to open another one; see [`crate::link`].

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use anteroom_config::HostPort;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until, timeout};

use crate::failure::{CONNECT_TIMEOUT, Failure, SILENCE_MAX};
use crate::protocol::{Command, ProtocolError, Reply};
use crate::undo::{Acquired, Undo};

/// How many calls may wait for their answers, and how many more to be sent. At a tenth of a
/// millisecond each that is a tenth of a second; a server that is further behind is told no more.
const WAITING_MAX: usize = 1_024;
/// How much is written down ahead of what the server takes. A call is small; only states of logs
/// are not.
const AHEAD_BYTES: usize = 64 << 10;

/// A connection to a server. Ends when the last one who holds it lets go.
#[derive(Debug)]
pub(crate) struct Connection {
    server: HostPort,
    jobs: mpsc::Sender<Job>,
    driver: AbortHandle,
}

/// Commands that were written down, and who waits for the answers to them.
#[derive(Debug)]
struct Job {
    bytes: Vec<u8>,
    waiting: Waiting,
}

#[derive(Debug)]
struct Waiting {
    replies: Vec<Reply>,
    count: usize,
    /// What takes back the first command, if that is done.
    undo: Option<Undo>,
    tell: oneshot::Sender<Result<Answer, ProtocolError>>,
}

/// What a server has answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) replies: Vec<Reply>,
    /// What it has charged by that: taken back when nobody takes it from here.
    pub(crate) charged: Option<Acquired>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        // Otherwise it would wait for answers that nobody wants, and keep the socket.
        self.driver.abort();
    }
}

impl Connection {
    /// Connects, and sees whether somebody there speaks our language.
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
        // Calls are small and wait for each other; collecting them would cost 40 ms.
        stream.set_nodelay(true).map_err(no_connection)?;
        let (jobs, queue) = mpsc::channel(WAITING_MAX);
        let connection = Self {
            server: server.clone(),
            jobs,
            driver: tokio::spawn(drive(stream, queue)).abort_handle(),
        };
        let greeted = connection.ask(&[Command::Hello], None).await;
        let greeted = greeted.map_err(|failure| match failure {
            Failure::Broken { server } => Failure::HungUp { server },
            other => other,
        });
        match greeted?.replies.as_slice() {
            [Reply::Hello] => Ok(connection),
            [Reply::Complaint(complaint)] => Err(Failure::Complaint {
                server: server.clone(),
                complaint: complaint.clone(),
            }),
            _ => Err(connection.unasked()),
        }
    }

    /// Sends commands and waits for an answer to each. How long that may take is for the caller to
    /// say: what has charged by then, or charges later, is undone if nobody waits any more.
    pub(crate) async fn ask(
        &self,
        commands: &[Command<'_>],
        undo: Option<Undo>,
    ) -> Result<Answer, Failure> {
        let mut bytes = Vec::with_capacity(96 * commands.len());
        for command in commands {
            command.write(&mut bytes);
        }
        let (tell, answer) = oneshot::channel();
        let waiting = Waiting {
            replies: Vec::with_capacity(commands.len()),
            count: commands.len(),
            undo,
            tell,
        };
        let server = || self.server.clone();
        let job = Job { bytes, waiting };
        self.jobs.try_send(job).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => Failure::Full { server: server() },
            mpsc::error::TrySendError::Closed(_) => Failure::Broken { server: server() },
        })?;
        match answer.await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(source)) => Err(Failure::Strange {
                server: server(),
                source,
            }),
            Err(_) => Err(Failure::Broken { server: server() }),
        }
    }

    /// Whether nothing goes over it any more.
    pub(crate) fn is_over(&self) -> bool {
        self.jobs.is_closed()
    }

    /// For answers to something else.
    pub(crate) fn unasked(&self) -> Failure {
        Failure::Unasked {
            server: self.server.clone(),
        }
    }
}

impl Waiting {
    fn tell(self) {
        let first = self.replies.first();
        let undo = self.undo.filter(|undo| undo.is_due_after(first));
        let answer = Answer {
            replies: self.replies,
            charged: undo.map(Acquired::new),
        };
        // If nobody waits any more the answer comes back, and what was charged is taken back as it
        // goes.
        let _ = self.tell.send(Ok(answer));
    }
}

/// Writes what is asked and tells the answers, until somebody lets go. Then all who wait see that
/// nobody answers.
async fn drive(stream: TcpStream, mut jobs: mpsc::Receiver<Job>) {
    let mut pipe = Pipe::default();
    let ended = pump(stream, &mut jobs, &mut pipe).await;
    // Closed before those who wait are told, so that the next who comes does not ask here.
    jobs.close();
    if let Err(Ended::Strange(error)) = ended
        && let Some(waiting) = pipe.waiting.pop_front()
    {
        // Nobody may be waiting any more.
        let _ = waiting.tell.send(Err(error));
    }
}

/// What is on its way.
#[derive(Default)]
struct Pipe {
    out: Vec<u8>,
    /// How much of `out` has gone.
    gone: usize,
    read: Vec<u8>,
    waiting: VecDeque<Waiting>,
}

/// Why nothing goes over a connection any more.
enum Ended {
    Gone,
    Strange(ProtocolError),
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
    let mut silent_until = Instant::now() + SILENCE_MAX;
    loop {
        let may_take = pipe.waiting.len() < WAITING_MAX && pipe.out.len() < AHEAD_BYTES;
        tokio::select! {
            job = jobs.recv(), if may_take => {
                let Some(Job { bytes, waiting }) = job else {
                    return Ok(());
                };
                if pipe.waiting.is_empty() {
                    silent_until = Instant::now() + SILENCE_MAX;
                }
                pipe.out.extend_from_slice(&bytes);
                pipe.waiting.push_back(waiting);
            }
            wrote = writer.write(&pipe.out[pipe.gone..]), if !pipe.out.is_empty() => {
                pipe.has_gone(wrote?)?;
            }
            read = reader.read_buf(&mut pipe.read) => {
                if read? == 0 {
                    return Err(Ended::Gone);
                }
                silent_until = Instant::now() + SILENCE_MAX;
                pipe.tell()?;
            }
            () = sleep_until(silent_until), if !pipe.waiting.is_empty() => {
                return Err(Ended::Gone);
            }
        }
    }
}

impl Pipe {
    fn has_gone(&mut self, bytes: usize) -> Result<(), Ended> {
        if bytes == 0 {
            return Err(Ended::Gone);
        }
        self.gone += bytes;
        if self.gone == self.out.len() {
            self.out.clear();
            self.gone = 0;
        }
        Ok(())
    }

    /// Gives answers to those who wait, in their order.
    fn tell(&mut self) -> Result<(), Ended> {
        let mut told = 0;
        while let Some((reply, length)) = Reply::read(&self.read[told..]).map_err(Ended::Strange)? {
            told += length;
            let Some(first) = self.waiting.front_mut() else {
                // Nobody asked.
                return Err(Ended::Gone);
            };
            first.replies.push(reply);
            if first.replies.len() == first.count
                && let Some(waiting) = self.waiting.pop_front()
            {
                waiting.tell();
            }
        }
        self.read.drain(..told);
        Ok(())
    }
}
