//! `anteroom check`: reports every mistake in a config file and in the files that it names.
//!
//! The same code reads the file when a gateway starts, and when it reloads the file.

pub mod files;
mod gossip_file;
mod key_file;
mod own_origin;
mod page_files;
mod rate_limit_files;
mod secret_files;
pub mod store_password;
pub mod token_file;

use std::convert::Infallible;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anteroom_config::{Checks, Config, Finding, Parsed, Problem, Problems, RejectedConfig};
use anteroom_proxy::downstream::tls::Tls;
use anteroom_room_http::layer::{RouteTableError, WaitingRoomLayer};
use anteroom_store::chain;
use clap::Args;
use serde_json::json;

/// Checks of the texts that the config crate does not compile.
pub const CHECKS: Checks = Checks {
    lacks_kafka: !cfg!(feature = "kafka"),
    ..anteroom_room_http::CHECKS
};

/// Exit code for an invalid configuration.
pub const EXIT_BAD_CONFIG: u8 = 2;

/// Flags of `anteroom check`.
#[derive(Args, Clone, Debug)]
pub struct CheckOptions {
    /// Config file
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    #[arg(hide = true, value_name = "WORD", value_parser = reject_positional)]
    unnamed: Option<Infallible>,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// Rejects a file without its flag, with the right command in the error.
fn reject_positional(file: &str) -> Result<Infallible, String> {
    Err(format!(
        "a config file is named by a flag: anteroom check --config {file}"
    ))
}

/// Mistakes of a configuration, one a line, ready to be shown.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Report {
    lines: Vec<String>,
}

impl Report {
    /// Creates a report of the problems of a config file.
    #[must_use]
    pub fn of_problems(problems: &Problems) -> Self {
        Self {
            lines: problems.0.iter().map(Problem::to_string).collect(),
        }
    }

    /// Creates a report of these lines.
    #[must_use]
    pub const fn of(lines: Vec<String>) -> Self {
        Self { lines }
    }

    /// Creates a report of one line.
    #[must_use]
    pub fn of_one(line: String) -> Self {
        Self { lines: vec![line] }
    }

    /// Returns the mistakes.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        self.lines.clone()
    }

    /// Prints the mistakes for people.
    ///
    /// # Errors
    ///
    /// If they cannot be written.
    pub fn print(&self, err: &mut impl Write) -> io::Result<()> {
        for line in &self.lines {
            writeln!(err, "error: {line}")?;
        }
        let count = self.lines.len();
        let mistakes = if count == 1 { "mistake" } else { "mistakes" };
        writeln!(err, "{count} {mistakes}; nothing was started or changed")
    }
}

/// Reads a config file and checks everything that can be checked without starting it.
///
/// # Errors
///
/// A [`Report`] of every mistake.
pub fn read(file: &Path) -> Result<Parsed, Report> {
    let name = file.display().to_string();
    let text = read_text(file).map_err(|error| Report {
        lines: vec![format!("{name}: cannot read the file: {error}")],
    })?;
    match Config::parse_partly(&name, &text, CHECKS) {
        Ok(mut parsed) => {
            let (lines, warnings) = mistakes_around(&name, &text, &mut parsed.config, file);
            parsed.warnings.extend(warnings);
            parsed.warnings.extend(open_keys(&name, &parsed.config));
            let secret = gossip_file::open_to_all(&name, &parsed.config);
            parsed.warnings.extend(secret);
            unless(lines, parsed)
        }
        Err(RejectedConfig { problems, readable }) => {
            let mut report = Report::of_problems(&problems);
            // Everything is reported at once, also mistakes in other files.
            if let Some(mut config) = readable {
                let (lines, _) = mistakes_around(&name, &text, &mut config, file);
                report.lines.extend(lines);
            }
            Err(report)
        }
    }
}

/// Reads the text of a config file. The error says why it is not text, and what to do.
fn read_text(file: &Path) -> io::Result<String> {
    let bytes = std::fs::read(file)?;
    let is_utf_16 = bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff");
    let invalid = |message: String| io::Error::new(io::ErrorKind::InvalidData, message);
    if is_utf_16 || bytes.contains(&0) {
        let what = "it is UTF-16 text, or no text; save it as UTF-8 (in \
                    PowerShell: `Set-Content -Encoding utf8`)";
        return Err(invalid(what.to_owned()));
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = valid.iter().filter(|&&byte| byte == b'\n').count() + 1;
        invalid(format!(
            "line {line} is not UTF-8 text; save the file as UTF-8"
        ))
    })
}

