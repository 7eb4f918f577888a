//! The way to one server of memcached.
//!
//! When a connection is made, and how long a server is left alone that does not answer, is said by
//! [`anteroom_limit_store::link`].

use anteroom_config::HostPort;
use anteroom_limit_store::link::{Dial, Link as Way, NoConnection};

use crate::connection::{Answer, Connection};
use crate::failure::Failure;
use crate::protocol::{Command, Reply};
use crate::undo::Undo;

/// The way to one server. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Link(Way<Server>);

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

    fn no_connection(&self, why: NoConnection) -> Failure {
        match why {
            NoConnection::Closed | NoConnection::Abandoned => Failure::Closed,
            NoConnection::Late => Failure::ConnectTimeout {
                server: self.0.clone(),
            },
        }
    }
}

impl Link {
    pub(crate) fn to(server: HostPort) -> Self {
        Self(Way::new(Server(server)))
    }

    pub(crate) fn server(&self) -> &HostPort {
        &self.0.dial().0
    }

    /// Ends the connection; later calls fail.
    pub(crate) fn close(&self) {
        self.0.close();
    }

    /// Sends commands, once. A complaint of the server's is a failure.
    pub(crate) async fn ask(&self, commands: &[Command<'_>]) -> Result<Vec<Reply>, Failure> {
        let answer = self.charge(commands, None).await?;
        Ok(answer.replies)
    }

    /// The same if the first command charges something, which `undo` takes back if nobody keeps it.
    pub(crate) async fn charge(
        &self,
        commands: &[Command<'_>],
        undo: Option<Undo>,
    ) -> Result<Answer, Failure> {
        let connection = self.0.connection().await?;
        let answer = connection.ask(commands, undo).await?;
        let complaint = answer.replies.iter().find_map(|reply| match reply {
            Reply::Complaint(complaint) => Some(complaint.clone()),
            _ => None,
        });
        match complaint {
            None => Ok(answer),
            Some(complaint) => Err(Failure::Complaint {
                server: self.server().clone(),
                complaint,
            }),
        }
    }

    /// For answers to something else than was asked.
    pub(crate) fn unasked(&self) -> Failure {
        let server = self.server().clone();
        Failure::Unasked { server }
    }
}
