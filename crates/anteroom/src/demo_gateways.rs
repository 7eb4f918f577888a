//! Gateways of a demo: one on its own journal, or many that share stores, all in this process.
//!
//! They are gateways as `serve` starts them, on free ports of this machine. This module only
//! decides which of them gets which folder and which store.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use crate::demo::{GatewayPlan, GatewayStats, RunningGateway, RunningGateways};
use crate::gateway::Gateway;
use anteroom_config::{Config, Flags};
use anyhow::Context as _;
use tokio::task::JoinSet;

use crate::demo::stores::{DemoStores, StoreAddresses};

/// One gateway of several.
#[derive(Clone, Debug)]
struct Member {
    /// Number of its data center, from 1.
    data_center: u32,
    /// Number in its data center, from 1.
    node: u32,
    stores: StoreAddresses,
}

/// Starts the gateways of a demo, and stores for them if there are several.
///
/// # Errors
///
/// If a store or a gateway does not start. Stores that were started are stopped then; gateways stop
/// with the process.
pub(crate) async fn start(plan: GatewayPlan) -> anyhow::Result<RunningGateways> {
    if plan.layout.is_alone() {
        let gateway = Gateway::start(&config(&plan, None)?).await?;
        let running = vec![running(&gateway, 1, View::Own)?];
        return Ok(RunningGateways {
            gateways: running,
            stop: Box::pin(gateway.stop_soon()),
        });
    }
    let stores = DemoStores::start(plan.layout.data_centers, &plan.data_dir).await?;
    let mut gateways = Vec::new();
    let mut shown = Vec::new();
    for member in members(&plan, &stores) {
        let gateway = Gateway::start(&config(&plan, Some(&member))?)
            .await
            .with_context(|| format!("node {} of dc{}", member.node, member.data_center))?;
        shown.push(running(&gateway, member.data_center, View::Global)?);
        gateways.push(gateway);
    }
    Ok(RunningGateways {
        gateways: shown,
        stop: Box::pin(stop(gateways, stores)),
    })
}

/// Returns all gateways, grouped by data center.
fn members(plan: &GatewayPlan, stores: &DemoStores) -> Vec<Member> {
    let data_centers = 1..=plan.layout.data_centers;
    let with_stores = data_centers.filter_map(|number| Some((number, stores.addresses(number)?)));
    let members = with_stores.flat_map(|(data_center, stores)| {
        (1..=plan.layout.nodes_in_each).map(move |node| Member {
            data_center,
            node,
            stores: stores.clone(),
        })
    });
    members.collect()
}

/// Stops all gateways at once, then the stores: each gateway returns its leases first.
async fn stop(gateways: Vec<Gateway>, stores: DemoStores) {
    let mut stopping: JoinSet<()> = gateways.into_iter().map(Gateway::stop_soon).collect();
    // A task that panicked has reported it already.
    while stopping.join_next().await.is_some() {}
    drop(stores);
}

/// Scope of a gateway's counts of waiting visitors.
#[derive(Clone, Copy, Debug)]
enum View {
    /// Visitors of this gateway: here these are all visitors, and known at once.
    Own,
    /// Visitors of all gateways, as of the last report of the store.
    Global,
}

fn running(gateway: &Gateway, data_center: u32, view: View) -> anyhow::Result<RunningGateway> {
    let room = gateway.node().rooms().into_iter().next();
    let room = room.context("the demo has a room")?;
    let stats = move || {
        let stats = room.stats();
        GatewayStats {
            inside: stats.snapshot.active,
            waiting: match view {
                View::Own => stats.people_waiting,
                View::Global => stats.snapshot.waiting,
            },
            admitted: stats.counters.admitted,
        }
    };
    Ok(RunningGateway {
        url: format!("http://{}/", gateway.address()).parse()?,
        data_center,
        stats: Box::new(stats),
    })
}

