//! Does it work? The main job in one command: an origin that slows down when too many are in it,
//! a gateway in front of it, and a crowd that outgrows the limits.
//!
//! Everything goes through sockets and cookies, and the count that matters is the origin's own.
//! How a gateway is started is not known here: whoever calls [`run`] brings one.

mod clock;
pub mod crowd;
mod dice;
pub mod judge;
pub mod options;
pub mod origin;
mod progress;
pub mod quantiles;
mod stop;
pub mod summary;
#[cfg(test)]
mod tests;

use std::error::Error;
use std::fmt;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

use anteroom_core::rules::Limits;
use anteroom_core::time::Span;
use serde::Serialize;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::time::Instant;
use url::Url;

use self::clock::whole_millis;
use self::crowd::{Crowd, Target};
pub use self::options::DemoOptions;
use self::origin::{Origin, OriginOptions, ServiceTime};
use self::progress::{Figures, LOOK_EVERY, Progress};
use self::summary::Circumstances;
pub use self::summary::Summary;

/// Name of the demo's room.
pub const ROOM: &str = "demo";

/// Time of a page while the shop is not overrun: that of an ordinary page from a database.
const PAGE_TIME: Duration = Duration::from_millis(20);

/// The gateway that a demo needs.
#[derive(Clone, Debug)]
pub struct GatewayPlan {
    /// Where admitted requests go.
    pub origin: SocketAddr,
    /// Name of the one room, which covers every host and path.
    pub room: String,
    /// Its limits.
    pub limits: Limits,
    /// Its session duration.
    pub session_duration: Span,
    /// An empty folder for journal and keys; gone when the demo ends.
    pub data_dir: PathBuf,
}

/// A gateway that somebody started.
pub struct RunningGateway {
    /// Where to open a browser, as in `http://127.0.0.1:8080/`.
    pub url: Url,
    /// Reads its figures; called a few times a second.
    pub figures: Box<dyn Fn() -> GatewayFigures + Send + Sync>,
    /// Ends it; returns once it has ended.
    pub stop: Pin<Box<dyn Future<Output = ()> + Send>>,
}

/// What the gateway says of its room.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub struct GatewayFigures {
    /// Visitors inside.
    pub inside: u32,
    /// Visitors in the line.
    pub waiting: u32,
    /// Admissions since the start.
    pub admitted: u64,
}

