//! Limits of the file with the overrides of operators: at this node at once, at all others within a
//! few seconds.
//!
//! With its own store, a node reads once. With a shared store, it reads every two seconds while
//! there are limits. Until the first reply of a store, the file's settings apply: an unavailable
//! store does not delay a start.

use std::sync::Arc;
use std::time::Duration;

use anteroom_config::overrides::{Actor, Log, Record as _};
use anteroom_config::{Client, LimitConfig, LimitName};
use anteroom_limit::policy::Policy;
use anteroom_limit_http::{ClientStatus, Limiter, Plan, PlanError, Tokens};
use anteroom_limit_store::shared::CountsError;
use anteroom_node::{NodeClock, Stores};
use anteroom_room::id::DeploymentId;
use anteroom_store::{ChangeError, OverrideFeed, OverrideListener, StoreError};
use parking_lot::Mutex;

use crate::overrides::client_overrides::{
    LimitCommand, LimitOverrides, RejectedCommand, ShownLimits, leased,
};

/// Name of the record, in place of a room's name. No room can have it.
const LIMITS: &str = "(limits)";
/// Interval of reads of a record that other nodes may change.
const READ_INTERVAL: Duration = Duration::from_secs(2);
/// Interval of reads before the first reply: a successor's journal is free a moment after its
/// predecessor releases it.
const FIRST_READ_INTERVAL: Duration = Duration::from_millis(250);

