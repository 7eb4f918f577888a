//! What do systemd and Prometheus themselves say about the files in `deploy/`?
//!
//! Asked where they are installed; nobody has to install them for the tests. That the files agree
//! with each other and with the program is tested without them, in `anteroom-e2e`.

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
/// Where the units look for the program; not there on a machine that only tests.
const PROGRAM: &str = "/usr/local/bin/anteroom";
/// In tenths. `systemd-analyze security` says 1.2; other versions may weigh some line anew.
const EXPOSURE_MAX: &str = "--threshold=15";
/// Since when systemd judges units that are not installed.
const SYSTEMD_MIN: u32 = 250;

/// Units, as systemd reads them, and how much they expose.
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
    judge(&verify.output().context("starting systemd-analyze")?)?;
    let service = root().join("deploy/systemd").join(UNITS[0]);
    let mut security = Command::new("systemd-analyze");
    security.args(["security", "--offline=yes", EXPOSURE_MAX]);
    let output = security.arg(service).output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    let verdict = said.lines().last().unwrap_or_default();
    println!("{verdict}");
    ensure!(output.status.success(), "exposes too much: {verdict}");
    Ok(Outcome::Passed)
}

/// Alerts, as Prometheus reads them, and whether they go off when they should.
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
        judge(&output)?;
    }
    Ok(Outcome::Passed)
}

/// Fails if the program did, or if it complained about something of ours: systemd forgives much.
fn judge(output: &Output) -> anyhow::Result<()> {
    let said = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    let complaints = complaints(&said[1]);
    if !output.status.success() || !complaints.is_empty() {
        bail!("{}\n{}", said[0].trim(), said[1].trim());
    }
    Ok(())
}

/// Lines that speak of our units; a machine may have units of its own that are broken.
fn complaints(text: &str) -> Vec<&str> {
    text.lines()
        .filter(|line| line.contains("anteroom"))
        .collect()
}

/// `252` of `systemd 252 (252.38-1~deb12u1)`.
fn version_in(text: &str) -> Option<u32> {
    let number = text.split_whitespace().nth(1)?;
    let digits = number.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

/// A folder that goes when it has served.
struct Folder(PathBuf);

impl Folder {
    fn new() -> anyhow::Result<Self> {
        let path = std::env::temp_dir().join(format!("anteroom-units-{}", std::process::id()));
        fs::create_dir_all(&path).context("making a folder for units")?;
        Ok(Self(path))
    }

    /// The units with their drop-in, and a program that is there on every machine.
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
        // What stays behind in the folder for temporary files harms nobody.
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
    fn a_complaint_about_our_unit_fails_and_one_about_another_does_not() {
        assert!(judge(&output(0, "")).is_ok());
        assert!(judge(&output(0, "/lib/systemd/system/x.service:3: Unknown key")).is_ok());
        let ours = "units/anteroom.service:44: Unknown key 'NoNewPrivilege', ignoring.";
        assert!(judge(&output(0, ours)).is_err());
        assert!(judge(&output(1, "")).is_err());
    }

    #[test]
    fn the_version_is_the_number_after_the_name() {
        assert_eq!(
            version_in("systemd 252 (252.38-1~deb12u1)\n+PAM"),
            Some(252)
        );
        assert_eq!(version_in("systemd 257.7 (257.7-1)"), Some(257));
        assert_eq!(version_in(""), None);
    }

    #[test]
    fn units_name_the_program_where_it_is_looked_for() {
        let folder = Folder::new().unwrap();
        let files = folder.write_units().unwrap();
        let service = fs::read_to_string(&files[0]).unwrap();
        assert!(service.contains("ExecStart=/bin/true serve"));
        assert!(!service.contains(PROGRAM));
    }
}
