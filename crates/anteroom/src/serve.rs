//! `anteroom serve`: runs the gateway until it is stopped.

use std::future::Future;
use std::io::Write;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::ExitCode;

use crate::check::{self as check, store_password};
use anteroom_config::{Config, FLAGS, Flag, Flags, Parsed, Takes};
use anteroom_proxy::downstream::handover::{HandoverError, Inherited};
use anteroom_proxy::downstream::supervisor;
use anteroom_proxy::downstream::workers::Workers;
use anteroom_store::chain;
use anyhow::Context as _;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::gateway::Gateway;
use crate::logging::{self, LogOptions};

/// Flags of `anteroom serve`. With `--config` they come from the file; without, they describe one
/// room.
#[derive(Args, Clone, Debug)]
#[command(group = clap::ArgGroup::new("source").args(["config", "origin"]).required(true))]
pub struct ServeOptions {
    /// Config file; SIGHUP reads it again (see anteroom.example.toml)
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    room: RoomFlags,
    #[command(flatten)]
    logs: LogOptions,
}

/// Flags that replace a file: those of the table in `anteroom-config`.
#[derive(Clone, Debug)]
struct RoomFlags(Flags);

impl Args for RoomFlags {
    fn augment_args(command: Command) -> Command {
        command.args(FLAGS.iter().map(argument))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for RoomFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut flags = Flags::default();
        for flag in FLAGS {
            let typed = match flag.takes {
                Takes::Nothing => matches.get_flag(flag.name).then(Vec::new),
                Takes::Text(_) | Takes::Number(_) | Takes::Texts(_) => matches
                    .get_many::<String>(flag.name)
                    .map(|typed| typed.cloned().collect()),
            };
            if let Some(typed) = typed {
                flags.put(flag, typed);
            }
        }
        Ok(Self(flags))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn argument(flag: &Flag) -> Arg {
    let argument = Arg::new(flag.name)
        .long(flag.name)
        .help(flag.help)
        .conflicts_with("config");
    let argument = match flag.takes {
        Takes::Text(name) | Takes::Number(name) => argument.value_name(name),
        Takes::Texts(name) => argument.value_name(name).action(ArgAction::Append),
        Takes::Nothing => argument.action(ArgAction::SetTrue),
    };
    match flag.requires {
        Some(other) => argument.requires(other),
        None => argument,
    }
}

/// Runs the gateway until SIGTERM or SIGINT, or until a successor, requested by SIGUSR2, is ready.
///
/// # Errors
///
/// If the configuration is wrong or something cannot be started.
pub async fn run(options: ServeOptions, err: &mut impl Write) -> anyhow::Result<ExitCode> {
    let _flush = logging::init(&options.logs)?;
    // Before anything slow: a SIGHUP during the start must not end the process.
    let mut signals = Signals::listen()?;
    let config = match configure(&options) {
        Ok(config) => config,
        Err(report) => {
            report.print(err)?;
            return Ok(ExitCode::from(check::EXIT_BAD_CONFIG));
        }
    };
    let mut inherited = Inherited::take()?;
    let predecessor = inherited.predecessor();
    let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
    let workers = Workers::start(processors).context("cannot start threads for visitors")?;
    let gateway = Gateway::start_after(&config, inherited, workers).await?;
    tracing::info!(
        visitors = %format_args!("{}://{}/", gateway.scheme(), gateway.address()),
        operators = %format_args!("{}://{}/", gateway.admin_scheme(), gateway.admin()),
        data = %config.server.data_dir.display(),
        sites = config.sites.len(),
        rooms = config.rooms.len(),
        "serving"
    );
    if let Some(predecessor) = predecessor
        && let Err(error) = predecessor.notify_ready().await
    {
        // The predecessor was stopped meanwhile, and this process was too.
        gateway.stop().await;
        return Err(error.into());
    }
    supervisor::notify_ready();
    let end = until_stopped(&gateway, options.config.as_deref(), &mut signals).await;
    tracing::info!(
        "returning leases and draining open requests; a second signal ends the process at once"
    );
    // A supervisor that stops the service signals all its processes, this one too, which is already
    // stopping.
    let is_stopped = matches!(end, End::Stop);
    let ending = async {
        match end {
            End::Stop => {
                supervisor::notify_stopping();
                gateway.stop().await;
            }
            End::Successor(id) => {
                supervisor::notify_successor(id);
                gateway.leave().await;
            }
        }
    };
    let second_signal = async {
        if !is_stopped {
            signals.stopped().await;
            tracing::info!("already stopping; a second signal ends the process at once");
        }
        signals.stopped().await;
    };
    tokio::select! {
        () = ending => Ok(ExitCode::SUCCESS),
        () = second_signal => {
            tracing::warn!("ended by a second signal; open requests were aborted");
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Signals of an operator or a supervisor to the process.
struct Signals {
    hang_up: Signal,
    replace: Signal,
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn listen() -> anyhow::Result<Self> {
        let listen_for = |kind| signal(kind).context("cannot listen for signals");
        Ok(Self {
            hang_up: listen_for(SignalKind::hangup())?,
            replace: listen_for(SignalKind::user_defined2())?,
            terminate: listen_for(SignalKind::terminate())?,
            interrupt: listen_for(SignalKind::interrupt())?,
        })
    }

    async fn stopped(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Returns the configuration, and logs its warnings.
fn configure(options: &ServeOptions) -> Result<Config, check::Report> {
    if let Some(file) = &options.config {
        return read(file);
    }
    let parsed = Config::single_room_with(&options.room.0, check::CHECKS)
        .map_err(|problems| check::Report::of_problems(&problems))?;
    let Parsed { config, warnings } = check::with_rooms(parsed)?;
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    Ok(config)
}

fn read(file: &Path) -> Result<Config, check::Report> {
    let Parsed {
        mut config,
        warnings,
    } = check::read(file)?;
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    resolve_paths(&mut config, file);
    store_password::load(&mut config, file)
        .map_err(|error| check::Report::of_one(chain(&error)))?;
    Ok(config)
}

/// Makes folders and files of the process relative to the config file.
fn resolve_paths(config: &mut Config, file: &Path) {
    if let Some(folder) = file.parent() {
        config.server.data_dir = folder.join(&config.server.data_dir);
        if let Some(service) = &mut config.rate_limit_service {
            service.config_dir = folder.join(&service.config_dir);
        }
        if let Some(tokens) = &mut config.server.admin_token_file {
            *tokens = folder.join(&*tokens);
        }
    }
}

/// Reason why a gateway ends.
enum End {
    /// The process was stopped.
    Stop,
    /// Another process with this id has taken over.
    Successor(u32),
}

type Starting<'a> = Pin<Box<dyn Future<Output = Result<u32, HandoverError>> + 'a>>;

async fn until_stopped(gateway: &Gateway, file: Option<&Path>, signals: &mut Signals) -> End {
    let mut starting: Option<Starting<'_>> = None;
    loop {
        tokio::select! {
            biased;
            _ = signals.terminate.recv() => return End::Stop,
            _ = signals.interrupt.recv() => return End::Stop,
            _ = signals.hang_up.recv() => {
                // The log has the mistakes.
                let _ = reload(gateway, file);
            }
            request = gateway.reload_requested() => request.finish(reload(gateway, file)),
            _ = signals.replace.recv(), if starting.is_none() => {
                if std::process::id() == 1 {
                    // The first process of a container, which ends with it.
                    tracing::error!(
                        "SIGUSR2: a successor would end with this process, which is number 1; \
                         start \
                         another container instead"
                    );
                    continue;
                }
                tracing::info!("SIGUSR2: starting a successor");
                starting = Some(Box::pin(gateway.legacy().start_successor()));
            }
            started = ready(&mut starting) => match started {
                Ok(id) => {
                    tracing::info!(successor = id, "the successor serves");
                    return End::Successor(id);
                }
                Err(error) => {
                    tracing::error!(cause = chain(&error), "no successor; this process goes on");
                    starting = None;
                }
            },
        }
    }
}

/// Waits for the successor, if one is being started.
async fn ready(starting: &mut Option<Starting<'_>>) -> Result<u32, HandoverError> {
    match starting {
        Some(starting) => starting.await,
        None => std::future::pending().await,
    }
}

/// Reads the file again. A file with mistakes changes nothing, and all of them are logged and
/// returned.
fn reload(gateway: &Gateway, file: Option<&Path>) -> Result<(), Vec<String>> {
    let Some(file) = file else {
        let text = "this process was started without a config file, so there is none to read again";
        tracing::warn!("{text}");
        return Err(vec![text.to_owned()]);
    };
    supervisor::notify_reloading();
    let result = match read(file) {
        Ok(config) => gateway
            .reload(&config)
            .map_err(|error| vec![format!("{error:#}")]),
        Err(report) => Err(report.lines()),
    };
    match &result {
        Ok(()) => {
            tracing::info!(file = %file.display(), "reloaded");
            gateway.note_reload(None);
        }
        Err(lines) => {
            for line in lines {
                tracing::error!("{line}");
            }
            tracing::error!(file = %file.display(), "not reloaded; the old configuration stays");
            gateway.note_reload(Some(lines.join("; ")));
        }
    }
    supervisor::notify_ready();
    result
}
