//! Units: sockets, paths and times agree with their config files.

use std::time::Duration;

use anteroom_e2e::deploy::config::Deployed;
use anteroom_e2e::deploy::files::read;
use anteroom_e2e::deploy::unit::Unit;
use anteroom_proxy::downstream::handover::{OPERATORS, VISITORS};

/// Socket units with the name by which the gateway takes each socket over, and its clients.
const SOCKETS: [(&str, &str); 2] = [
    ("anteroom.socket", VISITORS),
    ("anteroom-operators.socket", OPERATORS),
];
const CONFIGS: [&str; 2] = ["anteroom.toml", "shared/anteroom.toml"];
/// Folder in which systemd puts the files of `LoadCredential=`, for a unit of this name.
const CREDENTIALS: &str = "/run/credentials/anteroom.service/";

fn unit(name: &str) -> Unit {
    Unit::parse(&read(&format!("deploy/systemd/{name}"))).unwrap()
}

fn configs() -> impl Iterator<Item = (&'static str, Deployed)> {
    CONFIGS.into_iter().map(|name| {
        let deployed = Deployed::parse(&read(&format!("deploy/systemd/{name}")));
        (
            name,
            deployed.unwrap_or_else(|error| panic!("{name}: {error}")),
        )
    })
}

fn seconds(text: &str) -> Duration {
    let number = text.strip_suffix('s').unwrap_or(text);
    Duration::from_secs(number.parse().unwrap())
}

#[test]
fn sockets_have_known_names_and_the_configs_addresses() {
    let service = unit("anteroom.service");
    for (file, name) in SOCKETS {
        let socket = unit(file);
        assert_eq!(socket.one("Socket", "FileDescriptorName"), name);
        assert_eq!(socket.one("Socket", "Service"), "anteroom.service");
        let required = service.one("Unit", "Requires");
        assert!(required.split(' ').any(|it| it == file), "{required}");
        for (config, deployed) in configs() {
            let address = match name {
                VISITORS => deployed.listen,
                _ => deployed.admin,
            };
            let stream = socket.one("Socket", "ListenStream");
            assert_eq!(stream, address.to_string(), "{config}");
        }
    }
}

#[test]
fn the_data_folder_is_the_one_that_systemd_makes() {
    let service = unit("anteroom.service");
    let folder = format!("/var/lib/{}", service.one("Service", "StateDirectory"));
    for (config, deployed) in configs() {
        assert_eq!(
            deployed.data_dir.to_str(),
            Some(folder.as_str()),
            "{config}"
        );
    }
    let start = service.one("Service", "ExecStart");
    assert!(
        start.ends_with(" serve --config /etc/anteroom/anteroom.toml"),
        "{start}"
    );
    let reload = service.all("Service", "ExecReload");
    let (program, _) = start.split_once(' ').unwrap();
    let check = format!("{program} check --config /etc/anteroom/anteroom.toml");
    assert_eq!(reload, [check.as_str(), "/bin/kill -HUP $MAINPID"]);
}

#[test]
fn there_is_time_to_end_in_and_descriptors_enough() {
    let service = unit("anteroom.service");
    for (config, deployed) in configs() {
        let stop = seconds(service.one("Service", "TimeoutStopSec"));
        assert!(stop >= deployed.end_time(), "{config}: {stop:?}");
        let files: u64 = service.one("Service", "LimitNOFILE").parse().unwrap();
        assert!(files >= deployed.files(), "{config}: {files}");
    }
}

#[test]
fn the_user_is_the_created_one_and_has_no_privileges() {
    let service = unit("anteroom.service");
    let user = service.one("Service", "User");
    assert_eq!(service.one("Service", "Group"), user);
    let users = read("deploy/systemd/anteroom.sysusers.conf");
    let made = users.lines().find(|line| line.starts_with("u "));
    assert_eq!(made.unwrap().split(' ').nth(1), Some(user));
    assert_eq!(service.one("Service", "CapabilityBoundingSet"), "");
    assert_eq!(service.one("Service", "NoNewPrivileges"), "yes");
    // The boot id is read from there.
    assert!(service.all("Service", "ProcSubset").is_empty());
}

#[test]
fn secrets_that_a_config_names_are_loaded() {
    let drop_in = unit("shared/secrets.conf");
    let loaded: Vec<String> = drop_in
        .all("Service", "LoadCredential")
        .into_iter()
        .map(|line| format!("{CREDENTIALS}{}", line.split_once(':').unwrap().0))
        .collect();
    let (_, shared) = configs().last().unwrap();
    let named = [
        shared.admin_token_file.unwrap(),
        shared.password_file.unwrap(),
    ];
    assert_eq!(loaded, named);
    let (_, alone) = configs().next().unwrap();
    assert!(alone.admin_token_file.is_none() && alone.store.is_none());
}
