//! Image: its copied files exist and suffice, and its ports, user and health check are those of the
//! config.

use std::collections::BTreeSet;

use anteroom_e2e::deploy::config::Deployed;
use anteroom_e2e::deploy::files::{path_of, read};

const DOCKERFILE: &str = "deploy/docker/Dockerfile";

/// Returns the version of all crates, which is the tag of the image.
pub(crate) fn version() -> String {
    let manifest: toml::Value = toml::from_str(&read("Cargo.toml")).unwrap();
    let version = &manifest["workspace"]["package"]["version"];
    version.as_str().unwrap().to_owned()
}

/// Returns the arguments of each instruction of this name, in their order.
pub(crate) fn instructions(name: &str) -> Vec<String> {
    let text = read(DOCKERFILE).replace("\\\n", " ");
    let lines = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix(name));
    let lines = lines.filter_map(|line| line.strip_prefix(' '));
    lines.map(|line| line.trim().to_owned()).collect()
}

/// Returns the only argument of an instruction that occurs once.
pub(crate) fn instruction(name: &str) -> String {
    let found = instructions(name);
    let [only] = &found[..] else {
        panic!("{name} must occur once; found {found:?}");
    };
    only.clone()
}

#[test]
fn what_is_copied_is_there_is_not_ignored_and_holds_all_crates() {
    let ignored = read("deploy/docker/Dockerfile.dockerignore");
    let mut lines = ignored.lines().filter(|line| !line.starts_with('#'));
    assert_eq!(lines.next(), Some("*"), "the list begins by ignoring all");
    let sent: BTreeSet<&str> = lines.map(|line| line.strip_prefix('!').unwrap()).collect();
    let copies = instructions("COPY");
    let copies = copies.iter().filter(|copy| !copy.starts_with("--from"));
    let sources: BTreeSet<&str> = copies
        .flat_map(|copy| {
            let mut words: Vec<&str> = copy.split(' ').collect();
            words.pop();
            words
        })
        .collect();
    assert_eq!(sources, sent);
    for source in &sources {
        assert!(path_of(source).exists(), "{source}");
    }
    let manifest: toml::Value = toml::from_str(&read("Cargo.toml")).unwrap();
    for member in manifest["workspace"]["members"].as_array().unwrap() {
        let folder = member.as_str().unwrap().split('/').next().unwrap();
        assert!(sources.contains(folder), "{folder} is not copied");
    }
}

#[test]
fn the_compiler_is_new_enough() {
    let manifest: toml::Value = toml::from_str(&read("Cargo.toml")).unwrap();
    let needed = manifest["workspace"]["package"]["rust-version"].as_str();
    let from = &instructions("FROM")[0];
    assert_eq!(*from, format!("rust:{}-bookworm AS build", needed.unwrap()));
}

#[test]
fn the_image_is_not_root_has_no_shell_and_looks_after_itself() {
    let last = instructions("FROM").pop().unwrap();
    assert!(last.starts_with("gcr.io/distroless/"), "{last}");
    assert_eq!(instruction("USER"), "65532:65532");
    let program = instruction("ENTRYPOINT");
    let program = program.trim_matches(['[', ']', '"']);
    let copied = format!("--from=build {program} {program}");
    assert!(instructions("COPY").contains(&copied), "{copied}");
    let health = instruction("HEALTHCHECK");
    let (_, command) = health.split_once("CMD ").unwrap();
    let words: Vec<String> = serde_json::from_str(command).unwrap();
    assert_eq!(words, [program, "status", "--ready"]);
    let help = read("crates/anteroom/testdata/help/status.txt");
    assert!(help.contains("--ready"), "the command has it");
}

#[test]
fn ports_and_folder_are_those_of_the_config_that_comes_with_it() {
    let config = Deployed::parse(&read("deploy/compose/anteroom.toml")).unwrap();
    let ports = format!("{} {}", config.listen.port(), config.admin.port());
    assert_eq!(instruction("EXPOSE"), ports);
    let folder = instruction("VOLUME");
    assert_eq!(config.data_dir.to_str(), Some(folder.as_str()));
    let copied = instructions("COPY");
    assert!(
        copied
            .iter()
            .any(|copy| copy.contains("--chown=65532:65532") && copy.ends_with(&folder)),
        "the user may write there: {copied:?}"
    );
    let build_command = format!("-t anteroom:{} .", version());
    assert!(read(DOCKERFILE).contains(&build_command), "{build_command}");
}