/// Why there was no demo, or no end to it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DemoError {
    /// No port, or no way to listen on it.
    #[error("cannot start the origin")]
    StartOrigin(#[source] io::Error),
    /// No place for the gateway's files.
    #[error("cannot make a temporary folder for the gateway")]
    MakeDataDir(#[source] io::Error),
    /// The gateway did not start.
    #[error("cannot start the gateway")]
    StartGateway(#[source] Box<dyn Error + Send + Sync>),
    /// Standard output is closed.
    #[error("cannot print how the demo went")]
    Print(#[source] io::Error),
}

/// Runs the demo on standard output until its time is over or somebody interrupts it.
///
/// # Errors
///
/// [`DemoError`], if a part does not start or standard output is closed. A limit that was
/// exceeded is no error but a [`Summary`] that says so.
pub async fn run<F, E>(options: &DemoOptions, start_gateway: F) -> Result<Summary, DemoError>
where
    F: AsyncFnOnce(GatewayPlan) -> Result<RunningGateway, E>,
    E: Into<Box<dyn Error + Send + Sync>>,
{
    let progress = Progress::choose(options.json);
    let mut demo = Demo::start(options, start_gateway).await?;
    demo.show(progress, interrupted(), &mut io::stdout())
        .await?;
    let summary = demo.end().await;
    summary.print(options.json, &mut io::stdout())?;
    Ok(summary)
}

/// A demo under way.
struct Demo<'a> {
    options: &'a DemoOptions,
    began: Instant,
    is_interrupted: bool,
    origin: Origin,
    gateway: RunningGateway,
    crowd: Crowd,
    /// Removed when dropped, which is after the gateway has stopped.
    _data_dir: TempDir,
}

impl<'a> Demo<'a> {
    /// Starts origin, gateway and crowd, in this order.
    async fn start<F, E>(options: &'a DemoOptions, start_gateway: F) -> Result<Self, DemoError>
    where
        F: AsyncFnOnce(GatewayPlan) -> Result<RunningGateway, E>,
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .map_err(DemoError::StartOrigin)?;
        let origin_options = OriginOptions {
            room: ROOM.to_owned(),
            limits: options.limits(),
            session_duration: options.session(),
            service_time: ServiceTime {
                base: PAGE_TIME,
                capacity: options.total_active_users,
            },
        };
        let origin = Origin::start(listener, origin_options).map_err(DemoError::StartOrigin)?;
        let data_dir = tempfile::Builder::new()
            .prefix("anteroom-demo-")
            .tempdir()
            .map_err(DemoError::MakeDataDir)?;
        let plan = GatewayPlan {
            origin: origin.address(),
            room: ROOM.to_owned(),
            limits: options.limits(),
            session_duration: options.session(),
            data_dir: data_dir.path().to_owned(),
        };
        let gateway = start_gateway(plan)
            .await
            .map_err(|error| DemoError::StartGateway(error.into()))?;
        let target = Target {
            url: gateway.url.clone(),
            room: ROOM.to_owned(),
        };
        Ok(Self {
            options,
            began: Instant::now(),
            is_interrupted: false,
            origin,
            crowd: Crowd::start(target, options.crowd_plan()),
            gateway,
            _data_dir: data_dir,
        })
    }

    /// Shows progress until the demo's time is over or `interrupted` returns.
    async fn show(
        &mut self,
        mut progress: Progress,
        interrupted: impl Future<Output = ()>,
        out: &mut impl Write,
    ) -> Result<(), DemoError> {
        if !self.options.json {
            self.greet(out).map_err(DemoError::Print)?;
        }
        let time_over = tokio::time::sleep(self.options.run_for);
        let (mut time_over, mut interrupted) =
            (std::pin::pin!(time_over), std::pin::pin!(interrupted));
        let mut looks = tokio::time::interval(LOOK_EVERY);
        loop {
            tokio::select! {
                () = &mut time_over => break,
                () = &mut interrupted => {
                    self.is_interrupted = true;
                    break;
                }
                _ = looks.tick() => {
                    progress.show(&self.figures(), out).map_err(DemoError::Print)?;
                }
            }
        }
        progress.finish();
        Ok(())
    }

    fn greet(&self, out: &mut impl Write) -> io::Result<()> {
        let DemoOptions {
            visitors,
            total_active_users,
            new_users_per_minute,
            ..
        } = self.options;
        let url = &self.gateway.url;
        writeln!(
            out,
            "{visitors} visitors want into a shop that can bear {total_active_users} at once and \
             {new_users_per_minute} new ones a minute.\n\
             Open {url} in a browser: you queue among them. Ctrl-C ends the demo.\n"
        )?;
        out.flush()
    }

    fn figures(&self) -> Figures {
        let gateway = (self.gateway.figures)();
        Figures {
            elapsed: self.began.elapsed(),
            inside: self.origin.verdict().inside,
            total_active_users: self.options.total_active_users,
            waiting: gateway.waiting,
            admitted: gateway.admitted,
            last_wait: self.crowd.last_wait(),
        }
    }

    /// Sends the crowd home, then stops the gateway and the origin, and says how it went.
    async fn end(self) -> Summary {
        let circumstances = Circumstances {
            is_interrupted: self.is_interrupted,
            duration_ms: whole_millis(self.began.elapsed()),
            session_duration: self.options.session(),
        };
        let gateway_figures = (self.gateway.figures)();
        let crowd = self.crowd.stop().await;
        self.gateway.stop.await;
        let (verdict, response_times) = (self.origin.verdict(), self.origin.response_times());
        self.origin.stop().await;
        Summary::new(
            circumstances,
            verdict,
            response_times,
            crowd,
            gateway_figures,
        )
    }
}

impl Summary {
    fn print(&self, is_json: bool, out: &mut impl Write) -> Result<(), DemoError> {
        let printed = if is_json {
            writeln!(out, "{}", self.to_json())
        } else {
            writeln!(out, "{self}")
        };
        printed.and_then(|()| out.flush()).map_err(DemoError::Print)
    }
}

impl fmt::Debug for RunningGateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunningGateway")
            .field("url", &self.url.as_str())
            .finish_non_exhaustive()
    }
}

/// Returns when somebody presses Ctrl-C or asks the process to end; never if that cannot be told.
async fn interrupted() {
    let ctrl_c = async {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        () = ctrl_c => {}
        () = asked_to_end() => {}
    }
}

#[cfg(unix)]
async fn asked_to_end() {
    use tokio::signal::unix::{SignalKind, signal};
    match signal(SignalKind::terminate()) {
        Ok(mut signals) => drop(signals.recv().await),
        Err(_) => std::future::pending().await,
    }
}

#[cfg(not(unix))]
async fn asked_to_end() {
    std::future::pending().await
}
