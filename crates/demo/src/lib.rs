//! Does it work? The main job in one command: an origin that slows down when too many are in it,
//! a gateway in front of it, or several, and a crowd that outgrows the limits.
//!
//! Everything goes through sockets and cookies, and the count that matters is the origin's own.
//! How gateways are started and what they share is not known here: whoever calls [`run`] brings
//! them.

mod clock;
pub mod crowd;
mod gateways;
pub mod judge;
pub mod judging;
mod layout;
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
use self::crowd::{LoadGenerator, Target};
pub use self::gateways::{GatewayPlan, GatewayStats, RunningGateway, RunningGateways};
pub use self::layout::Layout;
pub use self::options::DemoOptions;
use self::options::WANDER_PERCENT;
use self::origin::{Origin, OriginOptions, ServiceTime};
use self::progress::{LOOK_EVERY, Progress, ProgressStats};
use self::summary::RunContext;
pub use self::summary::Summary;

/// Name of the demo's room.
pub const ROOM: &str = "demo";

/// Time of a page while the shop is not overrun: that of an ordinary page from a database.
const PAGE_TIME: Duration = Duration::from_millis(20);

/// Why there was no demo, or no end to it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DemoError {
    /// No port, or no way to listen on it.
    #[error("cannot start the origin")]
    StartOrigin(#[source] io::Error),
    /// No place for the gateways' files.
    #[error("cannot make a temporary folder for the gateway")]
    MakeDataDir(#[source] io::Error),
    /// A gateway did not start, or something that it needs.
    #[error("cannot start the gateway")]
    StartGateways(#[source] Box<dyn Error + Send + Sync>),
    /// Somebody ended the demo before everything had started.
    #[error("ended before the demo had begun")]
    EndedEarly,
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
pub async fn run<F, E>(options: &DemoOptions, start_gateways: F) -> Result<Summary, DemoError>
where
    F: AsyncFnOnce(GatewayPlan) -> Result<RunningGateways, E>,
    E: Into<Box<dyn Error + Send + Sync>>,
{
    let progress = Progress::choose(options.json);
    // Listens from the beginning: what was started by then must end with us.
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

/// A demo under way.
struct Demo<'a> {
    options: &'a DemoOptions,
    began: Instant,
    is_interrupted: bool,
    origin: Origin,
    gateways: RunningGateways,
    crowd: LoadGenerator,
    /// Removed when dropped, which is after the gateways have stopped.
    _data_dir: TempDir,
}

impl<'a> Demo<'a> {
    /// Starts origin, gateways and crowd, in this order.
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
            crowd: LoadGenerator::start(target, options.crowd_plan()),
            gateways,
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
            "{visitors} visitors want into a shop that can bear {total_active_users} at once and \
             {new_users_per_minute} new ones a minute."
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
                "Whoever changes data center has a seat in each of them until the older one ends: \
                 fewer are inside then."
            )?;
        }
        let doors: Vec<String> = self
            .gateways
            .doors()
            .map(|gateway| gateway.url.to_string())
            .collect();
        writeln!(
            out,
            "Open {} in a browser: you queue among them. Ctrl-C ends the demo.\n",
            doors.join(" or ")
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
            last_wait: self.crowd.last_wait(),
        }
    }

    /// Sends the crowd home, then stops the gateways and the origin, and says how it went.
    async fn end(self) -> Summary {
        let circumstances = RunContext {
            is_interrupted: self.is_interrupted,
            duration_ms: whole_millis(self.began.elapsed()),
            session_duration: self.options.session(),
            layout: self.options.layout(),
        };
        let gateway_stats = self.gateways.stats();
        let crowd = self.crowd.stop().await;
        self.gateways.stop.await;
        let (verdict, response_times) = (self.origin.verdict(), self.origin.response_times());
        self.origin.stop().await;
        Summary::new(circumstances, verdict, response_times, crowd, gateway_stats)
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

/// Returns when somebody presses Ctrl-C, closes the terminal or asks the process to end; never if
/// that cannot be told.
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
    let asked = async |kind| match signal(kind) {
        Ok(mut signals) => drop(signals.recv().await),
        Err(_) => std::future::pending().await,
    };
    tokio::select! {
        () = asked(SignalKind::terminate()) => {}
        () = asked(SignalKind::hangup()) => {}
    }
}

#[cfg(not(unix))]
async fn asked_to_end() {
    std::future::pending().await
}