/// Checks what the text alone does not show: the files that it names, and how its rooms fit
/// together. Makes the paths of files independent of the current folder. Returns mistakes, and
/// warnings about files that cannot be opened here.
fn mistakes_around(
    name: &str,
    text: &str,
    config: &mut Config,
    file: &Path,
) -> (Vec<String>, Vec<Problem>) {
    let secrets = secret_files::check(text, config, file);
    let (mut lines, pages) = page_files::load(config, file);
    let ca_files = anteroom_proxy::upstream::find_ca_files(config, file).into_iter();
    lines.extend(ca_files.map(|(path, what)| {
        let location = location_of(text, file, "origin_ca_file", Some(&path));
        format!("{location}: {what}")
    }));
    lines.extend(key_file::load(config, file));
    lines.extend(gossip_file::load(config, file));
    lines.extend(room_mistakes(name, config));
    lines.extend(rate_limit_files::mistakes(config, file));
    if let Some(folder) = file.parent() {
        let tls = &mut config.server.tls;
        tls.iter_mut().for_each(|files| files.resolve_paths(folder));
        for (files, error) in Tls::check(tls) {
            let key = tls_key(files.number);
            let location = match files.line {
                0 => name.to_owned(),
                line => format!("{name}:{line}"),
            };
            lines.push(format!("{location}: {key}: {}", chain(&error)));
        }
    }
    lines.extend(secrets.mistakes);
    let warnings = secrets.warnings.into_iter().chain(pages);
    (lines, warnings.collect())
}

/// Returns the location of a key in the text of a config file: `anteroom.toml:7`, or the file alone
/// if the key is written in another way. Of several such keys, the one that names a file like
/// `path`. The text is searched because a value does not know its line.
fn location_of(text: &str, file: &Path, key: &str, path: Option<&Path>) -> String {
    let named = path
        .and_then(Path::file_name)
        .and_then(|name| name.to_str());
    let is_it = |line: &str| {
        let rest = line.trim_start().strip_prefix(key);
        let value = rest.and_then(|rest| rest.trim_start().strip_prefix('='));
        value.is_some_and(|value| named.is_none_or(|name| value.contains(name)))
    };
    match text.lines().position(is_it) {
        Some(before) => format!("{}:{}", file.display(), before + 1),
        None => file.display().to_string(),
    }
}

/// Reports private keys that every user can read, in files whose paths are absolute.
fn open_keys(name: &str, config: &Config) -> Vec<Problem> {
    let files = config.server.tls.iter();
    let open = files.filter(|files| anteroom_proxy::downstream::tls::is_open_to_all(&files.key));
    open.map(|files| open_key(name, files.number)).collect()
}

/// Returns the keys of the config file that name the certificate and key of this number.
fn tls_key(number: usize) -> String {
    match number {
        0 => "server.tls_certificate, tls_key".to_owned(),
        further => format!("server.more_certificates[{further}]"),
    }
}

/// Returns the problem of a private key that every user can read.
fn open_key(name: &str, number: usize) -> Problem {
    Problem {
        source: name.into(),
        line: None,
        column: None,
        owner: None,
        key: tls_key(number),
        finding: Finding::Remark("every user of this machine can read the private key".to_owned()),
        allowed: String::new(),
        hint: Some("chmod 600".to_owned()),
    }
}

/// Checks what only the gateway knows: bypass rules and paths.
///
/// # Errors
///
/// A [`Report`] of every mistake.
pub fn with_rooms(parsed: Parsed) -> Result<Parsed, Report> {
    let lines = room_mistakes("", &parsed.config);
    unless(lines, parsed)
}

/// Returns what was read, unless there are mistakes.
fn unless(lines: Vec<String>, parsed: Parsed) -> Result<Parsed, Report> {
    if lines.is_empty() {
        Ok(parsed)
    } else {
        Err(Report { lines })
    }
}

fn room_mistakes(name: &str, config: &Config) -> Vec<String> {
    let limits = anteroom_limit_http::problems(&config.limits).into_iter();
    let limits = limits.map(|problem| match name {
        "" => problem.to_string(),
        name => format!("{name}: {problem}"),
    });
    let rooms = WaitingRoomLayer::check(config).err();
    let problems = rooms
        .map(|RouteTableError { problems }| problems)
        .unwrap_or_default();
    let loops = own_origin::mistakes(config).into_iter();
    let loops = loops.map(|line| match name {
        "" => line,
        name => format!("{name}: {line}"),
    });
    let lines = problems.into_iter().map(|problem| {
        let location = match (name, problem.line) {
            ("", _) => String::new(),
            (_, 0) => format!("{name}: "),
            (_, line) => format!("{name}:{line}: "),
        };
        let owner = problem.owner.map(|owner| format!("{owner}: "));
        format!("{location}{}{}", owner.unwrap_or_default(), problem.message)
    });
    lines.chain(loops).chain(limits).collect()
}

/// Checks a file and prints its mistakes.
///
/// # Errors
///
/// If the output cannot be printed; mistakes are an exit code of 2.
pub fn run(
    options: &CheckOptions,
    out: &mut impl Write,
    err: &mut impl Write,
) -> anyhow::Result<ExitCode> {
    let result = read(&options.config);
    if options.json {
        let (mistakes, warnings) = match &result {
            Ok(parsed) => (
                vec![],
                parsed.warnings.iter().map(Problem::to_string).collect(),
            ),
            Err(report) => (report.lines(), vec![]),
        };
        let is_valid = result.is_ok();
        let report = json!({ "valid": is_valid, "errors": mistakes, "warnings": warnings });
        out.write_all(format!("{report}\n").as_bytes())?;
    } else {
        match &result {
            Ok(parsed) => {
                for warning in &parsed.warnings {
                    out.write_all(format!("warning: {warning}\n").as_bytes())?;
                }
                let what = summary(&parsed.config);
                out.write_all(format!("{}: valid, {what}\n", options.config.display()).as_bytes())?;
            }
            Err(report) => report.print(err)?,
        }
    }
    Ok(match result {
        Ok(_) => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(EXIT_BAD_CONFIG),
    })
}

