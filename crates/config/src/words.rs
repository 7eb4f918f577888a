//! Words of the choices in the config file and in JSON.

use anteroom_room::rules::{
    AllocationKind, NewUsersWindow, OnStoreFailure, QueueingMethod, SeatNeedsCookie,
};

use crate::model::{SameSite, Secure};

/// `queueing_method`.
pub(crate) const QUEUEING_METHODS: &[(&str, QueueingMethod)] = &[
    ("fifo", QueueingMethod::Fifo),
    ("random", QueueingMethod::Random),
    ("passthrough", QueueingMethod::Passthrough),
    ("reject", QueueingMethod::Reject),
];

/// `allocation`.
pub const ALLOCATIONS: &[(&str, AllocationKind)] = &[
    ("even", AllocationKind::Even),
    ("curve", AllocationKind::Curve),
    ("counters", AllocationKind::Counters),
    ("leases", AllocationKind::Leases),
];

/// `new_users_window`.
pub const NEW_USERS_WINDOWS: &[(&str, NewUsersWindow)] = &[
    ("minute", NewUsersWindow::Minute),
    ("sliding", NewUsersWindow::Sliding),
];

/// `seat_needs_cookie`.
pub(crate) const SEAT_NEEDS_COOKIE: &[(&str, SeatNeedsCookie)] = &[
    ("never", SeatNeedsCookie::Never),
    ("near_limit", SeatNeedsCookie::NearLimit),
    ("always", SeatNeedsCookie::Always),
];

/// `on_store_failure`.
pub(crate) const ON_STORE_FAILURE: &[(&str, OnStoreFailure)] = &[
    ("bounded", OnStoreFailure::Bounded),
    ("admit", OnStoreFailure::Admit),
];

/// `cookie_attributes.samesite`.
pub(crate) const SAME_SITES: &[(&str, SameSite)] = &[
    ("auto", SameSite::Auto),
    ("lax", SameSite::Lax),
    ("none", SameSite::None),
    ("strict", SameSite::Strict),
];

/// `cookie_attributes.secure`.
pub(crate) const SECURES: &[(&str, Secure)] = &[
    ("auto", Secure::Auto),
    ("always", Secure::Always),
    ("never", Secure::Never),
];

/// Returns the word for a `SameSite`.
#[must_use]
pub const fn same_site(same_site: SameSite) -> &'static str {
    match same_site {
        SameSite::Auto => "auto",
        SameSite::Lax => "lax",
        SameSite::None => "none",
        SameSite::Strict => "strict",
    }
}

/// Returns the word for a `Secure`.
#[must_use]
pub const fn secure(secure: Secure) -> &'static str {
    match secure {
        Secure::Auto => "auto",
        Secure::Always => "always",
        Secure::Never => "never",
    }
}

/// Returns the word for a queueing method.
#[must_use]
pub const fn queueing_method(method: QueueingMethod) -> &'static str {
    match method {
        QueueingMethod::Fifo => "fifo",
        QueueingMethod::Random => "random",
        QueueingMethod::Passthrough => "passthrough",
        QueueingMethod::Reject => "reject",
    }
}

/// Returns the word for an allocation.
#[must_use]
pub const fn allocation(kind: AllocationKind) -> &'static str {
    match kind {
        AllocationKind::Even => "even",
        AllocationKind::Curve => "curve",
        AllocationKind::Counters => "counters",
        AllocationKind::Leases => "leases",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_written_with_the_word_that_is_read() {
        for (word, method) in QUEUEING_METHODS {
            assert_eq!(queueing_method(*method), *word);
        }
        for (word, kind) in ALLOCATIONS {
            assert_eq!(allocation(*kind), *word);
        }
        for (word, value) in SAME_SITES {
            assert_eq!(same_site(*value), *word);
        }
        for (word, value) in SECURES {
            assert_eq!(secure(*value), *word);
        }
    }
}
