//! Keys of records and counters at the server.
//!
//! A record has the key `{prefix}:{<room>}:<rest>`. The requests that are left beside it have the
//! same key with `~left` at its end, and notes with `~notes`. The parts of a room's history have it
//! with `~history`. No record has a tilde in its name. A counter has the key
//! `{prefix}:{<room>}#<scope>:<minute>`, and the state of a limit's client
//! `{prefix}:{<limit>:<client>}`. Leases use `{prefix}:{lent~<partition>}` for the epoch of a
//! partition and `{prefix}:{lent~<partition>}:<limit>:<client>` for the leases of a client; no room
//! has a tilde in its name. In a cluster only the part in braces chooses the server. So all keys of
//! a room or a partition are at one server, and clients and partitions are spread over all.

use std::borrow::Cow;

use anteroom_limit_store::ClientKey;
use anteroom_limit_store::lease_store::{LeaseKey, Partition};
use anteroom_room::allocation::CounterScope;
use anteroom_store::{CounterName, HistoryName, RecordKey};

/// Creates keys.
pub(crate) struct Keys {
    prefix: String,
}

impl Keys {
    /// Creates keys with a prefix, so that other programs can use the same server.
    pub(crate) fn new(prefix: &str) -> Self {
        Self {
            prefix: without_braces(prefix).into_owned(),
        }
    }

    pub(crate) fn record(&self, key: &RecordKey) -> String {
        let Self { prefix } = self;
        match key.0.split_once('/') {
            None => format!("{prefix}:{{{}}}", without_braces(&key.0)),
            Some((room, rest)) => format!("{prefix}:{{{}}}:{rest}", without_braces(room)),
        }
    }

    /// Returns the key of the requests that are left beside a record.
    pub(crate) fn left(&self, key: &RecordKey) -> String {
        format!("{}~left", self.record(key))
    }

    /// Returns the key of the notes that are left beside a record.
    pub(crate) fn notes(&self, key: &RecordKey) -> String {
        format!("{}~notes", self.record(key))
    }

    /// Returns the key of the sizes of the parts of a room's history.
    pub(crate) fn history(&self, name: &HistoryName) -> String {
        format!("{}~history", self.record(&RecordKey(name.0.clone())))
    }

    /// Returns the key of a part of a room's history.
    pub(crate) fn history_part(&self, name: &HistoryName, part: &str) -> String {
        format!("{}:{part}", self.history(name))
    }

    pub(crate) fn client(&self, limit: &str, client: ClientKey) -> String {
        let Self { prefix } = self;
        let (limit, ClientKey(client)) = (without_braces(limit), client);
        format!("{prefix}:{{{limit}:{client:032x}}}")
    }

    pub(crate) fn epoch(&self, Partition(partition): Partition) -> String {
        let Self { prefix } = self;
        format!("{prefix}:{{lent~{partition}}}")
    }

    pub(crate) fn lease(&self, partition: Partition, client: LeaseKey<'_>) -> String {
        let (limit, ClientKey(key)) = (without_braces(client.limit), client.key);
        format!("{}:{limit}:{key:032x}", self.epoch(partition))
    }

    pub(crate) fn counter(&self, name: &CounterName) -> String {
        let Self { prefix } = self;
        let room = without_braces(&name.room);
        let minute = name.key.minute.0;
        match name.key.scope {
            CounterScope::Anywhere => format!("{prefix}:{{{room}}}#anywhere:{minute}"),
            CounterScope::DataCenter(id) => format!("{prefix}:{{{room}}}#{:08x}:{minute}", id.0),
        }
    }
}

/// Escapes `{` and `}`, which would move the part that chooses the server; different texts stay
/// different.
fn without_braces(text: &str) -> Cow<'_, str> {
    if !text.contains(['%', '{', '}']) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '%' => plain.push_str("%25"),
            '{' => plain.push_str("%7B"),
            '}' => plain.push_str("%7D"),
            _ => plain.push(char),
        }
    }
    Cow::Owned(plain)
}

#[cfg(test)]
mod tests {
    use anteroom_room::allocation::CounterKey;
    use anteroom_room::id::DataCenterId;
    use anteroom_room::time::Minute;

    use super::*;

    fn check_record(key: &str, expected: &str) {
        let keys = Keys::new("anteroom");
        assert_eq!(keys.record(&RecordKey(key.to_owned())), expected);
    }

    fn counter(scope: CounterScope) -> String {
        Keys::new("anteroom").counter(&CounterName {
            room: "shop".to_owned(),
            key: CounterKey {
                scope,
                minute: Minute(29),
            },
        })
    }

    #[test]
    fn keys_of_a_room_have_the_room_in_braces() {
        check_record("shop", "anteroom:{shop}");
        check_record("shop/world", "anteroom:{shop}:world");
        check_record("shop/rows/7", "anteroom:{shop}:rows/7");
        assert_eq!(
            counter(CounterScope::Anywhere),
            "anteroom:{shop}#anywhere:29"
        );
        let here = CounterScope::DataCenter(DataCenterId(0xAB));
        assert_eq!(counter(here), "anteroom:{shop}#000000ab:29");
    }

    #[test]
    fn requests_beside_a_record_have_its_key_and_are_at_its_server() {
        let keys = Keys::new("anteroom");
        let check = |key: &str, expected: &str| {
            assert_eq!(keys.left(&RecordKey(key.to_owned())), expected);
        };
        check("shop/world", "anteroom:{shop}:world~left");
        check("shop", "anteroom:{shop}~left");
    }

    #[test]
    fn histories_are_at_the_server_of_their_room() {
        let keys = Keys::new("anteroom");
        let name = HistoryName("shop/00ab".to_owned());
        assert_eq!(keys.history(&name), "anteroom:{shop}:00ab~history");
        let part = keys.history_part(&name, "m490754");
        assert_eq!(part, "anteroom:{shop}:00ab~history:m490754");
    }

    #[test]
    fn keys_of_a_client_have_limit_and_client_in_braces() {
        let client_key = |limit| Keys::new("anteroom").client(limit, ClientKey(0xAB));
        let client = "000000000000000000000000000000ab";
        assert_eq!(client_key("api"), format!("anteroom:{{api:{client}}}"));
        assert_eq!(client_key("a}b"), format!("anteroom:{{a%7Db:{client}}}"));
    }

    #[test]
    fn lease_keys_have_the_partition_of_their_epoch_in_braces() {
        let keys = Keys::new("anteroom");
        let key = ClientKey(0xAB);
        let lease = |limit| keys.lease(Partition(7), LeaseKey { limit, key });
        let client = "000000000000000000000000000000ab";
        assert_eq!(keys.epoch(Partition(7)), "anteroom:{lent~7}");
        assert_eq!(lease("api"), format!("anteroom:{{lent~7}}:api:{client}"));
        assert_eq!(lease("{b"), format!("anteroom:{{lent~7}}:%7Bb:{client}"));
    }

    #[test]
    fn braces_in_a_name_do_not_move_the_tag() {
        check_record("a}b/c", "anteroom:{a%7Db}:c");
        check_record("a%7Db/c", "anteroom:{a%257Db}:c");
        check_record("a/{b}", "anteroom:{a}:{b}");
        assert_eq!(Keys::new("a{b}").prefix, "a%7Bb%7D");
    }
}
