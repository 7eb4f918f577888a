//! Link to a server of Valkey or Redis: the only one, or the master of a service.
//!
//! [`anteroom_limit_store::link`] decides when to connect, and how long to wait after a failure.

use std::sync::Arc;

use anteroom_config::HostPort;
use anteroom_limit_store::link::{Dial, Link as StoreLink, NoConnection};
use parking_lot::Mutex;
use redis::Value;
use tokio::time::Instant;

use crate::access::Access;
use crate::connection::{Connection, Request};
use crate::failure::Failure;
use crate::sentinel::{RECHECK_AFTER, Sentinels};

/// Link to a server. Clones share it.
#[derive(Clone)]
pub(crate) struct Link(StoreLink<Server>);

struct Server {
    target: Target,
    access: Access,
}

/// Server of a link.
enum Target {
    Fixed(HostPort),
    MasterOf {
        sentinels: Sentinels,
        /// Time of the last query of the sentinels.
        checked_at: Mutex<Option<Instant>>,
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
                checked_at,
            } => {
                let opened = sentinels.connect_to_master(&self.access).await;
                *checked_at.lock() = Some(Instant::now());
                opened
            }
        }
    }

    fn no_connection(&self, reason: NoConnection) -> Failure {
        match reason {
            NoConnection::Closed => Failure::Closed,
            NoConnection::Abandoned => Failure::ConnectAborted,
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
        let checked_at = Mutex::default();
        let target = Target::MasterOf {
            sentinels,
            checked_at,
        };
        Self::new(target, access)
    }

    fn new(target: Target, access: Access) -> Self {
        Self(StoreLink::new(Server { target, access }))
    }

    /// Sends a request once. Without a reply the caller has to find out whether it was carried out.
    pub(crate) async fn send(&self, request: &Request) -> Result<ServerReply, Failure> {
        let connection = self.0.connection().await?;
        self.recheck_master(&connection);
        match connection.send(request).await {
            Ok(value) => {
                self.0.handle_reply();
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

    /// Drops the connection if the failure makes it unusable.
    fn note(&self, connection: &Arc<Connection>, failure: &Failure) {
        let is_unusable = match self.0.dial().target {
            Target::Fixed(_) => failure.breaks_connection(),
            Target::MasterOf { .. } => failure.doubts_master(),
        };
        if is_unusable {
            self.0.handle_lost(connection, failure.clone());
        } else {
            self.0.handle_reply();
        }
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.0.is_connected()
    }

    /// Ends the connection; later requests fail.
    pub(crate) fn close(&self) {
        self.0.close();
    }

    /// Queries the sentinels now and then, in the background. A master that was replaced while it
    /// was cut off does not know that, and still replies.
    fn recheck_master(&self, connection: &Arc<Connection>) {
        let Target::MasterOf { checked_at, .. } = &self.0.dial().target else {
            return;
        };
        let now = Instant::now();
        {
            let mut checked_at = checked_at.lock();
            let is_due = |at: Instant| now.saturating_duration_since(at) >= RECHECK_AFTER;
            if !checked_at.is_none_or(is_due) {
                return;
            }
            *checked_at = Some(now);
        }
        let link = self.clone();
        let connection = Arc::clone(connection);
        tokio::spawn(async move {
            let Target::MasterOf { sentinels, .. } = &link.0.dial().target else {
                return;
            };
            // Unavailable sentinels are no reason to leave a master that replies.
            if let Ok(master) = sentinels.master().await
                && master.server != connection.server
            {
                let server = connection.server.clone();
                link.note(&connection, &Failure::MasterChanged { server });
            }
        });
    }
}

/// Reply and the connection that it came from.
pub(crate) struct ServerReply {
    pub(crate) value: Value,
    pub(crate) connection: Arc<Connection>,
}

impl Target {
    /// Returns the server to name in an error when none has replied.
    fn first(&self) -> &HostPort {
        match self {
            Self::Fixed(server) => server,
            Self::MasterOf { sentinels, .. } => sentinels.first(),
        }
    }
}
