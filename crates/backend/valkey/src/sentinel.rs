//! Discovery of the current master by its sentinels.
//!
//! Sentinels are queried one after the other, the last one that replied first. The result is
//! checked: the named server must report itself as a master.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anteroom_config::HostPort;
use parking_lot::Mutex;
use redis::Value;

use crate::access::Access;
use crate::connection::{Connection, text};
use crate::failure::Failure;
use crate::info::Info;

/// Time for which a sentinel's reply is trusted. With a longer one, writes to a master that was
/// replaced while cut off last longer. With a shorter one, sentinels get more queries from us than
/// from each other.
pub(crate) const RECHECK_AFTER: Duration = Duration::from_secs(1);

/// Sentinels of a service.
pub(crate) struct Sentinels {
    sentinels: Vec<HostPort>,
    service: String,
    access: Access,
    /// Index of the sentinel that replied last.
    first: AtomicUsize,
    /// Connection to that sentinel.
    connection: Mutex<Option<Arc<Connection>>>,
}

/// Master that a sentinel named.
pub(crate) struct Master {
    pub(crate) server: HostPort,
    sentinel: HostPort,
}

impl Sentinels {
    /// Creates the sentinels of a service, at least one.
    pub(crate) fn new(sentinels: Vec<HostPort>, service: String, access: &Access) -> Self {
        Self {
            sentinels,
            service,
            access: access.clone(),
            first: AtomicUsize::new(0),
            connection: Mutex::new(None),
        }
    }

    /// Returns the sentinel that is queried first.
    pub(crate) fn first(&self) -> &HostPort {
        let index = self.first.load(Ordering::Relaxed) % self.sentinels.len();
        &self.sentinels[index]
    }

    /// Connects to the current master.
    pub(crate) async fn connect_to_master(&self, access: &Access) -> Result<Connection, Failure> {
        let Master { server, sentinel } = self.master().await?;
        let (connection, _) = Connection::open(&server, access).await?;
        let role = connection
            .execute(redis::cmd("INFO").arg("replication"))
            .await?;
        if Info::read(&text(&connection, role)?).is_replica() {
            return Err(Failure::StaleSentinel { sentinel, server });
        }
        Ok(connection)
    }

    /// Queries sentinels until one knows the master. If none does, returns the first failure: the
    /// others mostly repeat it.
    pub(crate) async fn master(&self) -> Result<Master, Failure> {
        let mut first_failure = None;
        let first = self.first.load(Ordering::Relaxed);
        for offset in 0..self.sentinels.len() {
            let index = first.wrapping_add(offset) % self.sentinels.len();
            let sentinel = &self.sentinels[index];
            match self.query(sentinel).await {
                Ok(server) => {
                    self.first.store(index, Ordering::Relaxed);
                    let sentinel = sentinel.clone();
                    return Ok(Master { server, sentinel });
                }
                Err(failure) => {
                    first_failure.get_or_insert(failure);
                }
            }
        }
        Err(first_failure.unwrap_or(Failure::ConnectAborted))
    }

    async fn query(&self, sentinel: &HostPort) -> Result<HostPort, Failure> {
        let cached = self.connection.lock().take();
        let cached = cached.filter(|connection| connection.server == *sentinel);
        let connection = match cached {
            Some(connection) => connection,
            None => Arc::new(Connection::open_to_sentinel(sentinel, &self.access).await?),
        };
        let mut command = redis::cmd("SENTINEL");
        command.arg("get-master-addr-by-name").arg(&self.service);
        let reply = connection.execute(&command).await?;
        let master = self.read(&connection, reply);
        *self.connection.lock() = Some(connection);
        master
    }

    fn read(&self, connection: &Connection, reply: Value) -> Result<HostPort, Failure> {
        match reply {
            Value::Nil => Err(Failure::UnknownService {
                sentinel: connection.server.clone(),
                service: self.service.clone(),
            }),
            Value::Array(parts) => match <[Value; 2]>::try_from(parts) {
                Ok([host, port]) => {
                    let port = text(connection, port)?;
                    Ok(HostPort {
                        host: text(connection, host)?,
                        port: port
                            .parse()
                            .map_err(|_| connection.unexpected_reply("no port"))?,
                    })
                }
                Err(_) => Err(connection.unexpected_reply("no address of a master")),
            },
            _ => Err(connection.unexpected_reply("no address of a master")),
        }
    }
}
