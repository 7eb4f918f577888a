//! Promise of a server about its acknowledged writes: what the operator says, as far as the
//! server's settings bear it out.
//!
//! A server is asked once for each connection, which belongs to one run of one process.

use std::fmt;

use anteroom_config::Durable;
use anteroom_room::time::DurationMs;
use anteroom_store::Durability;
use redis::Value;

use crate::access::Access;

/// Longest loss of a server that logs its writes and syncs the log every second. It may put a sync
/// off for two seconds while the one before runs.
const EVERY_SECOND: DurationMs = DurationMs(3_000);

/// Settings of a server that decide what it keeps.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Persistence {
    /// Whether it logs every write (`appendonly yes`).
    pub(crate) has_log: bool,
    /// Whether it took over from another server since it started.
    pub(crate) was_promoted: bool,
    pub(crate) fsync: Fsync,
}

/// Setting `appendfsync`, together with `no-appendfsync-on-rewrite`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Fsync {
    /// Before each reply.
    Always,
    /// Once a second.
    EverySecond,
    /// Left to the operating system.
    No,
    /// The server does not show it to us.
    #[default]
    Hidden,
}

impl fmt::Display for Persistence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let log = if self.has_log { "yes" } else { "no" };
        let fsync = match self.fsync {
            Fsync::Always => "always",
            Fsync::EverySecond => "everysec",
            Fsync::No => "no",
            Fsync::Hidden => "not shown",
        };
        write!(f, "appendonly {log}, appendfsync {fsync}")
    }
}

impl Fsync {
    /// Pattern of the settings for `CONFIG GET`, which takes one before version 7.
    pub(crate) const SETTINGS: &str = "*appendfsync*";

    /// Reads the reply to `CONFIG GET` of [`Self::SETTINGS`].
    pub(crate) fn of_config(value: Value) -> Self {
        let parts = match value {
            Value::Array(parts) => parts,
            Value::Map(pairs) => pairs.into_iter().flat_map(|(k, v)| [k, v]).collect(),
            _ => Vec::new(),
        };
        let texts: Vec<_> = parts.iter().map(bytes_of).collect();
        let setting = |name: &[u8]| {
            let mut pairs = texts.chunks_exact(2);
            let found = pairs.find(|pair| pair[0] == name);
            found.map_or(&b""[..], |pair| pair[1])
        };
        // While it rewrites its log, such a server syncs nothing.
        if setting(b"no-appendfsync-on-rewrite") == b"yes" {
            return Self::No;
        }
        match setting(b"appendfsync") {
            b"always" => Self::Always,
            b"everysec" => Self::EverySecond,
            b"no" => Self::No,
            _ => Self::Hidden,
        }
    }
}

fn bytes_of(value: &Value) -> &[u8] {
    match value {
        Value::BulkString(bytes) => bytes,
        Value::SimpleString(text) => text.as_bytes(),
        _ => b"",
    }
}

impl Persistence {
    /// Whether the settings show that the server cannot keep a promise of its operator.
    pub(crate) fn contradicts(self, durable: Durable) -> bool {
        let can_keep_all = self.has_log && matches!(self.fsync, Fsync::Always | Fsync::Hidden);
        durable != Durable::No && !can_keep_all
    }
}

/// Returns the promise of a server.
pub(crate) fn of(access: &Access, server: Persistence) -> Durability {
    let promise = access.promise;
    // A server that took over may lack what the one before it had acknowledged.
    let is_same = access.is_one_server && !server.was_promoted;
    let keeps_all = match promise.durable {
        Durable::No => false,
        Durable::Restart => is_same,
        Durable::Failover => true,
    };
    if keeps_all && !server.contradicts(promise.durable) {
        return Durability::KeepsAll;
    }
    let by_settings = match server.fsync {
        Fsync::Always | Fsync::EverySecond if server.has_log && is_same => Some(EVERY_SECOND),
        _ => None,
    };
    let longest = promise.longest_loss.or(by_settings);
    longest.map_or(Durability::Unknown, Durability::LosesAtMost)
}

