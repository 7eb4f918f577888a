//! The file's limits with what operators said about single clients: at this node at once, at all
//! others within a few seconds.
//!
//! On a store of its own a node hears only itself, and reads once. On one that others share it
//! reads every two seconds while there are limits. Until a store has answered once, the file's
//! settings hold: whoever starts while it is away is not held up for it.

use std::sync::Arc;
use std::time::Duration;

use anteroom_config::overrides::{Actor, Log, Record as _};
use anteroom_config::{Client, LimitConfig, LimitName};
use anteroom_limit::policy::Policy;
use anteroom_limit_http::{Limiter, Plan, PlanError, Standing, Tokens};
use anteroom_limit_store::shared::CountsError;
use anteroom_node::{NodeClock, Stores};
use anteroom_room::id::DeploymentId;
use anteroom_store::{ChangeError, OverrideFeed, OverrideListener, StoreError};
use parking_lot::Mutex;

use crate::overrides::orders::{LimitCommand, LimitOverrides, RejectedCommand, ShownLimits, lent};

/// Where a room's name stands else. No room is called so.
const LIMITS: &str = "(limits)";
/// How often a record is read that others may change.
const READ_EVERY: Duration = Duration::from_secs(2);
/// How often while nothing is known: a successor's journal is free a moment after its predecessor
/// has let go of it.
const READ_FIRST_EVERY: Duration = Duration::from_millis(250);

/// Why something that an operator said was not done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LimitCommandError {
    /// It is not allowed; nothing was changed.
    #[error("that cannot be done")]
    Refused(#[source] RejectedCommand),
    /// It could not be written down; nothing is known to have changed.
    #[error("cannot write down what an operator said")]
    Away(#[source] ChangeError<RejectedCommand>),
    /// It was written down, and the store that lends did not do it.
    #[error("cannot forget what was lent")]
    NotForgotten(#[source] CountsError),
}

/// The limits of a process, with what operators say about their clients.
pub struct LiveLimits {
    meter: Arc<Limiter>,
    hearing: OverrideFeed<LimitOverrides>,
    clock: Arc<dyn NodeClock>,
    /// Locked while the meter is told: what it was told last is what stands here.
    held: Mutex<Held>,
}

#[derive(Clone)]
struct Held {
    file: Arc<[LimitConfig]>,
    orders: Arc<LimitOverrides>,
}

/// Limits of a changed file, ready to hold.
pub struct Prepared {
    plan: Plan,
    held: Held,
}

impl Prepared {
    /// The same, with the signed tokens that the file calls good.
    #[must_use]
    pub fn with_tokens(self, tokens: Option<Tokens>) -> Self {
        let plan = self.plan.with_tokens(tokens);
        Self { plan, ..self }
    }
}

impl std::fmt::Debug for Prepared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Prepared({:?})", self.plan)
    }
}

impl std::fmt::Debug for LiveLimits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LiveLimits({:?})", self.hearing)
    }
}

impl LiveLimits {
    /// Over a meter to which the file's limits were told, in the stores of the deployment of this
    /// birth.
    #[must_use]
    pub fn new(
        meter: Arc<Limiter>,
        file: &[LimitConfig],
        (stores, birth): (&Stores, DeploymentId),
        clock: Arc<dyn NodeClock>,
    ) -> Arc<Self> {
        let held = Held {
            file: file.into(),
            orders: Arc::default(),
        };
        Arc::new(Self {
            meter,
            hearing: stores.hearing(LIMITS, birth, "clients of limits"),
            clock,
            held: Mutex::new(held),
        })
    }

    /// Reads what was said, once, for at most a second and as long again for the copy; to be called
    /// before the first call comes.
    pub async fn learn(&self) {
        // It says so itself.
        let _ = self.hearing.read(self).await;
    }

    /// Reads again and again what others say, for ever.
    pub async fn watch(self: Arc<Self>) {
        loop {
            let is_known = self.hearing.has_heard() && self.hearing.has_heard_copy();
            if is_known && !self.hearing.are_others() {
                return;
            }
            let pause = if is_known {
                READ_EVERY
            } else {
                READ_FIRST_EVERY
            };
            tokio::time::sleep(pause).await;
            let has_limits = !self.held().file.is_empty();
            if has_limits || !is_known {
                let _ = self.hearing.read(&*self).await;
            }
        }
    }

    /// Works out the limits of a changed file, which do not hold yet.
    ///
    /// # Errors
    ///
    /// [`PlanError`] if one of them can never be met by a request.
    pub fn prepare(&self, file: &[LimitConfig]) -> Result<Prepared, PlanError> {
        let held = Held {
            file: file.into(),
            orders: self.held().orders,
        };
        let plan = self.meter.prepare(&self.limits(&held))?;
        Ok(Prepared { plan, held })
    }

    /// Lets them hold from now on, with what was said meanwhile.
    pub fn commit(&self, prepared: Prepared) {
        let mut held = self.held.lock();
        let has_heard_more = !Arc::ptr_eq(&held.orders, &prepared.held.orders);
        held.file = prepared.held.file;
        self.meter.commit(prepared.plan);
        if has_heard_more {
            self.apply(&held);
        }
        self.tell_misfits(&held);
    }

