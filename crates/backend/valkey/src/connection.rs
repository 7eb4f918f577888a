//! One connection to one server, shared by all who call.
//!
//! Deliberately absent: when to open another one; see [`crate::link`].

use std::sync::Arc;

use anteroom_config::HostPort;
use anteroom_store::Identity;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, Pipeline, RedisConnectionInfo, RedisError, Value};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::rustls::pki_types::ServerName;

use crate::access::Access;
use crate::failure::{CALL_TIMEOUT, CONNECT_TIMEOUT, Failure, Reply};
use crate::info::Info;
use crate::witness::{ObservedReply, ObservedStream};

/// A connection to a server. Ends when the last one who holds it lets go.
pub(crate) struct Connection {
    pub(crate) server: HostPort,
    /// Who is at the other end. A process that ends takes its connections with it, so this holds
    /// for all that comes over this one.
    pub(crate) identity: Identity,
    pipe: MultiplexedConnection,
    seen: ObservedReply,
    driver: AbortHandle,
}

/// One command, and how a server of a cluster is to take it.
#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) command: Cmd,
    /// A server that is just being given the slot answers only if asked for it expressly.
    pub(crate) is_asking: bool,
    /// It is for nobody else.
    pub(crate) meant_for: Option<Identity>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        // Otherwise it would wait for answers that may never come, and keep the socket.
        self.driver.abort();
    }
}

impl Connection {
    /// Connects, and shows who we are; what the server says of itself comes back. Takes at most
    /// [`CONNECT_TIMEOUT`].
    pub(crate) async fn open(server: &HostPort, access: &Access) -> Result<(Self, Info), Failure> {
        let deadline = Instant::now() + CONNECT_TIMEOUT;
        let mut connection = Self::dial(server, access, deadline).await?;
        let greeted = timeout_at(deadline, connection.greet(access)).await;
        let info = greeted.map_err(|_| connection.timeout())??;
        let identity = info.identity;
        connection.identity = identity.ok_or_else(|| connection.strange("no run id"))?;
        Ok((connection, info))
    }

    /// Connects to a sentinel. They mostly want no password; those that want one get ours.
    pub(crate) async fn open_to_sentinel(
        server: &HostPort,
        access: &Access,
    ) -> Result<Self, Failure> {
        let deadline = Instant::now() + CONNECT_TIMEOUT;
        let connection = Self::dial(server, access, deadline).await?;
        let asked = connection.ask(&redis::cmd("PING")).await;
        match (asked, authenticate(access)) {
            (Err(failure), Some(command)) if failure.wants_password() => {
                connection.ask(&command).await?;
            }
            (asked, _) => {
                asked?;
            }
        }
        Ok(connection)
    }

    async fn dial(server: &HostPort, access: &Access, deadline: Instant) -> Result<Self, Failure> {
        let no_connection = |source| Failure::Connect {
            server: server.clone(),
            source: Arc::new(source),
        };
        let tcp = TcpStream::connect((server.host.as_str(), server.port));
        let tcp = timeout_at(deadline, tcp).await;
        let tcp = tcp.map_err(|_| Failure::ConnectTimeout {
            server: server.clone(),
        })?;
        let tcp = tcp.map_err(no_connection)?;
        // Calls are small and wait for each other; collecting them would cost 40 ms.
        tcp.set_nodelay(true).map_err(no_connection)?;
        let Some(connector) = &access.tls else {
            return Self::over(server, tcp).await;
        };
        let name = ServerName::try_from(server.host.clone())
            .map_err(|error| no_connection(std::io::Error::other(error)))?;
        let tls = timeout_at(deadline, connector.connect(name, tcp)).await;
        let tls = tls.map_err(|_| Failure::TlsTimeout {
            server: server.clone(),
        })?;
        let tls = tls.map_err(|source| Failure::Tls {
            server: server.clone(),
            source: Arc::new(source),
        })?;
        Self::over(server, tls).await
    }

