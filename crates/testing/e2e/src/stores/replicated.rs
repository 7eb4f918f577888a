//! Master whose replica takes over, perhaps without the newest writes.

use std::net::SocketAddr;

use anteroom_testkit::eventually;
use anteroom_testkit::redis_server::RedisServer;
use anteroom_testkit::relay::{Delays, Relay};

use super::{SENDS_AT_ONCE, at};
use crate::switch::Switch;

/// Master and replica, behind one address.
#[derive(Debug)]
pub struct Replicated {
    master: RedisServer,
    replica: RedisServer,
    /// Link between the two.
    replication: Relay,
    switch: Switch,
}

impl Replicated {
    pub(super) async fn start() -> Self {
        let master = RedisServer::start_with(SENDS_AT_ONCE).await;
        let replication = Relay::start(at(master.port()), Delays::default()).await;
        let port = replication.address().port().to_string();
        let replica = RedisServer::start_with(&["--replicaof", "127.0.0.1", &port]).await;
        eventually("the replica is in step with its master", async || {
            let info = replica.info("replication").await;
            info.contains("master_link_status:up")
        })
        .await;
        let switch = Switch::start(at(master.port())).await;
        Self {
            master,
            replica,
            replication,
            switch,
        }
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.switch.address()
    }

    /// Cuts the replication: the replica gets no more writes.
    pub fn cut_replication(&self) {
        self.replication.cut();
    }

    /// Returns the bytes of writes that the replica lacks.
    ///
    /// # Panics
    ///
    /// If one of them does not reply.
    pub async fn lag_bytes(&self) -> u64 {
        let master = info_number(&self.master, "replication", "master_repl_offset").await;
        let replica = info_number(&self.replica, "replication", "slave_repl_offset").await;
        master.saturating_sub(replica)
    }

    /// Kills the master; the replica takes over, also at the address.
    ///
    /// # Panics
    ///
    /// If the replica returns an error.
    pub async fn fail_over(&mut self) {
        self.master.kill();
        self.replica.send_ok(&["REPLICAOF", "NO", "ONE"]).await;
        self.switch.leads_to(at(self.replica.port()));
    }

    /// Returns how many scripts the replica has run itself. Nodes write with scripts and only to a
    /// master, so it shows whether they have found it.
    ///
    /// # Panics
    ///
    /// If it does not reply.
    pub async fn scripts_run_by_replica(&self) -> u64 {
        info_number(&self.replica, "commandstats", "cmdstat_evalsha:calls").await
    }
}

/// Returns a number of a server's `INFO`; 0 if it is missing. After `name` comes `:` or `=`, and
/// the number ends at the end of the line or a comma.
async fn info_number(server: &RedisServer, section: &str, name: &str) -> u64 {
    let info = server.info(section).await;
    let value = info.lines().find_map(|line| {
        let rest = line.strip_prefix(name)?.strip_prefix([':', '='])?;
        rest.split(',').next()?.trim().parse().ok()
    });
    value.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use anteroom_testkit::redis_server::send_command;

    use super::*;

    #[tokio::test]
    async fn a_replica_after_a_cut_takes_over_without_the_newest_writes() {
        let mut pair = Replicated::start().await;
        let port = pair.address().port();
        let wrote = send_command(port, &[&["SET", "early", "1"]]).await;
        assert_eq!(wrote.unwrap().text(), "OK");
        eventually("the replica has it", async || {
            pair.replica.send(&["EXISTS", "early"]).await.text() == "1"
        })
        .await;
        pair.cut_replication();
        let wrote = send_command(port, &[&["SET", "late", "1"]]).await;
        assert_eq!(wrote.unwrap().text(), "OK");
        assert!(pair.lag_bytes().await > 0);
        pair.fail_over().await;
        let has = send_command(port, &[&["EXISTS", "early"]])
            .await
            .unwrap()
            .text();
        assert_eq!(has, "1");
        let has = send_command(port, &[&["EXISTS", "late"]])
            .await
            .unwrap()
            .text();
        assert_eq!(has, "0");
        assert_eq!(pair.scripts_run_by_replica().await, 0);
    }
}
