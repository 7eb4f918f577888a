//! Logs on standard error: text for people, JSON for programs.

mod access;
mod lines;

use std::cell::RefCell;
use std::io::{self, IsTerminal as _};
use std::time::SystemTime;

use anteroom_proxy::access_log::{self, AccessLine};
use anyhow::Context as _;
use clap::{Args, ValueEnum};
use tracing_subscriber::EnvFilter;

pub use lines::Flush;
use lines::Lines;

/// Log settings.
#[derive(Args, Clone, Debug)]
pub struct LogOptions {
    /// Format of log lines
    #[arg(long, value_enum, default_value_t = LogFormat::Text, value_name = "FORMAT")]
    pub log_format: LogFormat,
    /// Filter of log lines: a level, or targets with levels, such as `warn,access=info` (`access`
    /// is the access log)
    #[arg(
        long,
        default_value = "info",
        value_name = "FILTER",
        env = "ANTEROOM_LOG"
    )]
    pub log: String,
}

/// Format of log lines.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub enum LogFormat {
    /// Text for people.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

impl LogOptions {
    /// Returns options for warnings only, for commands with other output.
    #[must_use]
    pub fn quiet() -> Self {
        Self {
            log_format: LogFormat::Text,
            log: "error".to_owned(),
        }
    }
}

/// Starts logging. A second call changes nothing.
///
/// A thread of its own writes the lines. If their reader is slow or gone, lines are dropped, so
/// that no visitor waits for it.
///
/// # Errors
///
/// If the filter is not valid.
pub fn init(options: &LogOptions) -> anyhow::Result<Flush> {
    let filter = EnvFilter::try_new(&options.log).map_err(|error| {
        anyhow::anyhow!(
            "--log {}: {error}; for example `info` or `warn,access=info`",
            options.log
        )
    })?;
    let lines = Lines::default();
    let flush = lines.write_to(io::stderr());
    let flush = flush.context("the thread of the log cannot start")?;
    let has_colours = io::stderr().is_terminal();
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        // It would report a closed standard error on standard error, and panic.
        .log_internal_errors(false)
        .with_writer(lines.clone());
    let started = match options.log_format {
        LogFormat::Text => builder.with_ansi(has_colours).try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
    // Tests start several gateways in one process; the logging of the first one stays.
    if started.is_ok() {
        match options.log_format {
            // Only events have colours.
            LogFormat::Text if has_colours => {}
            LogFormat::Text => write_access_lines(lines, access::append_text),
            LogFormat::Json => write_access_lines(lines, access::append_json),
        }
    }
    Ok(flush)
}

thread_local! {
    /// Line that is being formatted. Nobody else waits for that.
    static LINE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

#[expect(
    clippy::disallowed_methods,
    reason = "the time of a line in the log decides nothing"
)]
fn write_access_lines(lines: Lines, append: fn(&mut Vec<u8>, SystemTime, &AccessLine<'_>)) {
    access_log::set_writer(Box::new(move |line| {
        LINE.with_borrow_mut(|bytes| {
            bytes.clear();
            append(bytes, SystemTime::now(), line);
            lines.push(bytes);
        });
    }));
}
