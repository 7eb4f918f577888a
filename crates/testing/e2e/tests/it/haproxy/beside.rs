//! HAProxy before and behind Anteroom: whose address counts, and whether each trusts the other.

use std::process::Command;

use anteroom_e2e::deploy::config::Deployed;
use anteroom_e2e::deploy::files;
use anteroom_testkit::wire::header;

use crate::haproxy::clients::{Client, Counting, Counts};
use crate::haproxy::process::{Haproxy, program};
use crate::haproxy::recipe::{LIMIT, Recipe, SLIDING, block};

/// Line of the page for a HAProxy behind Anteroom, and Anteroom's address in it.
const BEHIND: &str = "http-request set-src req.hdr_ip(x-forwarded-for,-1) if { src 10.0.0.10 }";
const ANTEROOM: &str = "10.0.0.10";

#[tokio::test]
async fn behind_haproxy_the_last_address_is_the_client() {
    let origin = Counting::start().await;
    let haproxy = Haproxy::start(&Recipe::of(SLIDING), origin.address).await;
    let mut client = Client::connect(haproxy.address()).await;
    let made_up = "x-forwarded-for: 192.0.2.1, 192.0.2.2";
    let head = client.request("/", &[made_up]).await;
    assert_eq!(header(&head, "x-client"), Some("127.0.0.1"));
    // A made-up address is not another client either.
    assert_eq!(
        haproxy.counts("calls").await,
        [("::ffff:127.0.0.1".to_owned(), 1)]
    );
}

#[test]
fn anteroom_behind_haproxy_listens_at_its_address() {
    let ours = block("[server]");
    let room = "[[room]]\nname = \"shop\"\norigin = \"http://127.0.0.1:3000\"\n\
                total_active_users = 10\n\
                new_users_per_minute = 10\nbypass = []\n";
    let config = Deployed::parse(&format!("{ours}\n{room}")).unwrap();
    let server = format!("server anteroom {}", config.listen);
    for file in [
        SLIDING,
        crate::haproxy::recipe::CLOCK,
        crate::haproxy::recipe::PAIR,
    ] {
        assert!(block(file).contains(&server), "{file}");
    }
}

#[tokio::test]
async fn behind_anteroom_only_anteroom_names_clients() {
    let origin = Counting::start().await;
    let line = block(BEHIND);
    for (anteroom, is_believed) in [("127.0.0.1", true), (ANTEROOM, false)] {
        let line = line.trim_end().replace(ANTEROOM, anteroom);
        let acl = "    acl polling path /.well-known/anteroom/position";
        let recipe = Recipe::of(SLIDING).with(acl, &format!("    {line}\n{acl}"));
        let haproxy = Haproxy::start(&recipe, origin.address).await;
        // One connection, as Anteroom has it for all.
        let mut client = Client::connect(haproxy.address()).await;
        let one = ["x-forwarded-for: 203.0.113.9, 192.0.2.1"];
        assert_eq!(
            client.requests(LIMIT + 1, &one).await,
            Counts::new(LIMIT, 1)
        );
        let other = ["x-forwarded-for: 192.0.2.1, 192.0.2.2"];
        assert_eq!(client.passes("/", &other).await, is_believed, "{anteroom}");
    }
}

#[test]
fn three_nodes_behind_haproxy_have_its_addresses() {
    let page = "docs/how-to/rate-limit-many-nodes.md";
    let node = files::block(page, "# anteroom.toml of the first of three nodes");
    let node = Deployed::parse(&node).unwrap();
    let backend = files::block(page, "backend anteroom");
    let server = format!("server n1 {}", node.listen);
    assert!(backend.contains(&server), "{backend}");
    let check = format!("default-server check port {}", node.admin.port());
    assert!(backend.contains(&check), "{backend}");
    let defaults = "global\n    maxconn 100\n\
                    defaults\n    mode http\n    timeout connect 5s\n    timeout client 60s\n    \
                    timeout server 60s\n\
                    frontend site\n    bind 127.0.0.1:8080\n    default_backend anteroom\n";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("haproxy.cfg");
    std::fs::write(&file, format!("{defaults}{backend}")).unwrap();
    // Checks the file only: nothing listens.
    let mut haproxy = Command::new(program());
    let checked = haproxy.arg("-c").arg("-f").arg(&file).output().unwrap();
    assert!(checked.status.success(), "{checked:?}");
}
