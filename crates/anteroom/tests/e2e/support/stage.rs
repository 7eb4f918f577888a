//! A room with its surroundings: origin, data folder, and a gateway that may be killed and
//! restarted.

use std::path::PathBuf;
use std::time::Duration;

use anteroom::demo::checking_origin::{CheckedRoom, CheckerClock, CheckingOrigin};
use anteroom_config::{Config, Flags};
use anteroom_room::rules::Limits;
use anteroom_room::time::DurationMs;
use tempfile::TempDir;

use super::client::Client;
use super::client::seat_end;
use super::operator::Operator;
use super::process::{Gateway, room_flags};
use super::visitors::{self, endless_visits};
use super::{eventually, now};
use anteroom_testkit::eventually_within;
use anteroom_testkit::load::{NodeAddress, VisitorLoad};

/// Name of the room that flags describe.
const ROOM: &str = "main";

/// Starts an origin that checks whether a room keeps its limits.
pub(crate) async fn start_checking_origin(
    room: &str,
    limits: Limits,
    clock: CheckerClock,
) -> CheckingOrigin {
    let room = CheckedRoom {
        name: room.to_owned(),
        limits,
        session: DurationMs::from_secs(60),
        clock,
    };
    CheckingOrigin::start(room).await
}

/// A room with its surroundings.
pub(crate) struct Stage {
    pub(crate) origin: CheckingOrigin,
    pub(crate) limits: Limits,
    /// Address of the gateway that was started last.
    pub(crate) address: NodeAddress,
    temp: TempDir,
    session: &'static str,
    gateway: Option<Gateway>,
}

impl Stage {
    /// Starts an origin and a gateway with these limits.
    pub(crate) async fn open(limits: Limits, session: &'static str) -> Self {
        let mut stage = Self::prepare(limits, session).await;
        stage.start().await;
        stage
    }

    /// Starts the origin only.
    pub(crate) async fn prepare(limits: Limits, session: &'static str) -> Self {
        Self::prepare_by(limits, session, CheckerClock::new(now)).await
    }

    /// Starts the origin only, with another clock of the checker.
    pub(crate) async fn prepare_by(
        limits: Limits,
        session: &'static str,
        clock: CheckerClock,
    ) -> Self {
        let origin = start_checking_origin(ROOM, limits, clock).await;
        Self {
            address: NodeAddress::new(origin.address()),
            origin,
            limits,
            temp: tempfile::tempdir().unwrap(),
            session,
            gateway: None,
        }
    }

    /// Returns the data folder, which does not exist before the gateway's first start.
    pub(crate) fn data(&self) -> PathBuf {
        self.temp.path().join("data")
    }

    /// Returns the flags of the gateway.
    pub(crate) fn flags(&self) -> Vec<String> {
        let Limits {
            total_active_users,
            new_users_per_minute,
        } = self.limits;
        let data = self.data();
        let data = data.to_string_lossy();
        let mut flags = room_flags(
            self.origin.address(),
            total_active_users,
            new_users_per_minute,
            &data,
        );
        flags.extend(["--session-duration", self.session].map(str::to_owned));
        flags
    }

    /// Returns the same settings as a configuration, for a gateway in this process.
    pub(crate) fn config(&self) -> Config {
        let flags = Flags::default()
            .text("server.listen", "127.0.0.1:0")
            .text("server.admin", "127.0.0.1:0")
            .text("server.data_dir", self.data().display().to_string())
            .text("room.origin", format!("http://{}", self.origin.address()))
            .number("room.total_active_users", self.limits.total_active_users)
            .number(
                "room.new_users_per_minute",
                self.limits.new_users_per_minute,
            )
            .text("room.session_duration", self.session);
        Config::single_room(&flags).unwrap().config
    }

    /// Starts the gateway, for the first time or again.
    pub(crate) async fn start(&mut self) {
        let gateway = Gateway::start(&self.flags()).await;
        self.enter(gateway);
    }

    /// Makes this the gateway of the stage.
    pub(crate) fn enter(&mut self, gateway: Gateway) {
        self.address.set(Some(gateway.address));
        self.gateway = Some(gateway);
    }

    pub(crate) fn gateway(&self) -> &Gateway {
        self.gateway.as_ref().expect("the gateway runs")
    }

    /// Removes the gateway from the stage and returns it.
    pub(crate) fn take_gateway(&mut self) -> Gateway {
        self.gateway.take().expect("the gateway runs")
    }

    /// Kills the gateway (`kill -9`).
    pub(crate) async fn kill(&mut self) {
        self.take_gateway().kill().await;
    }

    /// Stops the gateway by SIGTERM, and waits for its end.
    pub(crate) async fn terminate(&mut self) {
        let mut gateway = self.take_gateway();
        gateway.signal("TERM");
        assert_eq!(gateway.ended().await, Some(0), "{:?}", gateway.log());
    }

    pub(crate) fn operator(&self) -> Operator {
        Operator::at(self.gateway().admin)
    }

    /// Returns a new visitor.
    pub(crate) fn newcomer(&self) -> Client {
        Client::new(self.address.get().unwrap())
    }

    /// Starts visitors who never leave, and waits until all of them are active.
    pub(crate) async fn fill(&self, count: u32) -> VisitorLoad {
        let load = visitors::send(&self.address, count, &endless_visits());
        eventually("the endless visitors are active", async || {
            load.counters().entered == u64::from(count)
        })
        .await;
        load
    }

    /// Fails unless both limits held all the time, and no visitor overstayed.
    pub(crate) fn assert_within_limits(&self) {
        self.origin.assert_within_limits();
    }

    /// Returns the number of waiting visitors, as the gateway counts them.
    pub(crate) async fn waiting(&self) -> f64 {
        let waiting = self.operator().metric("anteroom_visitors_waiting").await;
        waiting.expect("it is always shown")
    }

    /// Waits until a new visitor is queued for this reason.
    pub(crate) async fn queues_newcomers(&self, reason: &str) {
        eventually(&format!("newcomers wait: {reason}"), async || {
            let response = self.newcomer().get("/").await;
            response.is_queued() && response.json()["cfWaitingRoom"]["reason"] == reason
        })
        .await;
    }

    /// Waits until a new visitor is admitted.
    pub(crate) async fn admits_newcomers(&self) {
        // After a loss the room waits for the end of the minute, or of the next one.
        let patience = Duration::from_secs(100);
        eventually_within(patience, "a newcomer is admitted", async || {
            let response = self.newcomer().get("/newcomer").await;
            seat_end(&response).is_some()
        })
        .await;
    }
}