#[cfg(test)]
mod tests {
    use anteroom_config::StorePromise;

    use super::*;

    const LOGS: Persistence = Persistence {
        has_log: true,
        was_promoted: false,
        fsync: Fsync::EverySecond,
    };

    fn access(durable: Durable, longest_loss: Option<DurationMs>) -> Access {
        Access {
            username: None,
            password: None,
            database: 0,
            tls: None,
            promise: StorePromise {
                durable,
                longest_loss,
            },
            is_one_server: true,
        }
    }

    #[test]
    fn without_a_promise_the_settings_decide() {
        let access = access(Durable::No, None);
        let check = |server, expected| assert_eq!(of(&access, server), expected, "{server:?}");
        check(LOGS, Durability::LosesAtMost(EVERY_SECOND));
        let fsync = Fsync::Always;
        check(
            Persistence { fsync, ..LOGS },
            Durability::LosesAtMost(EVERY_SECOND),
        );
        for fsync in [Fsync::No, Fsync::Hidden] {
            check(Persistence { fsync, ..LOGS }, Durability::Unknown);
        }
        let has_log = false;
        check(Persistence { has_log, ..LOGS }, Durability::Unknown);
        let was_promoted = true;
        check(
            Persistence {
                was_promoted,
                ..LOGS
            },
            Durability::Unknown,
        );
        let mut several = access.clone();
        several.is_one_server = false;
        assert_eq!(of(&several, LOGS), Durability::Unknown);
    }

    #[test]
    fn a_promise_holds_unless_the_settings_contradict_it() {
        let fsync = Fsync::Always;
        let always = Persistence { fsync, ..LOGS };
        let fsync = Fsync::Hidden;
        let hidden = Persistence { fsync, ..LOGS };
        let was_promoted = true;
        let promoted = Persistence {
            was_promoted,
            ..always
        };
        let restart = access(Durable::Restart, None);
        let failover = access(Durable::Failover, None);
        for server in [always, hidden] {
            assert_eq!(of(&restart, server), Durability::KeepsAll);
            assert_eq!(of(&failover, server), Durability::KeepsAll);
        }
        assert_eq!(of(&restart, promoted), Durability::Unknown);
        assert_eq!(of(&failover, promoted), Durability::KeepsAll);
        assert_eq!(of(&restart, LOGS), Durability::LosesAtMost(EVERY_SECOND));
        assert!(LOGS.contradicts(Durable::Restart) && !always.contradicts(Durable::Restart));
        let has_log = false;
        assert!(Persistence { has_log, ..always }.contradicts(Durable::Failover));
    }

    #[test]
    fn a_longest_loss_holds_whatever_the_settings_are() {
        let longest = DurationMs(9_000);
        let access = access(Durable::No, Some(longest));
        let server = Persistence {
            has_log: false,
            was_promoted: true,
            fsync: Fsync::Hidden,
        };
        assert_eq!(of(&access, server), Durability::LosesAtMost(longest));
    }

    #[test]
    fn the_setting_is_read_from_any_reply() {
        let bytes = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        let check = |value, expected| assert_eq!(Fsync::of_config(value), expected);
        let pair = |text| Value::Array(vec![bytes("appendfsync"), bytes(text)]);
        check(pair("always"), Fsync::Always);
        check(pair("everysec"), Fsync::EverySecond);
        check(pair("no"), Fsync::No);
        check(pair("x"), Fsync::Hidden);
        check(Value::Array(Vec::new()), Fsync::Hidden);
        let map = vec![(bytes("appendfsync"), bytes("no"))];
        check(Value::Map(map), Fsync::No);
        let on_rewrite = |text| {
            let names = ["no-appendfsync-on-rewrite", text, "appendfsync", "always"];
            Value::Array(names.map(bytes).to_vec())
        };
        check(on_rewrite("no"), Fsync::Always);
        check(on_rewrite("yes"), Fsync::No);
        check(Value::Nil, Fsync::Hidden);
    }
}