    /// Does what an operator says. It holds at this node when this returns, and at all others
    /// within a few seconds.
    ///
    /// # Errors
    ///
    /// [`LimitCommandError`] if it is not allowed, and nothing is changed then; or if the store
    /// fails.
    pub async fn obey(&self, order: &LimitCommand, who: &Actor) -> Result<(), LimitCommandError> {
        let now = self.clock.wall();
        let Held { file, .. } = self.held();
        let fits = self.fits();
        let change = |before: &LimitOverrides| before.after(order, &file, &fits, who, now);
        let next = match self.hearing.change(self, change).await {
            Ok(next) => next,
            Err(ChangeError::Refused(refused)) => return Err(LimitCommandError::Refused(refused)),
            Err(error) => return Err(LimitCommandError::Away(error)),
        };
        if let Some(entry) = &next.newest {
            tracing::warn!(
                limit = order.limit().map(LimitName::as_str),
                version = entry.version,
                what = entry.what,
                token = entry.who.token,
                user = entry.who.user,
                from = entry.who.address,
                changes = serde_json::to_string(&entry.changes).unwrap_or_default(),
                "an operator said something about limits"
            );
        }
        Ok(())
    }

    /// Nobody has spent anything of what is lent, says an operator: all clients of these limits
    /// begin anew, here at once and at all nodes within five seconds, as long as a lease runs.
    /// Returns the limits.
    ///
    /// # Errors
    ///
    /// [`LimitCommandError`] if no limit is lent, and nothing is done then; or if a store fails.
    pub async fn assume_empty(&self, who: &Actor) -> Result<Vec<String>, LimitCommandError> {
        self.obey(&LimitCommand::AssumeEmpty, who).await?;
        let done = self.meter.assume_leases_empty().await;
        done.map_err(LimitCommandError::NotForgotten)?;
        let Held { file, .. } = self.held();
        Ok(lent(&file).map(|limit| limit.name.to_string()).collect())
    }

    /// What holds, in one limit or in all, and where it comes from; as new as the store is, if it
    /// answers.
    pub async fn shown(&self, only: Option<&str>) -> ShownLimits {
        // What is known holds.
        let _ = self.hearing.read(self).await;
        let Held { file, orders } = self.held();
        ShownLimits::of(&orders, &file, &self.fits(), only)
    }

    /// How a client stands where the limit is counted, without being charged.
    ///
    /// # Errors
    ///
    /// [`RejectedCommand`] if there is no such limit, no client of it is called so, or its store is
    /// away.
    pub async fn standing(
        &self,
        limit: &str,
        texts: &[String],
    ) -> Result<Standing, RejectedCommand> {
        let Held { file, .. } = self.held();
        let no_limit = || RejectedCommand::NoLimit {
            limits: file.iter().map(|limit| limit.name.to_string()).collect(),
        };
        let known = file.iter().find(|known| known.name.as_str() == limit);
        let client: Client = known
            .ok_or_else(no_limit)?
            .client_named(texts)
            .map_err(RejectedCommand::NotAllowed)?;
        // The meter has the same limits, but for a moment while the file is read again.
        match self.meter.standing(limit, &client).await {
            Ok(standing) => standing.ok_or_else(no_limit),
            Err(error) => {
                tracing::warn!(limit, %error, "a client's standing is not known");
                Err(RejectedCommand::StoreAway)
            }
        }
    }

    /// Whether there is something to be said about: a limit of the file's, or one that is gone from
    /// it.
    #[must_use]
    pub fn knows(&self, limit: &str) -> bool {
        let Held { file, orders } = self.held();
        file.iter().any(|known| known.name.as_str() == limit)
            || orders.overrides.iter().any(|said| said.limit == limit)
    }

    /// The names of the file's limits.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let Held { file, .. } = self.held();
        file.iter().map(|limit| limit.name.to_string()).collect()
    }

    /// Who changed what, oldest first.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store fails.
    pub async fn log(&self) -> Result<Log, StoreError> {
        self.hearing.log().await
    }

    fn held(&self) -> Held {
        self.held.lock().clone()
    }

    fn apply(&self, held: &Held) {
        match self.meter.prepare(&self.limits(held)) {
            Ok(plan) => self.meter.commit(plan),
            // They held until now, and clients of their own have no say in where a limit can be
            // met.
            Err(error) => tracing::error!(%error, "the limits stay as they were"),
        }
    }

    /// What the stores can count in which limits are counted.
    fn fits(&self) -> impl Fn(&LimitConfig, &Policy) -> Result<(), String> + Send + Sync {
        let meter = Arc::clone(&self.meter);
        move |limit, policy| {
            let fit = meter.check_fit(limit, policy);
            fit.map_err(|error| error.words())
        }
    }

    fn limits(&self, held: &Held) -> Vec<LimitConfig> {
        held.orders.applied_to(&held.file, &self.fits()).limits
    }

    /// Says what does not hold, for the file has changed since it was said, or was another where it
    /// was said.
    fn tell_misfits(&self, held: &Held) {
        for problem in held.orders.applied_to(&held.file, &self.fits()).misfits {
            tracing::error!(
                "{problem}; what an operator said does not fit the file and does not hold: \
                 `anteroom limits list` shows it"
            );
        }
    }
}

impl OverrideListener<LimitOverrides> for LiveLimits {
    fn known(&self) -> Arc<LimitOverrides> {
        self.held().orders
    }

    fn adopt(&self, orders: LimitOverrides) {
        let mut held = self.held.lock();
        if !orders.is_newer_than(&held.orders) {
            return;
        }
        tracing::info!(
            version = orders.version,
            what = orders.newest.as_ref().map(|newest| newest.what.as_str()),
            "what an operator says about limits takes effect here"
        );
        held.orders = Arc::new(orders);
        self.apply(&held);
        self.tell_misfits(&held);
    }
}