/// Error of a command on limits.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LimitCommandError {
    /// The command is not allowed; nothing was changed.
    #[error("command not allowed")]
    Rejected(#[source] RejectedCommand),
    /// The command could not be stored; the change may or may not have been made.
    #[error("cannot store the command")]
    Unavailable(#[source] ChangeError<RejectedCommand>),
    /// The command was stored, and the store of leases did not execute it.
    #[error("cannot reset the leases")]
    NotReset(#[source] CountsError),
}

/// Limits of a process, with the overrides of their clients.
pub struct LiveLimits {
    limiter: Arc<Limiter>,
    feed: OverrideFeed<LimitOverrides>,
    clock: Arc<dyn NodeClock>,
    /// Limits and overrides in force. Locked while the limiter changes, so that both agree.
    current: Mutex<Inputs>,
}

/// Limits of the file, and the overrides of operators.
#[derive(Clone)]
struct Inputs {
    file: Arc<[LimitConfig]>,
    overrides: Arc<LimitOverrides>,
}

/// Limits of a changed file, for [`LiveLimits::commit`].
pub struct Prepared {
    plan: Plan,
    inputs: Inputs,
}

impl Prepared {
    /// Adds the signed tokens that the file accepts.
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
        write!(f, "LiveLimits({:?})", self.feed)
    }
}

impl LiveLimits {
    /// Creates the limits over a limiter that has those of the file. The overrides are in `stores`,
    /// in the record of this deployment.
    #[must_use]
    pub fn new(
        limiter: Arc<Limiter>,
        file: &[LimitConfig],
        (stores, birth): (&Stores, DeploymentId),
        clock: Arc<dyn NodeClock>,
    ) -> Arc<Self> {
        let inputs = Inputs {
            file: file.into(),
            overrides: Arc::default(),
        };
        Arc::new(Self {
            limiter,
            feed: stores.hearing(LIMITS, birth, "clients of limits"),
            clock,
            current: Mutex::new(inputs),
        })
    }

    /// Reads the overrides once. It takes at most a second, and another one for the copy. Call it
    /// before the first request.
    pub async fn learn(&self) {
        // The feed logs its failures.
        let _ = self.feed.read(self).await;
    }

    /// Reads the overrides of other nodes, forever.
    pub async fn watch(self: Arc<Self>) {
        loop {
            let is_known = self.feed.was_read() && self.feed.was_copy_read();
            if is_known && !self.feed.is_shared() {
                return;
            }
            let pause = if is_known {
                READ_INTERVAL
            } else {
                FIRST_READ_INTERVAL
            };
            tokio::time::sleep(pause).await;
            let has_limits = !self.current().file.is_empty();
            if has_limits || !is_known {
                let _ = self.feed.read(&*self).await;
            }
        }
    }

    /// Prepares the limits of a changed file; [`commit`](Self::commit) applies them.
    ///
    /// # Errors
    ///
    /// [`PlanError`] if one of them can never be met by a request.
    pub fn prepare(&self, file: &[LimitConfig]) -> Result<Prepared, PlanError> {
        let inputs = Inputs {
            file: file.into(),
            overrides: self.current().overrides,
        };
        let plan = self.limiter.prepare(&self.limits(&inputs))?;
        Ok(Prepared { plan, inputs })
    }

    /// Applies prepared limits, with the overrides that have arrived since.
    pub fn commit(&self, prepared: Prepared) {
        let mut current = self.current.lock();
        let has_new_overrides = !Arc::ptr_eq(&current.overrides, &prepared.inputs.overrides);
        current.file = prepared.inputs.file;
        self.limiter.commit(prepared.plan);
        if has_new_overrides {
            self.apply(&current);
        }
        self.log_misfits(&current);
    }

    /// Executes a command. It applies at this node when this returns, and at all others within a
    /// few seconds.
    ///
    /// # Errors
    ///
    /// [`LimitCommandError`] if it is not allowed, and nothing is changed then; or if the store
    /// fails.
    pub async fn execute(
        &self,
        command: &LimitCommand,
        who: &Actor,
    ) -> Result<(), LimitCommandError> {
        let now = self.clock.wall();
        let Inputs { file, .. } = self.current();
        let fits = self.fits();
        let change = |before: &LimitOverrides, _| before.after(command, &file, &fits, who, now);
        let next = match self.feed.change(self, change).await {
            Ok(next) => next,
            Err(ChangeError::Rejected(reason)) => return Err(LimitCommandError::Rejected(reason)),
            Err(error) => return Err(LimitCommandError::Unavailable(error)),
        };
        if let Some(entry) = &next.newest {
            tracing::warn!(
                limit = command.limit().map(LimitName::as_str),
                version = entry.version,
                what = entry.what,
                token = entry.who.token,
                user = entry.who.user,
                from = entry.who.address,
                changes = serde_json::to_string(&entry.changes).unwrap_or_default(),
                "operator command on limits applied"
            );
        }
        Ok(())
    }

    /// Resets the usage of all clients of limits with leases: here at once, and at all nodes within
    /// five seconds, as long as a lease runs. Returns the limits.
    ///
    /// # Errors
    ///
    /// [`LimitCommandError`] if no limit has leases, and nothing is changed then; or if a store
    /// fails.
    pub async fn assume_empty(&self, who: &Actor) -> Result<Vec<String>, LimitCommandError> {
        self.execute(&LimitCommand::AssumeEmpty, who).await?;
        let done = self.limiter.assume_leases_empty().await;
        done.map_err(LimitCommandError::NotReset)?;
        let Inputs { file, .. } = self.current();
        Ok(leased(&file).map(|limit| limit.name.to_string()).collect())
    }

    /// Returns the values in force in one limit or in all, and their sources. They are as new as
    /// the store's, if it replies.
    pub async fn shown(&self, only: Option<&str>) -> ShownLimits {
        // After a failure the known overrides apply.
        let _ = self.feed.read(self).await;
        let Inputs { file, overrides } = self.current();
        ShownLimits::of(&overrides, &file, &self.fits(), only)
    }

    /// Returns the usage of a client at the store of the limit, without counting a request.
    ///
    /// # Errors
    ///
    /// [`RejectedCommand`] if there is no such limit, the client's key does not fit it, or its
    /// store is unavailable.
    pub async fn standing(
        &self,
        limit: &str,
        texts: &[String],
    ) -> Result<ClientStatus, RejectedCommand> {
        let Inputs { file, .. } = self.current();
        let no_limit = || RejectedCommand::NoLimit {
            limits: file.iter().map(|limit| limit.name.to_string()).collect(),
        };
        let known = file.iter().find(|known| known.name.as_str() == limit);
        let client: Client = known
            .ok_or_else(no_limit)?
            .client_named(texts)
            .map_err(RejectedCommand::NotAllowed)?;
        // The limiter has the same limits, except for a moment during a reload.
        match self.limiter.standing(limit, &client).await {
            Ok(standing) => standing.ok_or_else(no_limit),
            Err(error) => {
                tracing::warn!(limit, %error, "cannot read the usage of a client");
                Err(RejectedCommand::StoreUnavailable)
            }
        }
    }

    /// Whether the limit is in the file, or has overrides although it is not.
    #[must_use]
    pub fn knows(&self, limit: &str) -> bool {
        let Inputs { file, overrides } = self.current();
        let mut overrides = overrides.overrides.iter();
        file.iter().any(|known| known.name.as_str() == limit)
            || overrides.any(|known| known.limit == limit)
    }

    /// Returns the names of the file's limits.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let Inputs { file, .. } = self.current();
        file.iter().map(|limit| limit.name.to_string()).collect()
    }

    /// Returns the audit log, oldest entry first.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store fails.
    pub async fn log(&self) -> Result<Log, StoreError> {
        self.feed.log().await
    }

    fn current(&self) -> Inputs {
        self.current.lock().clone()
    }

    fn apply(&self, inputs: &Inputs) {
        match self.limiter.prepare(&self.limits(inputs)) {
            Ok(plan) => self.limiter.commit(plan),
            // The limits were valid until now, and overrides do not change which requests can meet
            // them.
            Err(error) => tracing::error!(%error, "cannot apply overrides: limits unchanged"),
        }
    }

    /// Returns a check of whether the store of a limit can count by a policy.
    fn fits(&self) -> impl Fn(&LimitConfig, &Policy) -> Result<(), String> + Send + Sync {
        let limiter = Arc::clone(&self.limiter);
        move |limit, policy| {
            let fit = limiter.check_fit(limit, policy);
            fit.map_err(|error| error.words())
        }
    }

    fn limits(&self, inputs: &Inputs) -> Vec<LimitConfig> {
        let Inputs { file, overrides } = inputs;
        overrides.applied_to(file, &self.fits()).limits
    }

    /// Logs the overrides that do not fit the file, which has changed since or was another at their
    /// node.
    fn log_misfits(&self, inputs: &Inputs) {
        let Inputs { file, overrides } = inputs;
        for problem in overrides.applied_to(file, &self.fits()).misfits {
            tracing::error!(
                "{problem}; this override does not fit the file and does not apply: `anteroom \
                 limits list` shows it"
            );
        }
    }
}

impl OverrideListener<LimitOverrides> for LiveLimits {
    fn known(&self) -> Arc<LimitOverrides> {
        self.current().overrides
    }

    fn adopt(&self, overrides: LimitOverrides) {
        let mut current = self.current.lock();
        if !overrides.is_newer_than(&current.overrides) {
            return;
        }
        tracing::info!(
            version = overrides.version,
            what = overrides.newest.as_ref().map(|newest| newest.what.as_str()),
            "overrides of limits take effect at this node"
        );
        current.overrides = Arc::new(overrides);
        self.apply(&current);
        self.log_misfits(&current);
    }
}
