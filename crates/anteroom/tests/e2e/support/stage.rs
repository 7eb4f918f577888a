//! A room with everything around it: origin, data folder, and a gateway that may die and be started
//! again.

use std::path::PathBuf;

use anteroom::demo::judging::{CheckedRoom, CheckerClock, CheckingOrigin};
use anteroom_config::{Config, Flags};
use anteroom_room::rules::Limits;
use anteroom_room::time::DurationMs;
use tempfile::TempDir;

use super::client::Client;
use super::crowd::{Door, Habits, LoadGenerator, seat_end};
use super::operator::Operator;
use super::process::{Gateway, room_flags};
use super::{eventually, now};

/// Name of the room that flags describe.
const ROOM: &str = "main";

/// Starts an origin that judges whether a room keeps its limits.
pub(crate) async fn judging(room: &str, limits: Limits, clock: CheckerClock) -> CheckingOrigin {
    let room = CheckedRoom {
        name: room.to_owned(),
        limits,
        session: DurationMs::from_secs(60),
        clock,
    };
    CheckingOrigin::start(room).await
}

/// A room and everything around it.
pub(crate) struct Stage {
    pub(crate) origin: CheckingOrigin,
    pub(crate) limits: Limits,
    /// Where the gateway was started last.
    pub(crate) door: Door,
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

    /// The same without the gateway.
    pub(crate) async fn prepare(limits: Limits, session: &'static str) -> Self {
        Self::prepare_by(limits, session, CheckerClock::new(now)).await
    }

    /// The same with a judge who goes by another clock.
    pub(crate) async fn prepare_by(
        limits: Limits,
        session: &'static str,
        clock: CheckerClock,
    ) -> Self {
        let origin = judging(ROOM, limits, clock).await;
        Self {
            door: Door::at(origin.address()),
            origin,
            limits,
            temp: tempfile::tempdir().unwrap(),
            session,
            gateway: None,
        }
    }

    /// The data folder; not there before the gateway was started.
    pub(crate) fn data(&self) -> PathBuf {
        self.temp.path().join("data")
    }

    /// Flags of the gateway.
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

    /// The same as a configuration, for a gateway in this process.
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

    /// Goes on with this gateway.
    pub(crate) fn enter(&mut self, gateway: Gateway) {
        self.door.is_at(gateway.address);
        self.gateway = Some(gateway);
    }

    pub(crate) fn gateway(&self) -> &Gateway {
        self.gateway.as_ref().expect("the gateway runs")
    }

    /// The gateway, from now on the caller's.
    pub(crate) fn take_gateway(&mut self) -> Gateway {
        self.gateway.take().expect("the gateway runs")
    }

    /// `kill -9`.
    pub(crate) async fn kill(&mut self) {
        self.take_gateway().kill().await;
    }

    /// SIGTERM, and waits for the end.
    pub(crate) async fn terminate(&mut self) {
        let mut gateway = self.take_gateway();
        gateway.signal("TERM");
        assert_eq!(gateway.ended().await, Some(0), "{:?}", gateway.log());
    }

    pub(crate) fn operator(&self) -> Operator {
        Operator::at(self.gateway().admin)
    }

    /// Somebody who has never been here.
    pub(crate) fn newcomer(&self) -> Client {
        Client::new(self.door.address())
    }

    /// Sends visitors who stay, and waits until all of them are inside.
    pub(crate) async fn fill(&self, count: usize) -> LoadGenerator {
        let crowd = LoadGenerator::send(&self.door, count, Habits::stay());
        eventually("those who stay are inside", async || {
            crowd.counters().entered == count as u64
        })
        .await;
        crowd
    }

    /// Fails unless both limits were kept all the time, and nobody overstayed.
    pub(crate) fn assert_within_limits(&self) {
        self.origin.assert_within_limits();
    }

    /// How many wait, by the gateway's own count.
    pub(crate) async fn waiting(&self) -> f64 {
        let waiting = self.operator().metric("anteroom_visitors_waiting").await;
        waiting.expect("it is always shown")
    }

    /// Waits until somebody new is told to wait, for this reason.
    pub(crate) async fn queues_newcomers(&self, reason: &str) {
        eventually(&format!("newcomers wait: {reason}"), async || {
            let answer = self.newcomer().get("/").await;
            answer.is_queued() && answer.json()["cfWaitingRoom"]["reason"] == reason
        })
        .await;
    }

    /// Waits until somebody new comes in.
    pub(crate) async fn admits_newcomers(&self) {
        eventually("a newcomer comes in", async || {
            let answer = self.newcomer().get("/newcomer").await;
            seat_end(&answer).is_some()
        })
        .await;
    }
}
