//! The store itself.

use std::fmt;

use anteroom_config::ValkeyAddress;
use anteroom_store::{
    BoxFuture, CounterName, Expected, Loaded, RecordKey, Store, StoreError, Swap,
};

use crate::access::SetupError;
use crate::checking::{self, Findings};
use crate::keys::Keys;
use crate::route::Route;
use crate::script::Scripts;

/// A store on Valkey or Redis.
///
/// One connection to each server, shared by all who call, made when somebody calls and made anew
/// after it was lost. A load and a swap cost one round trip each. Calls end within 1 s, 2.25 s if
/// a connection has to be made first; those that find the circuit open end at once.
///
/// # Invariants
///
/// - What a load says and what the swap after it writes are about one run of one server, or the
///   swap is a conflict.
/// - A swap is sent once. If its answer does not come it may have been carried out or not.
///
/// # What it cannot do
///
/// A server that loses its data, or a replica that is promoted before it had them all, hands out
/// numbers of the minute under way again; the ledgers notice by the identity, counters do not.
pub struct Valkey {
    route: Route,
    keys: Keys,
    scripts: Scripts,
    /// Where it is, without secrets.
    place: String,
}

impl Valkey {
    /// Makes a store; `prefix` begins the names of all its keys. Opens nothing yet.
    ///
    /// # Errors
    ///
    /// [`SetupError`] if TLS is wanted and whom to trust cannot be read.
    pub fn new(address: &ValkeyAddress, prefix: &str) -> Result<Self, SetupError> {
        Ok(Self {
            route: Route::new(address)?,
            keys: Keys::new(prefix),
            scripts: Scripts::new(),
            place: address.to_string(),
        })
    }

    /// Finds out whether the store is fit for use: it can be reached, lets us in, is new enough and
    /// no replica.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if it is not, with the remedy if somebody must do something.
    pub async fn check(&self) -> Result<Findings, StoreError> {
        let found = checking::check(&self.route).await;
        found.map_err(|failure| failure.into_store_error("check", &self.place))
    }
}

impl Store for Valkey {
    fn load<'a>(&'a self, key: &'a RecordKey) -> BoxFuture<'a, Result<Loaded, StoreError>> {
        Box::pin(async move {
            let loaded = self.scripts.load(&self.route, &self.keys.record(key)).await;
            loaded.map_err(|failure| failure.into_store_error("read from", &self.place))
        })
    }

    fn compare_and_swap<'a>(
        &'a self,
        key: &'a RecordKey,
        expected: Expected,
        value: Vec<u8>,
    ) -> BoxFuture<'a, Result<Swap, StoreError>> {
        Box::pin(async move {
            let key = self.keys.record(key);
            let swap = self.scripts.swap(&self.route, &key, expected, &value).await;
            swap.map_err(|failure| failure.into_store_error("write to", &self.place))
        })
    }

    fn take_number<'a>(&'a self, name: &'a CounterName) -> BoxFuture<'a, Result<u64, StoreError>> {
        Box::pin(async move {
            let taken = self
                .scripts
                .take(&self.route, &self.keys.counter(name))
                .await;
            taken.map_err(|failure| failure.into_store_error("take a number from", &self.place))
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.route.close();
        Box::pin(async {})
    }
}

impl fmt::Debug for Valkey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Valkey({})", self.place)
    }
}
