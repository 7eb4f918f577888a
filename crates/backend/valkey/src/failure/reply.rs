//! Error replies of servers, and their meaning.

use std::fmt;

use redis::ServerError;

/// Reason for a rejection by a server, and the next step.
pub(super) type Rejection = (&'static str, &'static str);

pub(super) const REPLICA: Rejection = (
    "is a read-only replica",
    "write the address of the master in [store], or that of its sentinels as redis+sentinel://",
);
/// Error reply of a server.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Reply {
    pub(super) code: String,
    pub(super) detail: String,
}

const IN_A_CLUSTER: Rejection = (
    "is one server of a cluster",
    "write the address as redis+cluster:// in [store]",
);
const NO_RIGHTS: Rejection = (
    "does not grant this user the required rights",
    "allow the user all keys of the prefix and these commands: EVALSHA, EVAL, INFO, TIME, HGET, \
     HMGET, HGETALL, HSET, HDEL, INCR, PEXPIRE and PERSIST. For rate limits: GET, SET, DEL, \
     LINDEX, LLEN, LSET, LTRIM and RPUSH. In a cluster: CLUSTER and ASKING. For a database other \
     than 0: SELECT",
);

/// Meaning of error codes.
const CODES: &[(&str, Rejection)] = &[
    (
        "WRONGPASS",
        (
            "rejects the username or the password",
            "check username and password in [store]",
        ),
    ),
    (
        "NOAUTH",
        (
            "requires a password",
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
            "raise its maxmemory, or move other programs that fill it to another server",
        ),
    ),
    (
        "MISCONF",
        (
            "cannot save to its disk and rejects writes",
            "free or repair its disk; see its log",
        ),
    ),
    (
        "NOREPLICAS",
        (
            "has too few replicas and rejects writes",
            "repair the replicas, or lower its min-replicas-to-write",
        ),
    ),
    (
        "WRONGTYPE",
        (
            "has values of another program under our keys",
            "choose another prefix in [store]",
        ),
    ),
    (
        "DENIED",
        (
            "is in protected mode: it accepts only its own machine",
            "set a password at the server, or let it listen where only nodes reach it",
        ),
    ),
];

/// Meaning of errors with the general code, by a part of their text.
const TEXTS: &[(&str, Rejection)] = &[
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
            "check the ports in [store]; sentinels usually listen at 26379",
        ),
    ),
    // Errors of a command inside a script.
    ("acl failure in script", NO_RIGHTS),
    ("the user executing the script", NO_RIGHTS),
];

/// Hints for errors that may pass without an operator.
const HINTS: &[(&str, &str)] = &[
    ("LOADING", "; it serves requests once its data are loaded"),
    ("MASTERDOWN", "; its link to the master is down"),
    (
        "CLUSTERDOWN",
        "; its CLUSTER INFO shows which part of the cluster is missing",
    ),
    ("BUSY", "; a script of another client runs for too long"),
];

impl Reply {
    pub(crate) fn new(error: &ServerError) -> Self {
        Self {
            code: error.code().to_owned(),
            detail: error.details().unwrap_or_default().to_owned(),
        }
    }

    /// Parses the line of an error, without its `-`.
    pub(crate) fn read(line: &str) -> Self {
        let (code, detail) = line.split_once(' ').unwrap_or((line, ""));
        Self {
            code: code.to_owned(),
            detail: detail.to_owned(),
        }
    }

    /// Returns whether this is the error `code`, directly or in a script: servers before 7.0 wrap
    /// the latter in another error.
    pub(super) fn is(&self, code: &str) -> bool {
        let mut words = self.detail.split_ascii_whitespace();
        self.code == code || words.any(|word| word.strip_prefix('-') == Some(code))
    }

    pub(super) fn hint(&self) -> &'static str {
        let hint = HINTS.iter().find(|(code, _)| self.is(code));
        hint.map_or("", |(_, hint)| hint)
    }

    pub(super) fn rejection(&self) -> Option<Rejection> {
        let detail = self.detail.to_ascii_lowercase();
        let by_code = CODES.iter().find(|(code, _)| self.is(code));
        let by_text = || TEXTS.iter().find(|(text, _)| detail.contains(text));
        by_code.or_else(by_text).map(|(_, rejection)| *rejection)
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

    fn check(text: &str, expected: Option<&str>) {
        let found = Reply::read(text).rejection().map(|(reason, _)| reason);
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn rejections_are_recognized_by_code_or_by_text() {
        check(
            "WRONGPASS invalid username-password pair or user is disabled.",
            Some("rejects the username or the password"),
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
    fn errors_in_scripts_are_recognized_in_the_6_2_format() {
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
    fn a_transient_error_has_a_hint() {
        let loading = Reply::read("LOADING Redis is loading the dataset in memory");
        assert!(loading.hint().contains("once its data are loaded"));
        assert_eq!(Reply::read("ERR something new").hint(), "");
    }
}
