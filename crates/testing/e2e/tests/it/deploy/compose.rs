//! Three gateways, a Redis, an origin: names, ports and paths agree with their config file.

use std::collections::BTreeSet;
use std::time::Duration;

use anteroom_e2e::deploy::config::Deployed;
use anteroom_e2e::deploy::files::{path_of, read};
use anteroom_e2e::deploy::yaml;
use serde_json::Value;

use crate::deploy::docker;

fn file() -> Value {
    let mut documents = yaml::parse(&read("deploy/compose/compose.yaml")).unwrap();
    assert_eq!(documents.len(), 1);
    documents.remove(0)
}

fn config() -> Deployed {
    Deployed::parse(&read("deploy/compose/anteroom.toml")).unwrap()
}

fn gateways(file: &Value) -> Vec<(&String, &Value)> {
    let services = file["services"].as_object().unwrap().iter();
    let gateways: Vec<_> = services
        .filter(|(name, _)| name.starts_with("gateway-"))
        .collect();
    assert_eq!(gateways.len(), 3);
    gateways
}

fn texts(list: &Value) -> Vec<&str> {
    let list = list.as_array().into_iter().flatten();
    list.map(|it| it.as_str().unwrap()).collect()
}

#[test]
fn each_gateway_has_ports_of_its_own_and_operators_only_this_machine() {
    let (file, config) = (file(), config());
    let mut seen = BTreeSet::new();
    for (name, gateway) in gateways(&file) {
        let ports = texts(&gateway["ports"]);
        let [visitors, operators] = ports[..] else {
            panic!("{name}: two ports, and not {ports:?}");
        };
        let (published, internal) = visitors.split_once(':').unwrap();
        assert_eq!(internal, config.listen.port().to_string(), "{name}");
        assert!(
            seen.insert(published.to_owned()),
            "{name}: {published} is used twice"
        );
        let operators = operators.strip_prefix("127.0.0.1:").unwrap();
        let (published, internal) = operators.split_once(':').unwrap();
        assert_eq!(internal, config.admin.port().to_string(), "{name}");
        assert!(
            seen.insert(published.to_owned()),
            "{name}: {published} is used twice"
        );
    }
}

#[test]
fn each_gateway_has_its_own_folder_and_the_images_config_path() {
    let (file, config) = (file(), config());
    let mut seen = BTreeSet::new();
    let command: Vec<String> = serde_json::from_str(&docker::instruction("CMD")).unwrap();
    for (name, gateway) in gateways(&file) {
        let volumes = texts(&gateway["volumes"]);
        let [text, data] = volumes[..] else {
            panic!("{name}: two volumes, and not {volumes:?}");
        };
        let read_only = format!("./anteroom.toml:{}:ro", command.last().unwrap());
        assert_eq!(text, read_only, "{name}");
        let (volume, folder) = data.split_once(':').unwrap();
        assert_eq!(Some(folder), config.data_dir.to_str(), "{name}");
        assert!(file["volumes"].get(volume).is_some(), "{name}: {volume}");
        assert!(
            seen.insert(volume.to_owned()),
            "{name}: {volume} is another's"
        );
    }
}

#[test]
fn gateways_are_the_image_without_rights_and_get_time_to_end() {
    let (file, config) = (file(), config());
    for (name, gateway) in gateways(&file) {
        assert_eq!(
            gateway["image"],
            format!("anteroom:{}", docker::version()),
            "{name}"
        );
        let built = gateway["build"]["dockerfile"].as_str().unwrap();
        assert!(path_of(built).is_file(), "{name}: {built}");
        assert_eq!(gateway["build"]["context"], "../..", "{name}");
        assert_eq!(gateway["read_only"], true, "{name}");
        assert_eq!(texts(&gateway["cap_drop"]), ["ALL"], "{name}");
        let grace = gateway["stop_grace_period"].as_str().unwrap();
        let grace = Duration::from_secs(grace.strip_suffix('s').unwrap().parse().unwrap());
        assert!(grace >= config.end_time(), "{name}: {grace:?}");
        let files = gateway["ulimits"]["nofile"].as_u64().unwrap();
        assert!(files >= config.files(), "{name}: {files}");
    }
}

#[test]
fn secrets_are_where_the_config_looks_for_them() {
    let (file, config) = (file(), config());
    let named = [
        config.admin_token_file.unwrap(),
        config.password_file.unwrap(),
    ];
    for (name, gateway) in gateways(&file) {
        let mounted = texts(&gateway["secrets"]);
        let mounted: Vec<String> = mounted
            .iter()
            .map(|it| format!("/run/secrets/{it}"))
            .collect();
        assert_eq!(mounted, named, "{name}");
    }
    let ignored = read(".gitignore");
    for secret in file["secrets"].as_object().unwrap().values() {
        let path = secret["file"].as_str().unwrap();
        assert!(path.starts_with("./secrets/"), "{path}");
        assert!(
            !path_of("deploy/compose").join(path).exists()
                || ignored.contains("/deploy/compose/secrets")
        );
    }
    assert!(
        ignored
            .lines()
            .any(|line| line == "/deploy/compose/secrets")
    );
}

#[test]
fn store_and_origin_are_services_and_the_store_persists() {
    let (file, config) = (file(), config());
    let (store, port) = config.store.unwrap();
    assert_eq!(port, 6379);
    let services = &file["services"];
    assert!(
        services.get(&config.origin.0).is_some(),
        "{:?}",
        config.origin
    );
    let command = texts(&services[&store]["command"]).join(" ");
    for word in [
        "appendonly yes",
        "maxmemory-policy noeviction",
        "requirepass ",
    ] {
        assert!(command.contains(word), "{word}");
    }
    let secret = texts(&services[&store]["secrets"])[0];
    assert_eq!(
        config.password_file.unwrap(),
        format!("/run/secrets/{secret}")
    );
    assert!(command.contains(&format!("/run/secrets/{secret}")));
    for (name, gateway) in gateways(&file) {
        let condition = &gateway["depends_on"][&store]["condition"];
        assert_eq!(condition, "service_healthy", "{name}");
    }
    assert!(services[&store]["healthcheck"]["test"].is_array());
}

#[test]
fn every_image_says_which_version_it_is() {
    let file = file();
    for (name, service) in file["services"].as_object().unwrap() {
        let image = service["image"].as_str().unwrap();
        let tag = image.split_once(':').map(|(_, tag)| tag);
        assert!(tag.is_some_and(|tag| tag.contains('.')), "{name}: {image}");
    }
}
