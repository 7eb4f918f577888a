//! Manifests: names, ports, paths and times agree with each other and with the config in the
//! ConfigMap.

use std::time::Duration;

use anteroom_admin::Token;
use anteroom_config::{Config, StoreConfig};
use anteroom_e2e::deploy::config::Deployed;
use anteroom_e2e::deploy::files::{below, read};
use anteroom_e2e::deploy::yaml;
use serde_json::{Value, json};

use crate::deploy::docker;

const FOLDER: &str = "deploy/kubernetes";

/// Returns the objects of all files, without kustomize's list of files.
fn objects() -> Vec<Value> {
    let files = below(FOLDER)
        .into_iter()
        .filter(|file| !file.ends_with("kustomization.yaml"));
    let parsed = files
        .map(|file| yaml::parse(&read(&file)).unwrap_or_else(|error| panic!("{file}: {error}")));
    parsed.flatten().collect()
}

fn object(kind: &str, name: &str) -> Value {
    let found = objects()
        .into_iter()
        .filter(|it| it["kind"] == kind && it["metadata"]["name"] == name);
    let found: Vec<Value> = found.collect();
    assert_eq!(found.len(), 1, "{kind} {name}");
    found.into_iter().next().unwrap()
}

fn config_text() -> String {
    let map = object("ConfigMap", "anteroom");
    map["data"]["anteroom.toml"].as_str().unwrap().to_owned()
}

fn config() -> Deployed {
    Deployed::parse(&config_text()).unwrap_or_else(|error| panic!("{error}"))
}

fn pod() -> Value {
    object("Deployment", "anteroom")["spec"]["template"].clone()
}

fn container(pod: &Value) -> Value {
    let containers = pod["spec"]["containers"].as_array().unwrap();
    assert_eq!(containers.len(), 1);
    containers[0].clone()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().unwrap().iter()
}

#[test]
fn every_file_but_the_secrets_example_is_applied_in_one_namespace() {
    let kustomization = yaml::parse(&read(&format!("{FOLDER}/kustomization.yaml"))).unwrap();
    let mut listed: Vec<String> = list(&kustomization[0]["resources"])
        .map(|it| format!("{FOLDER}/{}", it.as_str().unwrap()))
        .collect();
    listed.sort();
    let own = ["kustomization.yaml", "secret.example.yaml"];
    let files = below(FOLDER).into_iter();
    let files: Vec<String> = files
        .filter(|file| !own.iter().any(|own| file.ends_with(own)))
        .collect();
    assert_eq!(listed, files);
    let namespace = object("Namespace", "anteroom");
    for object in objects() {
        if object["kind"] != "Namespace" {
            assert_eq!(
                object["metadata"]["namespace"], namespace["metadata"]["name"],
                "{object}"
            );
        }
    }
}

#[test]
fn ports_and_probes_are_those_of_the_config() {
    let config = config();
    let pod = pod();
    let container = container(&pod);
    let ports = json!([
        {"name": "visitors", "containerPort": config.listen.port()},
        {"name": "operators", "containerPort": config.admin.port()},
    ]);
    assert_eq!(container["ports"], ports);
    assert!(!config.admin.ip().is_loopback(), "the kubelet reaches it");
    let control = read("crates/admin/src/control.rs");
    for (probe, path) in [
        ("startupProbe", "/livez"),
        ("livenessProbe", "/livez"),
        ("readinessProbe", "/readyz"),
    ] {
        let expected = json!({"path": path, "port": "operators"});
        assert_eq!(container[probe]["httpGet"], expected, "{probe}");
        assert!(
            control.contains(&format!(".route(\"{path}\"")),
            "{path} gets a response"
        );
    }
    let services = [
        ("anteroom", "visitors"),
        ("anteroom-operators", "operators"),
    ];
    for (name, port) in services {
        let service = object("Service", name);
        assert_eq!(service["spec"]["ports"][0]["targetPort"], port);
        assert_eq!(service["spec"]["selector"], pod["metadata"]["labels"]);
    }
}

#[test]
fn a_pod_has_time_to_start_and_to_end() {
    let pod = pod();
    let container = container(&pod);
    let before_end = container["lifecycle"]["preStop"]["sleep"]["seconds"]
        .as_u64()
        .unwrap();
    let grace = pod["spec"]["terminationGracePeriodSeconds"]
        .as_u64()
        .unwrap();
    let needed = config().end_time() + Duration::from_secs(before_end);
    assert!(Duration::from_secs(grace) >= needed, "{grace} s");
    let startup = &container["startupProbe"];
    let startup_secs =
        startup["periodSeconds"].as_u64().unwrap() * startup["failureThreshold"].as_u64().unwrap();
    // As long as a new node waits for its store.
    assert!(startup_secs > 30, "{startup_secs} s");
}