    /// Who we are is said by [`Self::greet`], where what the server answers is understood.
    async fn over<S>(server: &HostPort, stream: S) -> Result<Self, Failure>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let nobody = RedisConnectionInfo::default().set_skip_set_lib_name();
        // Time-outs are kept here, around whole steps.
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(None)
            .set_response_timeout(None);
        let (stream, seen) = ObservedStream::new(stream);
        let made = MultiplexedConnection::new_with_config(&nobody, stream, config).await;
        let (pipe, driver) = made.map_err(|error| Failure::of_call(server, error))?;
        Ok(Self {
            server: server.clone(),
            identity: Identity(0),
            pipe,
            seen,
            driver: tokio::spawn(driver).abort_handle(),
        })
    }

    /// Name and password, database, and what the server is, in one round trip.
    async fn greet(&self, access: &Access) -> Result<Info, Failure> {
        let mut greeting = Pipeline::new();
        if let Some(command) = authenticate(access) {
            greeting.add_command(command);
        }
        if access.database != 0 {
            greeting.cmd("SELECT").arg(access.database);
        }
        greeting.cmd("INFO").arg("server");
        let info = Info::read(&text(self, self.ask_all(&greeting).await?)?);
        if info.is_sentinel() {
            return Err(Failure::IsSentinel {
                server: self.server.clone(),
            });
        }
        if info.is_too_old() {
            return Err(Failure::TooOld {
                server: self.server.clone(),
                make: info.make.unwrap_or_default(),
            });
        }
        Ok(info)
    }

    /// Sends a request and waits for the answer, at most [`CALL_TIMEOUT`].
    pub(crate) async fn call(&self, request: &Request) -> Result<Value, Failure> {
        if request
            .meant_for
            .is_some_and(|other| other != self.identity)
        {
            return Err(Failure::MeantForAnother {
                server: self.server.clone(),
            });
        }
        if !request.is_asking {
            return self.ask(&request.command).await;
        }
        // Both leave in one piece, so that no other call gets between them.
        let mut both = Pipeline::new();
        both.cmd("ASKING");
        both.add_command(request.command.clone());
        self.ask_all(&both).await
    }

    /// Sends a command and waits for the answer, at most [`CALL_TIMEOUT`].
    pub(crate) async fn ask(&self, command: &Cmd) -> Result<Value, Failure> {
        let mut pipe = self.pipe.clone();
        let answer = timeout(CALL_TIMEOUT, pipe.send_packed_command(command)).await;
        let answer = answer.map_err(|_| self.timeout())?;
        self.understood(answer.map_err(|error| self.failed(error))?)
    }

    /// Sends all commands at once; the last answer is what counts, if there was no error before.
    async fn ask_all(&self, commands: &Pipeline) -> Result<Value, Failure> {
        let mut pipe = self.pipe.clone();
        let sent = pipe.send_packed_commands(commands, 0, commands.len());
        let answers = timeout(CALL_TIMEOUT, sent).await;
        let answers = answers.map_err(|_| self.timeout())?;
        let answers = answers.map_err(|error| self.failed(error))?;
        let mut last = Value::Nil;
        for answer in answers {
            last = self.understood(answer)?;
        }
        Ok(last)
    }

    /// An answer that is an error is one.
    fn understood(&self, answer: Value) -> Result<Value, Failure> {
        match answer {
            Value::ServerError(error) => Err(Failure::Answer {
                server: self.server.clone(),
                reply: Reply::new(&error),
            }),
            answer => Ok(answer),
        }
    }

    /// What the client saw, or what came over the stream if that says more.
    fn failed(&self, error: RedisError) -> Failure {
        match Failure::of_call(&self.server, error) {
            failure @ Failure::Broken { .. } => self.seen.explain(&self.server).unwrap_or(failure),
            failure => failure,
        }
    }

    fn timeout(&self) -> Failure {
        Failure::Timeout {
            server: self.server.clone(),
        }
    }

    /// For answers that have another form than expected.
    pub(crate) fn strange(&self, what: &'static str) -> Failure {
        Failure::Strange {
            server: self.server.clone(),
            what,
        }
    }
}

fn authenticate(access: &Access) -> Option<Cmd> {
    let password = access.password.as_ref()?;
    let mut command = redis::cmd("AUTH");
    if let Some(username) = &access.username {
        command.arg(username);
    }
    command.arg(password);
    Some(command)
}

/// The text of an answer that must be one.
pub(crate) fn text(connection: &Connection, answer: Value) -> Result<String, Failure> {
    match answer {
        Value::BulkString(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => Ok(text),
        _ => Err(connection.strange("no text")),
    }
}
