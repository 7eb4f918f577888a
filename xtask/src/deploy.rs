//! Checks of the files in `deploy/` by systemd and Prometheus.
//!
//! They run only if these are installed; tests do not require them. `anteroom-e2e` tests without
//! them that the files agree with each other and with the program.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, bail, ensure};

use crate::step::Outcome;
use crate::workspace::root;

const UNITS: &[&str] = &[
    "anteroom.service",
    "anteroom.socket",
    "anteroom-operators.socket",
];
/// Path of the program in the units; absent on a machine that only tests.
const PROGRAM: &str = "/usr/local/bin/anteroom";
/// Highest exposure, in tenths. `systemd-analyze security` reports 1.2; other versions may differ.
const EXPOSURE_MAX: &str = "--threshold=15";
/// First version of systemd that checks units that are not installed.
const SYSTEMD_MIN: u32 = 250;

/// Checks with systemd that the units are valid, and their exposure.
pub(crate) fn systemd() -> anyhow::Result<Outcome> {
    let Ok(version) = Command::new("systemd-analyze").arg("--version").output() else {
        return Ok(Outcome::Skipped(
            "systemd-analyze is not installed; to get it, on Debian and Ubuntu: apt-get install \
             systemd",
        ));
    };
    if version_in(&String::from_utf8_lossy(&version.stdout)) < Some(SYSTEMD_MIN) {
        return Ok(Outcome::Skipped("systemd is older than version 250"));
    }
    let folder = Folder::new()?;
    let files = folder.write_units()?;
    let mut verify = Command::new("systemd-analyze");
    verify.args(["verify", "--man=no"]).args(&files);
    check_output(&verify.output().context("starting systemd-analyze")?)?;
    let service = root().join("deploy/systemd").join(UNITS[0]);
    let mut security = Command::new("systemd-analyze");
    security.args(["security", "--offline=yes", EXPOSURE_MAX]);
    let output = security.arg(service).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let verdict = text.lines().last().unwrap_or_default();
    println!("{verdict}");
    ensure!(
        output.status.success(),
        "the unit exposes too much: {verdict}"
    );
    Ok(Outcome::Passed)
}

/// Checks with Prometheus that the alerts are valid and fire as tested.
pub(crate) fn prometheus() -> anyhow::Result<Outcome> {
    let rules = root().join("deploy/prometheus");
    for (kind, file) in [("check", "alerts.yaml"), ("test", "alerts.test.yaml")] {
        let mut promtool = Command::new("promtool");
        promtool.args([kind, "rules", file]).current_dir(&rules);
        let Ok(output) = promtool.output() else {
            return Ok(Outcome::Skipped(
                "promtool is not installed; to get it, on Debian and Ubuntu: apt-get install \
                 prometheus",
            ));
        };
        check_output(&output)?;
    }
    Ok(Outcome::Passed)
}

/// Fails if the program failed or warned about our files: systemd only warns about many mistakes.
fn check_output(output: &Output) -> anyhow::Result<()> {
    let outputs = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    let warnings = warnings(&outputs[1]);
    if !output.status.success() || !warnings.is_empty() {
        bail!("{}\n{}", outputs[0].trim(), outputs[1].trim());
    }
    Ok(())
}

/// Returns the lines about our units; other units of the machine may have errors.
fn warnings(text: &str) -> Vec<&str> {
    text.lines()
        .filter(|line| line.contains("anteroom"))
        .collect()
}

/// Parses the version in `systemd 252 (252.38-1~deb12u1)`, which is 252.
fn version_in(text: &str) -> Option<u32> {
    let number = text.split_whitespace().nth(1)?;
    let digits = number.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

/// Temporary folder, deleted on drop.
struct Folder(PathBuf);

impl Folder {
    fn new() -> anyhow::Result<Self> {
        let path = std::env::temp_dir().join(format!("anteroom-units-{}", std::process::id()));
        fs::create_dir_all(&path).context("making a folder for units")?;
        Ok(Self(path))
    }

    /// Writes the units with their drop-in, with a program that exists on every machine.
    fn write_units(&self) -> anyhow::Result<Vec<PathBuf>> {
        let from = root().join("deploy/systemd");
        let write = |source: &Path, target: &Path| -> anyhow::Result<()> {
            let text = fs::read_to_string(source)
                .with_context(|| format!("reading {}", source.display()))?;
            let text = text.replace(PROGRAM, "/bin/true");
            fs::write(target, text).with_context(|| format!("writing {}", target.display()))
        };
        let mut files = Vec::new();
        for unit in UNITS {
            let target = self.0.join(unit);
            write(&from.join(unit), &target)?;
            files.push(target);
        }
        let drop_ins = self.0.join("anteroom.service.d");
        fs::create_dir_all(&drop_ins).context("making a folder for drop-ins")?;
        let secrets = "secrets.conf";
        write(&from.join("shared").join(secrets), &drop_ins.join(secrets))?;
        Ok(files)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A file left behind in the temporary folder is harmless.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::ExitStatus;

    use super::*;

    fn output(code: i32, err: &str) -> Output {
        Output {
            status: ExitStatus::from_raw(code << 8),
            stdout: Vec::new(),
            stderr: err.as_bytes().to_vec(),
        }
    }

    #[test]
    fn only_a_warning_about_our_unit_is_a_failure() {
        assert!(check_output(&output(0, "")).is_ok());
        assert!(check_output(&output(0, "/lib/systemd/system/x.service:3: Unknown key")).is_ok());
        let ours = "units/anteroom.service:44: Unknown key 'NoNewPrivilege', ignoring.";
        assert!(check_output(&output(0, ours)).is_err());
        assert!(check_output(&output(1, "")).is_err());
    }

    #[test]
    fn the_version_follows_the_name() {
        assert_eq!(
            version_in("systemd 252 (252.38-1~deb12u1)\n+PAM"),
            Some(252)
        );
        assert_eq!(version_in("systemd 257.7 (257.7-1)"), Some(257));
        assert_eq!(version_in(""), None);
    }

    #[test]
    fn written_units_name_an_existing_program() {
        let folder = Folder::new().unwrap();
        let files = folder.write_units().unwrap();
        let service = fs::read_to_string(&files[0]).unwrap();
        assert!(service.contains("ExecStart=/bin/true serve"));
        assert!(!service.contains(PROGRAM));
    }
}
