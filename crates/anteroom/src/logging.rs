//! Logs on standard error: text for people, JSON for programs.

use clap::{Args, ValueEnum};
use tracing_appender::non_blocking::WorkerGuard;
use tracing_subscriber::EnvFilter;

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

/// Writes the remaining lines when it is dropped; keep it until the end.
#[must_use = "lines that are still to be written are lost when it is dropped"]
pub struct Flush {
    _guard: WorkerGuard,
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
    let (writer, guard) = tracing_appender::non_blocking(std::io::stderr());
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        // It would report a closed standard error on standard error, and panic.
        .log_internal_errors(false)
        .with_writer(writer);
    // Tests start several gateways in one process; the logging of the first one stays.
    let _ = match options.log_format {
        LogFormat::Text => builder
            .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
            .try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
    Ok(Flush { _guard: guard })
}