fn config(plan: &GatewayPlan, member: Option<&Member>) -> anyhow::Result<Config> {
    let data_dir: PathBuf = match member {
        Some(member) => {
            let name = format!("dc{}-node{}", member.data_center, member.node);
            plan.data_dir.join(name)
        }
        None => plan.data_dir.clone(),
    };
    let mut flags = Flags::default()
        .text("room.name", &plan.room)
        .text("room.origin", format!("http://{}", plan.origin))
        .number("room.total_active_users", plan.limits.total_active_users)
        .number(
            "room.new_users_per_minute",
            plan.limits.new_users_per_minute,
        )
        .text(
            "room.session_duration",
            format!("{}ms", plan.session_duration.0),
        )
        .text("server.data_dir", data_dir.display().to_string());
    if let Some(member) = member {
        flags = flags
            .text("server.data_center", format!("dc{}", member.data_center))
            .text("store.local", &member.stores.local);
        if let Some(global) = &member.stores.global {
            flags = flags.text("store.global", global);
        }
    }
    let mut config = Config::single_room(&flags)?.config;
    let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    config.server.listen = any_port;
    config.server.admin = any_port;
    Ok(config)
}

#[cfg(test)]
mod tests {
    use crate::demo::{Layout, ROOM};
    use anteroom_config::StoreConfig;
    use anteroom_room::rules::Limits;
    use anteroom_room::time::DurationMs;

    use super::*;

    fn plan(layout: Layout) -> GatewayPlan {
        GatewayPlan {
            origin: SocketAddr::from((Ipv4Addr::LOCALHOST, 9000)),
            room: ROOM.to_owned(),
            limits: Limits {
                total_active_users: 50,
                new_users_per_minute: 300,
            },
            session_duration: DurationMs::from_secs(10),
            layout,
            data_dir: PathBuf::from("demo"),
        }
    }

    #[test]
    fn one_gateway_has_a_journal_and_no_store() {
        let config = config(&plan(Layout::ALONE), None).unwrap();
        assert_eq!(config.store, StoreConfig::Embedded);
        assert_eq!(config.server.data_dir, PathBuf::from("demo"));
        assert_eq!((config.server.listen.port(), config.rooms.len()), (0, 1));
    }

    #[test]
    fn one_of_several_has_its_own_folder_and_its_data_centers_stores() {
        let member = Member {
            data_center: 2,
            node: 3,
            stores: StoreAddresses {
                local: "redis://127.0.0.1:7002".to_owned(),
                global: Some("redis://127.0.0.1:7009".to_owned()),
            },
        };
        let layout = Layout {
            data_centers: 2,
            nodes_in_each: 3,
        };
        let config = config(&plan(layout), Some(&member)).unwrap();
        assert_eq!(config.server.data_center, "dc2");
        assert_eq!(config.server.data_dir, PathBuf::from("demo/dc2-node3"));
        let StoreConfig::Valkey(valkey) = config.store else {
            panic!("{:?}", config.store)
        };
        assert!(valkey.has_global);
        assert_eq!(valkey.local.to_string(), "redis://127.0.0.1:7002");
        assert_eq!(valkey.global.to_string(), "redis://127.0.0.1:7009");
    }

    #[tokio::test]
    async fn members_are_grouped_by_data_center_and_know_the_global_store() {
        let folder = tempfile::tempdir().unwrap();
        let stores = DemoStores::start(2, folder.path()).await.unwrap();
        let layout = Layout {
            data_centers: 2,
            nodes_in_each: 2,
        };
        let members = members(&plan(layout), &stores);
        let numbers: Vec<_> = members.iter().map(|m| (m.data_center, m.node)).collect();
        assert_eq!(numbers, [(1, 1), (1, 2), (2, 1), (2, 2)]);
        assert_eq!(members[0].stores, members[1].stores);
        assert_ne!(members[1].stores.local, members[2].stores.local);
        assert_eq!(members[1].stores.global, members[2].stores.global);
    }
}
