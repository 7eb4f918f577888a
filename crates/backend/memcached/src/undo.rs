//! How is a call taken back that was charged and does not go through?
//!
//! Others are rejected for what stays charged, so that must not hang on whoever asked: callers
//! leave, and answers come late. What was charged is taken back by a task of its own, once, unless
//! somebody says that it is to stay.
//!
//! Deliberately absent: a call of which nobody knows whether it was charged, because its connection
//! broke. It is left as it is: to take back what was not charged would admit one too many.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use anteroom_limit::policy::Policy;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use crate::failure::Failure;
use crate::link::Link;
use crate::protocol::{Command, Reply};
use crate::swaps::{Place, Swaps};

/// How often something stayed charged that should not have. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stayed(Arc<AtomicU64>);

impl Stayed {
    pub(crate) fn count(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// What takes a charge back, if it was one.
#[derive(Debug)]
pub(crate) struct Undo {
    step: Step,
    runtime: Handle,
    stayed: Stayed,
}

#[derive(Debug)]
enum Step {
    /// From the very counter to which was added: another may be the newest by now.
    Subtract {
        link: Link,
        key: String,
        by: u32,
    },
    Refund(Box<Refund>),
}

/// What a state was charged.
#[derive(Debug)]
pub(crate) struct Refund {
    pub(crate) swaps: Arc<Swaps>,
    pub(crate) place: Place,
    pub(crate) policy: Policy,
    pub(crate) back: NonZeroU32,
}

impl Undo {
    pub(crate) fn subtract(link: &Link, key: &str, by: u32, stayed: &Stayed) -> Self {
        let (link, key) = (link.clone(), key.to_owned());
        Self::new(Step::Subtract { link, key, by }, stayed)
    }

    pub(crate) fn refund(refund: Refund, stayed: &Stayed) -> Self {
        Self::new(Step::Refund(Box::new(refund)), stayed)
    }

    fn new(step: Step, stayed: &Stayed) -> Self {
        Self {
            step,
            runtime: Handle::current(),
            stayed: stayed.clone(),
        }
    }

    /// Whether that is what a server answers that has charged. After anything else there is nothing
    /// to take back.
    pub(crate) const fn is_due_after(&self, reply: Option<&Reply>) -> bool {
        match self.step {
            Step::Subtract { .. } => matches!(reply, Some(Reply::Value { .. })),
            Step::Refund(_) => matches!(reply, Some(Reply::Done)),
        }
    }

    fn start(self) -> JoinHandle<()> {
        let Self {
            step,
            runtime,
            stayed,
        } = self;
        runtime.spawn(async move {
            if let Err(error) = step.run().await {
                // Callers can bring this about as often as they call, so it is counted and no line
                // in a log.
                stayed.0.fetch_add(1, Relaxed);
                tracing::debug!(%error, "a call that does not go through stays charged");
            }
        })
    }
}

impl Step {
    async fn run(self) -> Result<(), Failure> {
        match self {
            Self::Subtract { link, key, by } => {
                let subtract = Command::Subtract { key: &key, by };
                link.ask(&[subtract]).await.map(|_| ())
            }
            Self::Refund(refund) => {
                let Refund {
                    swaps,
                    place,
                    policy,
                    back,
                } = *refund;
                swaps.undo(&place, &policy, back).await
            }
        }
    }
}

/// Something that was charged. It is taken back when this is dropped.
#[derive(Debug)]
#[must_use]
pub(crate) struct Charged(Option<Undo>);

impl Charged {
    pub(crate) const fn new(undo: Undo) -> Self {
        Self(Some(undo))
    }

    /// It stays charged.
    pub(crate) fn keep(mut self) {
        self.0 = None;
    }

    /// Takes it back now. Whoever does not wait for that changes nothing.
    pub(crate) fn take_back(mut self) -> Option<JoinHandle<()>> {
        self.0.take().map(Undo::start)
    }
}

impl Drop for Charged {
    fn drop(&mut self) {
        if let Some(undo) = self.0.take() {
            undo.start();
        }
    }
}
