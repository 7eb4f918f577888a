//! Master that a sentinel watches, with a replica to take over.

use anteroom_testkit::eventually;
use anteroom_testkit::redis_server::{RedisSentinel, RedisServer};

use super::{SENDS_AT_ONCE, at};

/// Name of the store at the sentinel.
const SERVICE: &str = "anteroom";

/// Master, replica, and a sentinel with a quorum of one.
#[derive(Debug)]
pub struct Watched {
    master: RedisServer,
    replica: RedisServer,
    sentinel: RedisSentinel,
}

impl Watched {
    pub(super) async fn start() -> Self {
        let master = RedisServer::start_with(SENDS_AT_ONCE).await;
        let replica = RedisServer::start_replica_of(&master).await;
        // A sentinel requests the replicas from the master at once, and then only every ten
        // seconds.
        let sentinel = RedisSentinel::start(SERVICE, &master).await;
        eventually("the sentinel knows the replica", async || {
            sentinel.replicas().await == 1
        })
        .await;
        Self {
            master,
            replica,
            sentinel,
        }
    }

    pub(super) fn url(&self) -> String {
        format!("redis+sentinel://{}/{SERVICE}", at(self.sentinel.port()))
    }

    /// Kills the master; returns when the sentinel names the replica.
    ///
    /// A sentinel that paused for two seconds, as on a busy machine, does nothing for half a minute
    /// ("tilt"). Afterwards it takes the replica for one that was cut off for too long. So the
    /// master is not killed before the sentinel is ready.
    ///
    /// # Panics
    ///
    /// If that does not happen within a minute.
    pub async fn fail_over(&mut self) {
        eventually("the sentinel is ready", async || {
            let info = self.sentinel.send_command(&["INFO", "sentinel"]).await;
            info.text().contains("sentinel_tilt:0")
        })
        .await;
        self.master.kill();
        let port = self.replica.port();
        eventually("the sentinel names the replica", async || {
            self.sentinel.master().await == Some(port)
        })
        .await;
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let port = self.replica.port();
            eprintln!(
                "the replica is at {port}; its sentinel:\n{}",
                self.sentinel.log()
            );
        }
    }
}
