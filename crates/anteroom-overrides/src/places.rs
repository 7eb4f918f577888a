//! Where is it kept what operators say about limits, and who else may write there?

use std::time::Duration;

use anteroom_core::id::BirthId;
use anteroom_node::Stores;
use anteroom_store::{SaidPlace, StoreError};
use tokio::time::timeout;

use crate::orders::LimitOrders;

/// What was said about clients of limits, in one store.
pub type LimitOrdersPlace = SaidPlace<LimitOrders>;

/// Stands where a room's name does. No room is called so.
const LIMITS: &str = "(limits)";

/// A read that takes longer has failed.
const TIME_OUT: Duration = Duration::from_secs(1);

/// Where the record is kept.
#[derive(Clone, Debug)]
pub struct Places {
    /// The record that counts.
    pub place: LimitOrdersPlace,
    /// A copy in this data center's own store, for a node that starts while the world's is away.
    pub copy: Option<LimitOrdersPlace>,
    /// Whether other nodes may say something.
    pub are_shared: bool,
}

impl Places {
    /// Those of a deployment's nodes.
    #[must_use]
    pub fn of(stores: &Stores, birth: BirthId) -> Self {
        let (place, copy) = stores.said(LIMITS, birth);
        Self {
            place,
            copy,
            are_shared: stores.are_shared(),
        }
    }

    /// What was said, as the record has it.
    pub(crate) async fn read(&self) -> Result<LimitOrders, StoreError> {
        read(&self.place).await
    }

    /// The same from next door; nothing if there is no copy.
    pub(crate) async fn read_copy(&self) -> Option<LimitOrders> {
        read(self.copy.as_ref()?).await.ok()
    }

    /// Puts back what the record has lost, while everything goes on.
    pub(crate) fn restore(&self, orders: LimitOrders) {
        keep(self.place.clone(), orders);
    }

    /// For hard times.
    pub(crate) fn keep_copy(&self, orders: LimitOrders) {
        if let Some(copy) = &self.copy {
            keep(copy.clone(), orders);
        }
    }
}

async fn read(place: &LimitOrdersPlace) -> Result<LimitOrders, StoreError> {
    match timeout(TIME_OUT, place.read()).await {
        Ok(read) => read.map(Option::unwrap_or_default),
        Err(elapsed) => Err(StoreError::Unavailable {
            doing: "reach within a second",
            place: "the settings of limits' clients".to_owned(),
            source: Box::new(elapsed),
        }),
    }
}

fn keep(place: LimitOrdersPlace, orders: LimitOrders) {
    tokio::spawn(async move {
        let kept = timeout(TIME_OUT, place.restore(&orders)).await;
        if !matches!(kept, Ok(Ok(()))) {
            tracing::debug!(?kept, "the settings of limits' clients are kept later");
        }
    });
}
