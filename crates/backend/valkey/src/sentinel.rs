//! Which server is the master at present? Sentinels know.
//!
//! They are asked one after the other, the last one that answered first. What they say is checked:
//! whoever is named must say itself that it is the master.

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

/// How long what sentinels said is believed. Longer, and a master that was replaced while cut off
/// is written to for longer; shorter, and sentinels hear more from us than from each other.
pub(crate) const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// The sentinels of one service.
pub(crate) struct Sentinels {
    sentinels: Vec<HostPort>,
    service: String,
    access: Access,
    /// The one that answered last.
    first: AtomicUsize,
    /// The connection to it.
    connection: Mutex<Option<Arc<Connection>>>,
}

/// What a sentinel said.
pub(crate) struct Master {
    pub(crate) server: HostPort,
    sentinel: HostPort,
}

impl Sentinels {
    /// At least one.
    pub(crate) fn new(sentinels: Vec<HostPort>, service: String, access: &Access) -> Self {
        Self {
            sentinels,
            service,
            access: access.clone(),
            first: AtomicUsize::new(0),
            connection: Mutex::new(None),
        }
    }

    /// The one that is asked first.
    pub(crate) fn first(&self) -> &HostPort {
        let index = self.first.load(Ordering::Relaxed) % self.sentinels.len();
        &self.sentinels[index]
    }

    /// Connects to the present master.
    pub(crate) async fn connect_to_master(&self, access: &Access) -> Result<Connection, Failure> {
        let Master { server, sentinel } = self.master().await?;
        let (connection, _) = Connection::open(&server, access).await?;
        let role = connection
            .ask(redis::cmd("INFO").arg("replication"))
            .await?;
        if Info::read(&text(&connection, role)?).is_replica() {
            return Err(Failure::StaleSentinel { sentinel, server });
        }
        Ok(connection)
    }

    /// Asks until one knows. If none does, the first reason is told: the others mostly repeat it.
    pub(crate) async fn master(&self) -> Result<Master, Failure> {
        let mut first_failure = None;
        let first = self.first.load(Ordering::Relaxed);
        for offset in 0..self.sentinels.len() {
            let index = first.wrapping_add(offset) % self.sentinels.len();
            let sentinel = &self.sentinels[index];
            match self.ask(sentinel).await {
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
        Err(first_failure.unwrap_or(Failure::NobodyConnects))
    }

    async fn ask(&self, sentinel: &HostPort) -> Result<HostPort, Failure> {
        let held = self.connection.lock().take();
        let held = held.filter(|connection| connection.server == *sentinel);
        let connection = match held {
            Some(connection) => connection,
            None => Arc::new(Connection::open_to_sentinel(sentinel, &self.access).await?),
        };
        let mut question = redis::cmd("SENTINEL");
        question.arg("get-master-addr-by-name").arg(&self.service);
        let answer = connection.ask(&question).await?;
        let master = self.read(&connection, answer);
        *self.connection.lock() = Some(connection);
        master
    }

    fn read(&self, connection: &Connection, answer: Value) -> Result<HostPort, Failure> {
        match answer {
            Value::Nil => Err(Failure::UnknownService {
                sentinel: connection.server.clone(),
                service: self.service.clone(),
            }),
            Value::Array(parts) => match <[Value; 2]>::try_from(parts) {
                Ok([host, port]) => {
                    let port = text(connection, port)?;
                    Ok(HostPort {
                        host: text(connection, host)?,
                        port: port.parse().map_err(|_| connection.strange("no port"))?,
                    })
                }
                Err(_) => Err(connection.strange("no address of a master")),
            },
            _ => Err(connection.strange("no address of a master")),
        }
    }
}
