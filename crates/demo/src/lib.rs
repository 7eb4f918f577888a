//! Demo of the main job in one command: an origin that slows down under load, one or more gateways
//! in front of it, and simulated visitors who exceed the limits.
//!
//! Everything uses sockets and cookies, and the count that matters is the origin's own. The caller
//! of [`run`] starts the gateways and knows what they share.

pub mod checker;
pub mod checking_origin;
mod clock;
mod gateways;
mod layout;
pub mod load;
pub mod options;
pub mod origin;
mod progress;
pub mod quantiles;
mod rng;
mod stop;
pub mod stores;
pub mod summary;
#[cfg(test)]
mod tests;

use std::error::Error;
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::pin::pin;
use std::time::Duration;

use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::time::Instant;

use self::clock::whole_millis;
pub use self::gateways::{GatewayPlan, GatewayStats, RunningGateway, RunningGateways};
pub use self::layout::Layout;
use self::load::{LoadGenerator, Target};
pub use self::options::DemoOptions;
use self::options::WANDER_PERCENT;
use self::origin::{Origin, OriginOptions, ServiceTime};
use self::progress::{LOOK_EVERY, Progress, ProgressStats};
use self::summary::RunContext;
pub use self::summary::Summary;

/// Name of the demo's room.
pub const ROOM: &str = "demo";

/// Time of a page while the shop is not overloaded: that of an ordinary page from a database.
const PAGE_TIME: Duration = Duration::from_millis(20);

/// Error of a demo that did not start or finish.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DemoError {
    /// Finding a free port or listening on it failed.
    #[error("cannot start the origin")]
    StartOrigin(#[source] io::Error),
    /// The folder for the gateways' files cannot be created.
    #[error("cannot make a temporary folder for the gateway")]
    MakeDataDir(#[source] io::Error),
    /// A gateway, or something that it needs, did not start.
    #[error("cannot start the gateway")]
    StartGateways(#[source] Box<dyn Error + Send + Sync>),
    /// The demo was interrupted before everything had started.
    #[error("interrupted before the demo had started")]
    EndedEarly,
    /// Standard output is closed.
    #[error("cannot print the result of the demo")]
    Print(#[source] io::Error),
}

/// Runs the demo on standard output until its time is over or it is interrupted.
///
/// # Errors
///
/// [`DemoError`], if a part does not start or standard output is closed. An exceeded limit is not
/// an error, but part of the [`Summary`].
pub async fn run<F, E>(options: &DemoOptions, start_gateways: F) -> Result<Summary, DemoError>
where
    F: AsyncFnOnce(GatewayPlan) -> Result<RunningGateways, E>,
    E: Into<Box<dyn Error + Send + Sync>>,
{
    let progress = Progress::choose(options.json);
    // Listens from the beginning: what has been started must stop with the demo.
    let mut interrupted = pin!(interrupted());
    let mut demo = tokio::select! {
        biased;
        () = &mut interrupted => return Err(DemoError::EndedEarly),
        demo = Demo::start(options, start_gateways) => demo?,
    };
    demo.show(progress, interrupted, &mut io::stdout()).await?;
    let summary = demo.end().await;
    summary.print(options.json, &mut io::stdout())?;
    Ok(summary)
}

/// A running demo.
struct Demo<'a> {
    options: &'a DemoOptions,
    began: Instant,
    is_interrupted: bool,
    origin: Origin,
    gateways: RunningGateways,
    load: LoadGenerator,
    /// Removed when dropped, which is after the gateways have stopped.
    _data_dir: TempDir,
}

impl<'a> Demo<'a> {
    /// Starts origin, gateways and visitors, in this order.
    async fn start<F, E>(options: &'a DemoOptions, start_gateways: F) -> Result<Self, DemoError>
    where
        F: AsyncFnOnce(GatewayPlan) -> Result<RunningGateways, E>,
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
            layout: options.layout(),
            data_dir: data_dir.path().to_owned(),
        };
        let gateways = start_gateways(plan)
            .await
            .map_err(|error| DemoError::StartGateways(error.into()))?;
        let target = Target {
            urls: gateways.urls(),
            room: ROOM.to_owned(),
        };
        Ok(Self {
            options,
            began: Instant::now(),
            is_interrupted: false,
            origin,
            load: LoadGenerator::start(target, options.load_plan()),
            gateways,
            _data_dir: data_dir,
        })
    }

    /// Shows progress until the demo's time is over or `interrupted` completes.
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
        let (mut time_over, mut interrupted) = (pin!(time_over), pin!(interrupted));
        let mut looks = tokio::time::interval(LOOK_EVERY);
        loop {
            tokio::select! {
                () = &mut time_over => break,
                () = &mut interrupted => {
                    self.is_interrupted = true;
                    break;
                }
                _ = looks.tick() => {
                    progress.show(&self.stats(), out).map_err(DemoError::Print)?;
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
        writeln!(
            out,
            "{visitors} visitors want to enter a shop with room for {total_active_users} at once \
             and {new_users_per_minute} new ones a minute."
        )?;
        let layout = self.options.layout();
        if !layout.is_alone() {
            writeln!(
                out,
                "{layout} share these limits; {WANDER_PERCENT} % of the visitors go to another \
                 node with each request."
            )?;
        }
        if layout.data_centers > 1 {
            writeln!(
                out,
                "A visitor who changes data center has a seat in each of them until the older one \
                 ends, so fewer visitors are inside then."
            )?;
        }
        let urls: Vec<String> = self
            .gateways
            .first_in_each_data_center()
            .map(|gateway| gateway.url.to_string())
            .collect();
        writeln!(
            out,
            "Open {} in a browser: you queue with them. Ctrl-C ends the demo.\n",
            urls.join(" or ")
        )?;
        out.flush()
    }

    fn stats(&self) -> ProgressStats {
        let gateway = self.gateways.stats();
        ProgressStats {
            elapsed: self.began.elapsed(),
            inside: self.origin.verdict().inside,
            total_active_users: self.options.total_active_users,
            waiting: gateway.waiting,
            admitted: gateway.admitted,
            last_wait: self.load.last_wait(),
        }
    }

    /// Stops the visitors, then the gateways and the origin, and returns the summary.
    async fn end(self) -> Summary {
        let circumstances = RunContext {
            is_interrupted: self.is_interrupted,
            duration_ms: whole_millis(self.began.elapsed()),
            session_duration: self.options.session(),
            layout: self.options.layout(),
        };
        let gateway_stats = self.gateways.stats();
        let load = self.load.stop().await;
        self.gateways.stop.await;
        let (verdict, response_times) = (self.origin.verdict(), self.origin.response_times());
        self.origin.stop().await;
        Summary::new(circumstances, verdict, response_times, load, gateway_stats)
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

/// Completes when somebody presses Ctrl-C, closes the terminal or sends a signal to end the
/// process; never if signals cannot be received.
async fn interrupted() {
    let ctrl_c = async {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        () = ctrl_c => {}
        () = termination_requested() => {}
    }
}

#[cfg(unix)]
async fn termination_requested() {
    use tokio::signal::unix::{SignalKind, signal};
    let received = async |kind| match signal(kind) {
        Ok(mut signals) => drop(signals.recv().await),
        Err(_) => std::future::pending().await,
    };
    tokio::select! {
        () = received(SignalKind::terminate()) => {}
        () = received(SignalKind::hangup()) => {}
    }
}

#[cfg(not(unix))]
async fn termination_requested() {
    std::future::pending().await
}
