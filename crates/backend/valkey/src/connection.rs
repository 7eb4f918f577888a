//! Connection to a server, shared by all requests.
//!
//! Deliberately absent: reconnecting; see [`crate::link`].

use std::sync::Arc;

use anteroom_config::{Durable, HostPort};
use anteroom_store::{Durability, Identity};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, Pipeline, RedisConnectionInfo, RedisError, Value};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::rustls::pki_types::ServerName;

use crate::access::Access;
use crate::durability::{self, Fsync, Persistence};
use crate::failure::{CALL_TIMEOUT, CONNECT_TIMEOUT, Failure, Reply};
use crate::info::Info;
use crate::observed_stream::{ObservedReply, ObservedStream};

/// Connection to a server. Ends with its last reference.
pub(crate) struct Connection {
    pub(crate) server: HostPort,
    /// Identity of the server process. A process that ends closes its connections, so this holds
    /// for all replies over this one.
    pub(crate) identity: Identity,
    /// Promise of the server about its writes.
    pub(crate) durability: Durability,
    /// Promise of the operator, and the settings that bear on it.
    pub(crate) durable: (Durable, Persistence),
    pipe: MultiplexedConnection,
    seen: ObservedReply,
    driver: AbortHandle,
}

/// Command, and options for a server of a cluster.
#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) command: Cmd,
    /// Whether to send `ASKING` first; a server that is importing the slot requires it.
    pub(crate) is_asking: bool,
    /// Server process to which the command is restricted, if any.
    pub(crate) meant_for: Option<Identity>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        // Otherwise the task would wait for replies that may never come, and keep the socket open.
        self.driver.abort();
    }
}

impl Connection {
    /// Connects, authenticates and returns the server's `INFO`. Takes at most [`CONNECT_TIMEOUT`].
    pub(crate) async fn open(server: &HostPort, access: &Access) -> Result<(Self, Info), Failure> {
        let deadline = Instant::now() + CONNECT_TIMEOUT;
        let mut connection = Self::dial(server, access, deadline).await?;
        let info = timeout_at(deadline, connection.handshake(access)).await;
        let info = info.map_err(|_| connection.timeout())??;
        let identity = info.identity;
        connection.identity = identity.ok_or_else(|| connection.unexpected_reply("no run id"))?;
        let persistence = timeout_at(deadline, connection.persistence(&info)).await;
        let persistence = persistence.map_err(|_| connection.timeout())??;
        connection.durability = durability::of(access, persistence);
        connection.durable = (access.promise.durable, persistence);
        Ok((connection, info))
    }

