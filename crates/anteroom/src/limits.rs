//! Limits of calls, and what they ask the rest of the program: the time, and who shows a ticket.

use std::sync::Arc;

use anteroom_config::Config;
use anteroom_control::LimitFigures;
use anteroom_gateway::forwarded::Client;
use anteroom_gateway::layer::{KnownVisitor, WaitingRoomLayer, is_own_path};
use anteroom_gateway::path::Readings;
use anteroom_limits::time::Micros;
use anteroom_meter::{Figures, Meter, Surroundings, Tokens, TokensError};
use anteroom_node::NodeClock;
use anteroom_overrides::{LiveLimits, Places};
use http::HeaderMap;

/// A gateway around its limits.
struct Around {
    clock: Arc<dyn NodeClock>,
    rooms: WaitingRoomLayer,
}

/// The limits of a file, and what operators said about their clients as far as the store answers.
pub(crate) async fn start(
    config: &Config,
    said: Places,
    rooms: &WaitingRoomLayer,
    clock: &Arc<dyn NodeClock>,
) -> anyhow::Result<(Arc<Meter>, Arc<LiveLimits>)> {
    let around = Around {
        clock: Arc::clone(clock),
        rooms: rooms.clone(),
    };
    let file = &config.limits;
    let meter = Meter::new(&[], around)?;
    meter.commit(meter.prepare(file)?.with_tokens(tokens(config)?));
    let limits = LiveLimits::new(Arc::clone(&meter), file, said, Arc::clone(clock));
    limits.learn().await;
    Ok((meter, limits))
}

impl Surroundings for Around {
    /// Room time: no step of the wall clock gives anybody calls back.
    fn now(&self) -> Micros {
        Micros(self.clock.now().0.saturating_mul(1_000))
    }

    fn wall_seconds(&self) -> u64 {
        self.clock.wall().0 / 1_000
    }

    fn is_polling(&self, path: &str) -> bool {
        is_own_path(path)
    }

    fn visitor(
        &self,
        client: &Client,
        readings: &Readings<'_>,
        headers: &HeaderMap,
    ) -> Option<KnownVisitor> {
        self.rooms.visitor_of(client, readings, headers)
    }
}

/// The signed tokens by which limits may know clients.
pub(crate) fn tokens(config: &Config) -> Result<Option<Tokens>, TokensError> {
    let jwt = config.jwt.as_ref();
    jwt.map(|jwt| Tokens::new(jwt, &config.limits)).transpose()
}

/// The figures of one limit, by its name, as operators are shown them.
pub(crate) fn shown(figures: Figures) -> (String, LimitFigures) {
    let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    let calls = figures.events.iter();
    let shown = LimitFigures {
        calls: calls.map(|(event, count)| (event.name(), *count)).collect(),
        keys: count(figures.keys),
        keys_max: count(figures.keys_max),
        crowded: figures.crowded,
    };
    (figures.name, shown)
}