/// Returns the number of rooms, and of sites and limits if there are any.
fn summary(config: &Config) -> String {
    let count = |count: usize, what: &str| match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    };
    let (sites, rooms) = (config.sites.len(), config.rooms.len());
    let limits = config.limits.len();
    let mut parts = Vec::new();
    if sites > 0 {
        parts.push(count(sites, "site"));
    }
    parts.push(count(rooms, "room"));
    if limits > 0 {
        parts.push(count(limits, "limit"));
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Cli {
        #[command(flatten)]
        options: CheckOptions,
    }

    #[test]
    fn a_file_without_its_flag_is_rejected_with_the_right_command() {
        let refused = Cli::try_parse_from(["check", "shop.toml"]).unwrap_err();
        let text = refused.to_string();
        assert!(text.contains("anteroom check --config shop.toml"), "{text}");
        let right = Cli::try_parse_from(["check", "--config", "shop.toml"]).unwrap();
        assert_eq!(right.options.config, Path::new("shop.toml"));
    }

    #[test]
    fn the_summary_counts_rooms_and_any_limits() {
        let room = "[[room]]\nname = \"shop\"\norigin = \"http://a\"\ntotal_active_users = 1\n\
                    new_users_per_minute = 1\nbypass = []\n";
        let limit = "[[limit]]\nname = \"api\"\nlimit = \"1/s\"\n";
        let other = limit.replace("api", "web");
        for (text, expected) in [
            (room.to_owned(), "1 room"),
            (format!("{room}{limit}"), "1 room, 1 limit"),
            (format!("{room}{limit}{other}"), "1 room, 2 limits"),
        ] {
            let parsed = Config::parse("anteroom.toml", &text).unwrap();
            assert_eq!(summary(&parsed.config), expected);
        }
    }

    #[test]
    fn mistakes_of_a_file_do_not_hide_those_of_named_files() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("anteroom.toml");
        let text = "[server]\ntls_certificate = \"cert.pem\"\ntls_key = \"key.pem\"\nlisten = 5\n\
                    [[room]]\nname = \"shop\"\norigin = \"https://a\"\ntotal_active_users = 1\n\
                    new_users_per_minute = 1\nbypass = [\"what is this\"]\n\
                    session_duration = 5\norigin_ca_file = \"ca.pem\"\n\
                    custom_page_file = \"page.html\"\n";
        std::fs::write(&file, text).unwrap();
        std::fs::write(folder.path().join("ca.pem"), "nothing").unwrap();
        let lines = read(&file).unwrap_err().lines();
        let expected = [
            ":4: server.listen: ",
            ":10: room \"shop\": bypass",
            ":11: room \"shop\": session_duration: ",
            ":13: room \"shop\": custom_page_file: cannot read",
            ":12: room \"shop\": ",
            ":2: server.tls_certificate, tls_key: cannot read the certificate",
        ];
        assert_eq!(lines.len(), expected.len(), "each once: {lines:#?}");
        for (line, expected) in lines.iter().zip(expected) {
            assert!(line.contains(expected), "{expected}: {lines:#?}");
        }
    }

    #[test]
    fn a_file_that_is_not_utf_8_draws_advice_to_convert_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("anteroom.toml");
        let check = |bytes: &[u8], expected: &str| {
            std::fs::write(&file, bytes).unwrap();
            let lines = read(&file).unwrap_err().lines();
            assert!(lines.len() == 1 && lines[0].contains(expected), "{lines:?}");
            assert!(lines[0].contains("UTF-8"), "{lines:?}");
        };
        check(b"\xff\xfe[\0s\0", "UTF-16");
        check(b"\xfe\xff\0[\0s", "UTF-16");
        check(b"[\0s\0", "UTF-16");
        check(b"# a\n# \xe4\n", "line 2 is not UTF-8 text");
    }

    #[test]
    fn an_unreadable_certificate_is_named_by_its_own_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("anteroom.toml");
        let text = "[server]\ntls_certificate = \"a.pem\"\n\
                    more_certificates = [{ tls_certificate = \"b.pem\" }, \"c\", \
                    { tls_certificate = \"d.pem\", tls_key = \"d.key\" }]\n\
                    [[room]]\nname = \"shop\"\norigin = \"https://a\"\n\
                    total_active_users = 1\nnew_users_per_minute = 1\n";
        std::fs::write(&file, text).unwrap();
        let lines = read(&file).unwrap_err().lines();
        let expected = ":3: server.more_certificates[3]: cannot read the certificate";
        assert!(
            lines.iter().any(|line| line.contains(expected)),
            "{lines:#?}"
        );
    }
}
