//! Keys of a client's values at the server.
//!
//! A key is a digest of the limit's name and the client, so keys are short and contain no outside
//! bytes. The state of a client has that key. A counter appends the width of its sub-window and its
//! index. So a limit that changes the width of its sub-windows begins anew, and one that keeps the
//! width keeps its counters.

use anteroom_limit::counters::{CounterIndex, Counters};
use anteroom_limit_store::{ClientKey, KeyMaker};

/// Prefix of all keys.
#[derive(Debug)]
pub(crate) struct Keys {
    prefix: String,
}

/// Key of a client's state and prefix of its counters.
#[derive(Clone, Debug)]
pub(crate) struct ClientName {
    /// Key of the state.
    pub(crate) state: String,
    /// Digest of the client as a number.
    pub(crate) digest: u128,
}

impl Keys {
    pub(crate) fn new(prefix: &str) -> Self {
        let prefix = prefix.to_owned();
        Self { prefix }
    }

    pub(crate) fn client(&self, limit: &str, key: ClientKey) -> ClientName {
        let ClientKey(digest) = KeyMaker::shared(limit).key([key.0.to_be_bytes().as_slice()]);
        ClientName {
            state: format!("{}:{digest:032x}", self.prefix),
            digest,
        }
    }
}

impl ClientName {
    /// Returns the key of a counter.
    pub(crate) fn counter(&self, counters: &Counters, index: CounterIndex) -> String {
        format!("{}:{}:{}", self.state, counters.width().0, index.0)
    }

    /// Returns a number for this client below `below`, which is not zero.
    pub(crate) fn spread(&self, below: usize) -> usize {
        // A number below a usize is one.
        usize::try_from(self.digest % below as u128).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use anteroom_limit::fixed_window::FixedWindow;
    use anteroom_limit::rate::Rate;
    use anteroom_limit::time::DurationUs;

    use super::*;

    #[test]
    fn keys_are_short_and_plain_for_any_limit_name() {
        let prefix = "p".repeat(64);
        let limit = "a limit\r\nflush_all\r\n".repeat(50);
        let client = Keys::new(&prefix).client(&limit, ClientKey(u128::MAX));
        let rate = Rate::new(1, DurationUs::from_secs(366 * 86_400)).unwrap();
        let counters = FixedWindow::new(rate).counters();
        let name = client.counter(&counters, CounterIndex(u64::MAX));
        assert!(name.len() <= 250, "{}", name.len());
        let is_plain = |byte: u8| byte.is_ascii_graphic();
        assert!(name.bytes().all(is_plain), "{name}");
        assert!(name.starts_with(&client.state));
    }

    #[test]
    fn keys_differ_by_limit_and_client() {
        let keys = Keys::new("a");
        let name = |limit: &str, key: u128| keys.client(limit, ClientKey(key)).state;
        assert_eq!(name("api", 1), name("api", 1));
        assert_ne!(name("api", 1), name("api", 2));
        assert_ne!(name("api", 1), name("site", 1));
    }
}
