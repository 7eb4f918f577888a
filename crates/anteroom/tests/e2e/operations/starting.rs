//! Errors of a gateway that does not start.

use crate::support::command::run;
use crate::support::config::{ConfigFile, SERVER, room};
use crate::support::process::{Gateway, room_flags};

#[tokio::test]
async fn without_origin_and_file_both_are_named() {
    let ended = run(&["serve"]).await;
    assert_eq!(ended.code, Some(2));
    for flag in ["--config", "--origin", "--help"] {
        assert!(ended.err.contains(flag), "{flag}: {}", ended.err);
    }
}

#[tokio::test]
async fn without_limits_both_flags_are_named() {
    let ended = run(&["serve", "--origin", "http://127.0.0.1:1"]).await;
    assert_eq!(ended.code, Some(2));
    for flag in ["--total-active-users", "--new-users-per-minute"] {
        assert!(ended.err.contains(flag), "{flag}: {}", ended.err);
    }
    assert!(ended.err.contains("nothing was started"), "{}", ended.err);
}

#[tokio::test]
async fn a_bad_file_starts_nothing() {
    let file = ConfigFile::new("[[room]]\nname = \"a b\"\nbypass = []\n");
    let path = file.path().display().to_string();
    let ended = run(&["serve", "--config", &path]).await;
    assert_eq!(ended.code, Some(2));
    for key in [
        "name",
        "origin",
        "total_active_users",
        "new_users_per_minute",
    ] {
        assert!(ended.err.contains(key), "{key}: {}", ended.err);
    }
    assert_eq!(file.path().parent().unwrap().read_dir().unwrap().count(), 1);
}

#[tokio::test]
async fn a_port_in_use_is_reported_with_its_key() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let no_origin = std::net::SocketAddr::from(([127, 0, 0, 1], 9));
    for key in ["listen", "admin"] {
        let server = SERVER.replace(
            &format!("{key} = \"127.0.0.1:0\""),
            &format!("{key} = \"{address}\""),
        );
        let file = ConfigFile::new(&(server + &room("main", no_origin, 1, "")));
        let path = file.path().display().to_string();
        let ended = run(&["serve", "--config", &path]).await;
        assert_eq!(ended.code, Some(1), "{}", ended.err);
        assert!(
            ended.err.contains(&format!("(server.{key})")),
            "{}",
            ended.err
        );
        assert!(ended.err.contains(&address.to_string()), "{}", ended.err);
    }
}

#[tokio::test]
async fn ctrl_c_stops_the_gateway() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().display().to_string();
    let no_origin = std::net::SocketAddr::from(([127, 0, 0, 1], 9));
    let mut gateway = Gateway::start(&room_flags(no_origin, 1, 1, &data)).await;
    gateway.signal("INT");
    assert_eq!(gateway.ended().await, Some(0));
}
