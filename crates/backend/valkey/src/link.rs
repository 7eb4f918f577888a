//! The way to one server of Valkey or Redis: the only one, or the master of a service.
//!
//! When a connection is made, and how long a server is left alone that does not answer, is said by
//! [`anteroom_limit_store::link`].

use std::sync::Arc;

use anteroom_config::HostPort;
use anteroom_limit_store::link::{Dial, Link as Way, NoConnection};
use parking_lot::Mutex;
use redis::Value;
use tokio::time::Instant;

use crate::access::Access;
use crate::connection::{Connection, Request};
use crate::failure::Failure;
use crate::sentinel::{LOOK_AGAIN_AFTER, Sentinels};

/// The way to one server. Clones share it.
#[derive(Clone)]
pub(crate) struct Link(Way<Server>);

struct Server {
    target: Target,
    access: Access,
}

/// Which server.
enum Target {
    Fixed(HostPort),
    MasterOf {
        sentinels: Sentinels,
        /// When they were last asked, or are being asked.
        looked_at: Mutex<Option<Instant>>,
    },
}

impl Dial for Server {
    type Connection = Connection;
    type Failure = Failure;

    async fn dial(&self) -> Result<Connection, Failure> {
        match &self.target {
            Target::Fixed(server) => Ok(Connection::open(server, &self.access).await?.0),
            Target::MasterOf {
                sentinels,
                looked_at,
            } => {
                let opened = sentinels.connect_to_master(&self.access).await;
                *looked_at.lock() = Some(Instant::now());
                opened
            }
        }
    }

    fn no_connection(&self, why: NoConnection) -> Failure {
        match why {
            NoConnection::Closed => Failure::Closed,
            NoConnection::Abandoned => Failure::NobodyConnects,
            NoConnection::Late => Failure::ConnectTimeout {
                server: self.target.first().clone(),
            },
        }
    }
}

impl Link {
    pub(crate) fn to(server: HostPort, access: Access) -> Self {
        Self::new(Target::Fixed(server), access)
    }

    pub(crate) fn to_master_of(sentinels: Sentinels, access: Access) -> Self {
        let looked_at = Mutex::default();
        let target = Target::MasterOf {
            sentinels,
            looked_at,
        };
        Self::new(target, access)
    }

    fn new(target: Target, access: Access) -> Self {
        Self(Way::new(Server { target, access }))
    }

    /// Sends a request. It is sent once: whether one was carried out whose answer did not come is
    /// for the caller to find out.
    pub(crate) async fn call(&self, request: &Request) -> Result<ServerReply, Failure> {
        let connection = self.0.connection().await?;
        self.look_for_another_master(&connection);
        match connection.call(request).await {
            Ok(value) => {
                self.0.handle_answer();
                Ok(ServerReply { value, connection })
            }
            Err(failure) => {
                let failure = match self.0.dial().target {
                    Target::Fixed(_) => failure,
                    Target::MasterOf { .. } => failure.if_replaced(),
                };
                self.note(&connection, &failure);
                Err(failure)
            }
        }
    }

    /// Lets the connection go if the failure says that it is of no use.
    fn note(&self, connection: &Arc<Connection>, failure: &Failure) {
        let is_useless = match self.0.dial().target {
            Target::Fixed(_) => failure.breaks_connection(),
            Target::MasterOf { .. } => failure.doubts_master(),
        };
        if is_useless {
            self.0.handle_lost(connection, failure.clone());
        } else {
            self.0.handle_answer();
        }
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.0.is_connected()
    }

    /// Ends the connection; later calls fail.
    pub(crate) fn close(&self) {
        self.0.close();
    }

    /// A master that was replaced while it was cut off does not know, and goes on answering. So
    /// the sentinels are asked again now and then, beside the calls.
    fn look_for_another_master(&self, connection: &Arc<Connection>) {
        let Target::MasterOf { looked_at, .. } = &self.0.dial().target else {
            return;
        };
        let now = Instant::now();
        {
            let mut looked_at = looked_at.lock();
            let is_due = |at: Instant| now.saturating_duration_since(at) >= LOOK_AGAIN_AFTER;
            if !looked_at.is_none_or(is_due) {
                return;
            }
            *looked_at = Some(now);
        }
        let link = self.clone();
        let connection = Arc::clone(connection);
        tokio::spawn(async move {
            let Target::MasterOf { sentinels, .. } = &link.0.dial().target else {
                return;
            };
            // Sentinels that do not answer are no reason to leave a master that does.
            if let Ok(master) = sentinels.master().await
                && master.server != connection.server
            {
                let server = connection.server.clone();
                link.note(&connection, &Failure::MasterChanged { server });
            }
        });
    }
}

/// An answer and where it came from.
pub(crate) struct ServerReply {
    pub(crate) value: Value,
    pub(crate) connection: Arc<Connection>,
}

impl Target {
    /// What to name when none has answered.
    fn first(&self) -> &HostPort {
        match self {
            Self::Fixed(server) => server,
            Self::MasterOf { sentinels, .. } => sentinels.first(),
        }
    }
}
