//! A master that a sentinel watches, with a replica to take its place.

use anteroom_testkit::eventually;
use anteroom_testkit::redis_server::{RedisSentinel, RedisServer};

use super::{SENDS_AT_ONCE, at};

/// What the sentinel calls the store.
const SERVICE: &str = "anteroom";

/// A master, its replica, and a sentinel that needs nobody's agreement.
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
        // A sentinel asks the master for its replicas at once, and then only every ten seconds.
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

    /// The master dies; returns when the sentinel names the replica.
    ///
    /// A sentinel that stood still for two seconds, as on a busy machine, does nothing for half a
    /// minute ("tilt"), and afterwards takes the replica for one that has been cut off for too
    /// long. So the master does not die before the sentinel is well.
    ///
    /// # Panics
    ///
    /// If that does not happen within a minute.
    pub async fn fail_over(&mut self) {
        eventually("the sentinel is well", async || {
            let info = self.sentinel.ask(&["INFO", "sentinel"]).await;
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