    /// Connects to a sentinel. Most require no password; those that do get ours.
    pub(crate) async fn open_to_sentinel(
        server: &HostPort,
        access: &Access,
    ) -> Result<Self, Failure> {
        let deadline = Instant::now() + CONNECT_TIMEOUT;
        let connection = Self::dial(server, access, deadline).await?;
        let reply = connection.execute(&redis::cmd("PING")).await;
        match (reply, authenticate(access)) {
            (Err(failure), Some(command)) if failure.requires_password() => {
                connection.execute(&command).await?;
            }
            (reply, _) => {
                reply?;
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
        // Commands are small and wait for each other; Nagle's algorithm would cost 40 ms.
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

    /// Starts the client over a stream. [`Self::handshake`] authenticates, as it handles the
    /// replies.
    async fn over<S>(server: &HostPort, stream: S) -> Result<Self, Failure>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let anonymous = RedisConnectionInfo::default().set_skip_set_lib_name();
        // Timeouts are applied here, around whole steps.
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(None)
            .set_response_timeout(None);
        let (stream, seen) = ObservedStream::new(stream);
        let made = MultiplexedConnection::new_with_config(&anonymous, stream, config).await;
        let (pipe, driver) = made.map_err(|error| Failure::of_request(server, error))?;
        Ok(Self {
            server: server.clone(),
            identity: Identity(0),
            durability: Durability::Unknown,
            durable: (Durable::No, Persistence::default()),
            pipe,
            seen,
            driver: tokio::spawn(driver).abort_handle(),
        })
    }

    /// Authenticates, selects the database and reads `INFO`, in one round trip.
    async fn handshake(&self, access: &Access) -> Result<Info, Failure> {
        let mut handshake = Pipeline::new();
        if let Some(command) = authenticate(access) {
            handshake.add_command(command);
        }
        if access.database != 0 {
            handshake.cmd("SELECT").arg(access.database);
        }
        // All sections: servers before 7.0 return either one or all.
        handshake.cmd("INFO");
        let info = Info::read(&text(self, self.execute_all(&handshake).await?)?);
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
        // It would refuse every other command, and its settings are not those of later.
        if info.is_loading {
            return Err(Failure::ErrorReply {
                server: self.server.clone(),
                reply: Reply::read("LOADING"),
            });
        }
        Ok(info)
    }

    /// Returns how the server keeps its writes.
    async fn persistence(&self, info: &Info) -> Result<Persistence, Failure> {
        let mut command = redis::cmd("CONFIG");
        command.arg("GET").arg(Fsync::SETTINGS);
        let fsync = match self.execute(&command).await {
            Ok(value) => Fsync::of_config(value),
            // Managed servers, and users without this right.
            Err(Failure::ErrorReply { .. }) => Fsync::Hidden,
            Err(failure) => return Err(failure),
        };
        Ok(Persistence {
            has_log: info.has_log,
            was_promoted: info.was_promoted,
            fsync,
        })
    }

    /// Sends a request and waits for the reply, at most [`CALL_TIMEOUT`].
    pub(crate) async fn send(&self, request: &Request) -> Result<Value, Failure> {
        if request
            .meant_for
            .is_some_and(|other| other != self.identity)
        {
            return Err(Failure::MeantForAnother {
                server: self.server.clone(),
            });
        }
        if !request.is_asking {
            return self.execute(&request.command).await;
        }
        // Both are sent in one piece, so that no other command gets between them.
        let mut both = Pipeline::new();
        both.cmd("ASKING");
        both.add_command(request.command.clone());
        self.execute_all(&both).await
    }

    /// Sends a command and waits for the reply, at most [`CALL_TIMEOUT`].
    pub(crate) async fn execute(&self, command: &Cmd) -> Result<Value, Failure> {
        let mut pipe = self.pipe.clone();
        let reply = timeout(CALL_TIMEOUT, pipe.send_packed_command(command)).await;
        let reply = reply.map_err(|_| self.timeout())?;
        self.check_reply(reply.map_err(|error| self.failed(error))?)
    }

    /// Sends all commands at once and returns the last reply, or the first error.
    async fn execute_all(&self, commands: &Pipeline) -> Result<Value, Failure> {
        let mut pipe = self.pipe.clone();
        let sent = pipe.send_packed_commands(commands, 0, commands.len());
        let replies = timeout(CALL_TIMEOUT, sent).await;
        let replies = replies.map_err(|_| self.timeout())?;
        let replies = replies.map_err(|error| self.failed(error))?;
        let mut last = Value::Nil;
        for reply in replies {
            last = self.check_reply(reply)?;
        }
        Ok(last)
    }

    /// Converts an error reply into a failure.
    fn check_reply(&self, reply: Value) -> Result<Value, Failure> {
        match reply {
            Value::ServerError(error) => Err(Failure::ErrorReply {
                server: self.server.clone(),
                reply: Reply::new(&error),
            }),
            reply => Ok(reply),
        }
    }

    /// Returns the client's error, or what the stream showed if that says more.
    fn failed(&self, error: RedisError) -> Failure {
        match Failure::of_request(&self.server, error) {
            failure @ Failure::Broken { .. } => self.seen.explain(&self.server).unwrap_or(failure),
            failure => failure,
        }
    }

    fn timeout(&self) -> Failure {
        Failure::Timeout {
            server: self.server.clone(),
        }
    }

    /// Returns the failure of a reply of another type than expected.
    pub(crate) fn unexpected_reply(&self, what: &'static str) -> Failure {
        Failure::UnexpectedReply {
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

/// Returns the text of a reply.
pub(crate) fn text(connection: &Connection, reply: Value) -> Result<String, Failure> {
    match reply {
        Value::BulkString(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => Ok(text),
        _ => Err(connection.unexpected_reply("no text")),
    }
}
