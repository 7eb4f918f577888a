//! What are records and counters called at the server?
//!
//! `{prefix}:{<room>}:<rest>` for a record, `{prefix}:{<room>}#<scope>:<minute>` for a counter,
//! `{prefix}:{<limit>:<client>}` for what a client has called. Where calls are lent,
//! `{prefix}:{lent~<shelf>}` for the epoch of a shelf and
//! `{prefix}:{lent~<shelf>}:<limit>:<client>` for what a client of it was lent: no room's name has
//! a tilde. In a cluster the part in braces alone chooses the server: all that belongs to a room or
//! a shelf lives at one, and clients and shelves are spread over all.

use std::borrow::Cow;

use anteroom_limit_store::CallKey;
use anteroom_limit_store::lent::{LeaseKey, Shelf};
use anteroom_room::allocation::CounterScope;
use anteroom_store::{CounterName, RecordKey};

/// Makes names.
pub(crate) struct Keys {
    prefix: String,
}

impl Keys {
    /// All names begin with `prefix`, so that others may use the same server.
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

    pub(crate) fn calls(&self, limit: &str, client: CallKey) -> String {
        let Self { prefix } = self;
        let (limit, CallKey(client)) = (without_braces(limit), client);
        format!("{prefix}:{{{limit}:{client:032x}}}")
    }

    pub(crate) fn epoch(&self, Shelf(shelf): Shelf) -> String {
        let Self { prefix } = self;
        format!("{prefix}:{{lent~{shelf}}}")
    }

    pub(crate) fn lent(&self, shelf: Shelf, client: LeaseKey<'_>) -> String {
        let (limit, CallKey(key)) = (without_braces(client.limit), client.key);
        format!("{}:{limit}:{key:032x}", self.epoch(shelf))
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

/// `text` without `{` and `}`, which would move the part that chooses the server; two different
/// texts stay different.
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
    fn what_belongs_to_a_room_has_the_room_in_braces() {
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
    fn a_client_of_a_limit_has_both_in_braces() {
        let calls = |limit| Keys::new("anteroom").calls(limit, CallKey(0xAB));
        let client = "000000000000000000000000000000ab";
        assert_eq!(calls("api"), format!("anteroom:{{api:{client}}}"));
        assert_eq!(calls("a}b"), format!("anteroom:{{a%7Db:{client}}}"));
    }

    #[test]
    fn what_was_lent_has_its_shelf_in_braces_as_the_epoch_has() {
        let keys = Keys::new("anteroom");
        let key = CallKey(0xAB);
        let lent = |limit| keys.lent(Shelf(7), LeaseKey { limit, key });
        let client = "000000000000000000000000000000ab";
        assert_eq!(keys.epoch(Shelf(7)), "anteroom:{lent~7}");
        assert_eq!(lent("api"), format!("anteroom:{{lent~7}}:api:{client}"));
        assert_eq!(lent("{b"), format!("anteroom:{{lent~7}}:%7Bb:{client}"));
    }

    #[test]
    fn braces_in_a_name_do_not_move_the_tag() {
        check_record("a}b/c", "anteroom:{a%7Db}:c");
        check_record("a%7Db/c", "anteroom:{a%257Db}:c");
        check_record("a/{b}", "anteroom:{a}:{b}");
        assert_eq!(Keys::new("a{b}").prefix, "a%7Bb%7D");
    }
}
