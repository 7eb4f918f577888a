//! Link to a memcached server.
//!
//! [`anteroom_limit_store::link`] decides when to connect, and how long to wait after a failure.

use anteroom_config::HostPort;
use anteroom_limit_store::link::{Dial, Link as StoreLink, NoConnection};

use crate::connection::{Connection, Response};
use crate::failure::Failure;
use crate::protocol::{Command, Reply};
use crate::undo::Undo;

/// Link to a server. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Link(StoreLink<Server>);

#[derive(Debug)]
struct Server(HostPort);

impl Dial for Server {
    type Connection = Connection;
    type Failure = Failure;

    async fn dial(&self) -> Result<Connection, Failure> {
        Connection::open(&self.0).await
    }

    fn is_over(connection: &Connection) -> bool {
        connection.is_over()
    }

    fn no_connection(&self, reason: NoConnection) -> Failure {
        match reason {
            NoConnection::Closed | NoConnection::Abandoned => Failure::Closed,
            NoConnection::Late => Failure::ConnectTimeout {
                server: self.0.clone(),
            },
        }
    }
}

impl Link {
    pub(crate) fn to(server: HostPort) -> Self {
        Self(StoreLink::new(Server(server)))
    }

    pub(crate) fn server(&self) -> &HostPort {
        &self.0.dial().0
    }

    /// Ends the connection; later requests fail.
    pub(crate) fn close(&self) {
        self.0.close();
    }

    /// Sends commands once. An error reply of the server is a failure.
    pub(crate) async fn execute(&self, commands: &[Command<'_>]) -> Result<Vec<Reply>, Failure> {
        let response = self.acquire(commands, None).await?;
        Ok(response.replies)
    }

    /// Sends commands, the first of which acquires something; `undo` undoes it unless the caller
    /// keeps it.
    pub(crate) async fn acquire(
        &self,
        commands: &[Command<'_>],
        undo: Option<Undo>,
    ) -> Result<Response, Failure> {
        let connection = self.0.connection().await?;
        let response = connection.execute(commands, undo).await?;
        let error = response.replies.iter().find_map(|reply| match reply {
            Reply::Error(message) => Some(message.clone()),
            _ => None,
        });
        match error {
            None => Ok(response),
            Some(message) => Err(Failure::ServerError {
                server: self.server().clone(),
                message,
            }),
        }
    }

    /// Returns the error of a reply that does not match its command.
    pub(crate) fn unexpected_reply(&self) -> Failure {
        let server = self.server().clone();
        Failure::UnexpectedReply { server }
    }
}