#[test]
fn what_the_config_names_is_mounted() {
    let config = config();
    let pod = pod();
    let container = container(&pod);
    let mount = |name: &str| {
        let mounts = container["volumeMounts"].as_array().unwrap();
        let mount = mounts.iter().find(|mount| mount["name"] == name).unwrap();
        mount["mountPath"].as_str().unwrap().to_owned()
    };
    let volume = |name: &str| {
        let volumes = pod["spec"]["volumes"].as_array().unwrap();
        volumes
            .iter()
            .find(|volume| volume["name"] == name)
            .unwrap()
            .clone()
    };
    assert_eq!(config.data_dir.to_str(), Some(mount("data").as_str()));
    assert!(volume("data")["emptyDir"].is_object());
    assert!(config.store.is_some(), "a journal must not go with its pod");
    let file = format!("{}/anteroom.toml", mount("config"));
    assert_eq!(container["args"], json!(["serve", "--config", file]));
    assert_eq!(volume("config")["configMap"]["name"], "anteroom");
    let secret = object("Secret", "anteroom");
    assert_eq!(
        volume("secrets")["secret"]["secretName"],
        secret["metadata"]["name"]
    );
    let mut named = [
        config.admin_token_file.unwrap(),
        config.password_file.unwrap(),
    ]
    .into_iter();
    for key in secret["stringData"].as_object().unwrap().keys() {
        assert_eq!(named.next(), Some(format!("{}/{key}", mount("secrets"))));
    }
    assert_eq!(named.next(), None);
}

#[test]
fn the_placeholders_of_the_secret_are_rejected() {
    let secret = object("Secret", "anteroom");
    let text = |key: &str| secret["stringData"][key].as_str().unwrap().to_owned();
    assert!(Token::parse(&text("admin-tokens")).is_err());
    let config = Config::parse("anteroom.toml", &config_text())
        .unwrap()
        .config;
    let StoreConfig::Valkey(mut store) = config.store else {
        panic!("the store is embedded");
    };
    let password = text("redis-password");
    assert!(store.set_password(password.trim_end_matches('\n')).is_err());
    store.set_password("one line of text").unwrap();
}

#[test]
fn a_pod_may_do_nothing_special() {
    let pod = pod();
    let container = container(&pod);
    let own = &container["securityContext"];
    assert_eq!(own["readOnlyRootFilesystem"], true);
    assert_eq!(own["allowPrivilegeEscalation"], false);
    assert_eq!(own["capabilities"]["drop"], json!(["ALL"]));
    let common = &pod["spec"]["securityContext"];
    assert_eq!(common["runAsNonRoot"], true);
    let user = format!("{}:{}", common["runAsUser"], common["runAsGroup"]);
    assert_eq!(user, docker::instruction("USER"));
    assert_eq!(common["fsGroup"], common["runAsGroup"]);
    assert_eq!(pod["spec"]["automountServiceAccountToken"], false);
    let image = container["image"].as_str().unwrap();
    assert!(
        image.ends_with(&format!("/anteroom:{}", docker::version())),
        "{image}"
    );
}

#[test]
fn selectors_find_the_pods() {
    let labels = pod()["metadata"]["labels"].clone();
    let found = |kind: &str, path: &str| object(kind, "anteroom").pointer(path).cloned();
    for (kind, path) in [
        ("Deployment", "/spec/selector/matchLabels"),
        (
            "Deployment",
            "/spec/template/spec/topologySpreadConstraints/0/labelSelector/matchLabels",
        ),
        ("PodDisruptionBudget", "/spec/selector/matchLabels"),
        ("NetworkPolicy", "/spec/podSelector/matchLabels"),
    ] {
        assert_eq!(found(kind, path).as_ref(), Some(&labels), "{kind} {path}");
    }
}

#[test]
fn the_network_policy_allows_what_the_config_needs() {
    let config = config();
    let policy = object("NetworkPolicy", "anteroom");
    let ports = |direction: &str| -> Vec<u64> {
        let rules = list(&policy["spec"][direction]);
        let ports = rules.flat_map(|rule| rule["ports"].as_array().unwrap().clone());
        ports.map(|port| port["port"].as_u64().unwrap()).collect()
    };
    let expected = [config.listen.port(), config.admin.port()].map(u64::from);
    assert_eq!(ports("ingress"), expected);
    let expected = [53, 53, config.store.unwrap().1, config.origin.1].map(u64::from);
    assert_eq!(ports("egress"), expected);
    let open = list(&policy["spec"]["ingress"]).filter(|rule| rule.get("from").is_none());
    assert_eq!(open.count(), 0, "a rule without `from` allows all");
}
