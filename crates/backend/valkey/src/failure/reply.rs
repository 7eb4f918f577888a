//! What servers say when they refuse, and what it means.

use std::fmt;

use redis::ServerError;

/// What a server refuses, in our words, and what to do.
pub(super) type Refusal = (&'static str, &'static str);

pub(super) const REPLICA: Refusal = (
    "is a read-only replica",
    "write the address of the master in [store], or that of its sentinels as redis+sentinel://",
);
/// An error that a server answered with, in its words.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Reply {
    pub(super) code: String,
    pub(super) detail: String,
}

const IN_A_CLUSTER: Refusal = (
    "is one server of a cluster",
    "write the address as redis+cluster:// in [store]",
);
const NO_RIGHTS: Refusal = (
    "does not let this user do what is needed",
    "allow the user all keys of the prefix and the commands evalsha, eval, info, time, hget, \
     hmget, \
     hset, incr and pexpire (for limits of calls also get, set, del, lindex, llen, lset, ltrim \
     and rpush; \
     in a cluster cluster and asking; for a database other than 0 select)",
);

/// What error codes mean.
const CODES: &[(&str, Refusal)] = &[
    (
        "WRONGPASS",
        (
            "refuses the username or the password",
            "check username and password in [store]",
        ),
    ),
    (
        "NOAUTH",
        (
            "wants a password",
            "set password, and username if it is not the default user, in [store]",
        ),
    ),
    ("NOPERM", NO_RIGHTS),
    ("READONLY", REPLICA),
    ("MOVED", IN_A_CLUSTER),
    (
        "OOM",
        (
            "is out of memory",
            "raise its maxmemory, or give others who fill it a server of their own",
        ),
    ),
    (
        "MISCONF",
        (
            "cannot save to its disk and refuses writes",
            "free or repair its disk; its log says what is wrong",
        ),
    ),
    (
        "NOREPLICAS",
        (
            "has too few replicas and refuses writes",
            "repair the replicas, or lower its min-replicas-to-write",
        ),
    ),
    (
        "WRONGTYPE",
        (
            "holds something else under our keys",
            "choose another prefix in [store]",
        ),
    ),
    (
        "DENIED",
        (
            "is in protected mode: it talks to its own machine alone",
            "set a password at the server, or let it listen where only nodes reach it",
        ),
    ),
];

/// What errors mean that come under the code of all errors, by a part of their text.
const TEXTS: &[(&str, Refusal)] = &[
    (
        "without any password configured",
        (
            "has no password",
            "remove password from [store], or set one at the server",
        ),
    ),
    (
        "cluster support disabled",
        ("is no cluster", "write the address as redis:// in [store]"),
    ),
    (
        "db index is out of range",
        (
            "has no database of that number",
            "check the number at the end of the address in [store]",
        ),
    ),
    ("select is not allowed in cluster mode", IN_A_CLUSTER),
    (
        "unknown command 'sentinel'",
        (
            "is no sentinel",
            "check the ports in [store]; sentinels mostly listen at 26379",
        ),
    ),
    // Of a command inside a script.
    ("acl failure in script", NO_RIGHTS),
    ("the user executing the script", NO_RIGHTS),
];

/// What helps against what may go away by itself.
const HINTS: &[(&str, &str)] = &[
    (
        "LOADING",
        "; it will do what it is asked once its data are loaded",
    ),
    ("MASTERDOWN", "; its link to the master is down"),
    (
        "CLUSTERDOWN",
        "; its CLUSTER INFO says which part of the cluster is missing",
    ),
    (
        "BUSY",
        "; a script that somebody else runs there takes too long",
    ),
];

impl Reply {
    pub(crate) fn new(error: &ServerError) -> Self {
        Self {
            code: error.code().to_owned(),
            detail: error.details().unwrap_or_default().to_owned(),
        }
    }

    /// Reads the line of an error, without its `-`.
    pub(crate) fn read(line: &str) -> Self {
        let (code, detail) = line.split_once(' ').unwrap_or((line, ""));
        Self {
            code: code.to_owned(),
            detail: detail.to_owned(),
        }
    }

    /// Whether this is the error `code`, be it one of a command inside a script: servers before 7.0
    /// wrap those in an error of their own.
    pub(super) fn says(&self, code: &str) -> bool {
        let mut words = self.detail.split_ascii_whitespace();
        self.code == code || words.any(|word| word.strip_prefix('-') == Some(code))
    }

    pub(super) fn hint(&self) -> &'static str {
        let hint = HINTS.iter().find(|(code, _)| self.says(code));
        hint.map_or("", |(_, hint)| hint)
    }

    pub(super) fn refusal(&self) -> Option<Refusal> {
        let detail = self.detail.to_ascii_lowercase();
        let by_code = CODES.iter().find(|(code, _)| self.says(code));
        let by_text = || TEXTS.iter().find(|(text, _)| detail.contains(text));
        by_code.or_else(by_text).map(|(_, refusal)| *refusal)
    }
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.code, self.detail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, refusal: Option<&str>) {
        let found = Reply::read(text).refusal().map(|(refusal, _)| refusal);
        assert_eq!(found, refusal, "{text}");
    }

    #[test]
    fn refusals_are_known_by_code_or_by_text() {
        check(
            "WRONGPASS invalid username-password pair or user is disabled.",
            Some("refuses the username or the password"),
        );
        check(
            "ERR This instance has cluster support disabled",
            Some("is no cluster"),
        );
        check(
            "ERR DB index is out of range",
            Some("has no database of that number"),
        );
        check("ERR something new", None);
        check("LOADING Redis is loading the dataset in memory", None);
    }

    #[test]
    fn errors_in_scripts_are_known_in_the_6_2_form() {
        check(
            "ERR Error running script (call to f_1): @user_script:1: @user_script: 1: -READONLY \
             You \
             can't write against a read only replica.",
            Some("is a read-only replica"),
        );
        check(
            "ERR Error running script (call to f_1): @user_script:1: @user_script: 1: -OOM command \
             not allowed when used memory > 'maxmemory'.",
            Some("is out of memory"),
        );
    }

    #[test]
    fn what_goes_away_by_itself_has_a_hint() {
        let loading = Reply::read("LOADING Redis is loading the dataset in memory");
        assert!(loading.hint().contains("once its data are loaded"));
        assert_eq!(Reply::read("ERR something new").hint(), "");
    }
}
