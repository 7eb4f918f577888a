//! Logs: text for people, JSON for programs, on standard error.

use clap::{Args, ValueEnum};
use tracing_appender::non_blocking::WorkerGuard;
use tracing_subscriber::EnvFilter;

/// How to log.
#[derive(Args, Clone, Debug)]
pub struct LogOptions {
    /// How log lines are written
    #[arg(long, value_enum, default_value_t = LogFormat::Text, value_name = "FORMAT")]
    pub log_format: LogFormat,
    /// What to log: a level, or targets with levels, as in `warn,access=info` (the access log is
    /// the target `access`)
    #[arg(
        long,
        default_value = "info",
        value_name = "FILTER",
        env = "ANTEROOM_LOG"
    )]
    pub log: String,
}

/// How log lines are written.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

impl LogOptions {
    /// Warnings only, for commands whose output is something else.
    #[must_use]
    pub fn quiet() -> Self {
        Self {
            log_format: LogFormat::Text,
            log: "error".to_owned(),
        }
    }
}

/// Writes what is still to be written when dropped; keep it until the end.
#[must_use = "lines that are still to be written are lost when it is dropped"]
pub struct Flush {
    _guard: WorkerGuard,
}

/// Starts logging. A second call changes nothing.
///
/// Lines are written by a thread of their own. Whoever reads them may be slow or gone: then lines
/// are dropped, and not visitors held.
///
/// # Errors
///
/// If the filter cannot be understood.
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
        // It would complain on standard error that standard error is closed, and panic.
        .log_internal_errors(false)
        .with_writer(writer);
    // Tests start several gateways in one process; the first one's logging stays.
    let _ = match options.log_format {
        LogFormat::Text => builder
            .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
            .try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
    Ok(Flush { _guard: guard })
}
