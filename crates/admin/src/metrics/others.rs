//! Metrics of the rest of the program.

use std::collections::BTreeMap;
use std::fmt;

use anteroom_config::RoomName;

use super::writer::{Families, Title};
use super::{limits, origins, rate_limits};
use crate::extras::{ConnectionStats, ExtraStats};

/// Writes all families of the rest of the program.
pub(super) fn write(families: &mut Families<'_>, stats: &ExtraStats) -> fmt::Result {
    write_occupancy(families, &stats.connections)?;
    families.total(
        "accept_pauses",
        "How often accepting paused until connections that were closed had ended.",
        stats.accept_pauses,
    )?;
    families.total(
        "accept_failures",
        "How often accepting failed, most likely with too many files open.",
        stats.accept_failures,
    )?;
    write_connections(families, stats)?;
    families.total(
        "journal_rewrites",
        "How often the journal was written again from memory because it was gone.",
        stats.journal_rewrites,
    )?;
    write_reloads(families, stats)?;
    write_by_room(
        families,
        Title {
            name: "bypass_failures",
            help: "Bypass rules that could not be evaluated for a request.",
        },
        &stats.bypass_failures,
    )?;
    write_shared_tickets(families, stats)?;
    write_words(
        families,
        Title {
            name: "origin_outcomes",
            help: "Requests that went to the origin, by outcome.",
        },
        "class",
        &stats.origin_outcomes,
    )?;
    origins::write(families, stats)?;
    write_words(
        families,
        Title {
            name: "verdicts",
            help: "Requests by verdict.",
        },
        "verdict",
        &stats.verdicts,
    )?;
    limits::write(families, stats)?;
    rate_limits::write(families, stats.rate_limits.as_ref())
}

fn write_occupancy(families: &mut Families<'_>, stats: &ConnectionStats) -> fmt::Result {
    families.count("connections_open", "Open client connections.", stats.open)?;
    families.count(
        "connections_with_ticket",
        "Open client connections whose newest request passed by a ticket.",
        stats.with_ticket,
    )?;
    families.count(
        "connections_limit",
        "Limit on open client connections.",
        stats.limit,
    )?;
    let reclaimed = stats.reclaimed.iter();
    families.totals(
        Title {
            name: "connections_reclaimed",
            help: "Idle client connections that were closed to make room, by reason.",
        },
        reclaimed.map(|(word, &count)| ([("reason", *word)], count)),
    )?;
    let rejected = stats.turned_away.iter();
    families.totals(
        Title {
            name: "connections_rejected",
            help: "Client connections that got nothing but an error response, by reason.",
        },
        rejected.map(|(word, &count)| ([("reason", *word)], count)),
    )?;
    let fast_path = stats.fast_path.iter();
    families.totals(
        Title {
            name: "fast_path_requests",
            help: "Requests that the fast path has looked at, by what it did with them.",
        },
        fast_path.map(|(word, &count)| ([("outcome", *word)], count)),
    )
}

fn write_connections(families: &mut Families<'_>, stats: &ExtraStats) -> fmt::Result {
    let broken = stats.connections_broken_off.iter();
    families.totals(
        Title {
            name: "connections_aborted",
            help: "Client connections that were aborted, by reason.",
        },
        broken.map(|(word, &count)| ([("reason", *word)], count)),
    )?;
    families.total(
        "tls_handshakes_failed",
        "Failed TLS handshakes of clients, and connections without TLS.",
        stats.handshakes_failed,
    )?;
    let Some(expires_at) = stats.certificate_expires_at else {
        return Ok(());
    };
    families.seconds(
        "tls_certificate_expires_at",
        "Expiry of the TLS certificate in force, in seconds since the Unix epoch.",
        // Exact for some hundred million years.
        expires_at as f64,
    )
}

fn write_shared_tickets(families: &mut Families<'_>, stats: &ExtraStats) -> fmt::Result {
    write_by_room(
        families,
        Title {
            name: "shared_tickets",
            help: "Tickets used at this node from more addresses than one person has.",
        },
        &stats.shared_tickets,
    )?;
    write_by_room(
        families,
        Title {
            name: "shared_ticket_requests",
            help: "Requests above max_addresses_per_ticket, treated as those of new visitors.",
        },
        &stats.shared_ticket_requests,
    )?;
    families.total(
        "ticket_addresses_evicted",
        "Tickets whose addresses were forgotten for want of space, though used lately.",
        stats.tickets_evicted,
    )
}

/// Writes a family by room.
fn write_by_room(
    families: &mut Families<'_>,
    title: Title<'_>,
    counts: &BTreeMap<RoomName, u64>,
) -> fmt::Result {
    let samples = counts.iter();
    families.totals(
        title,
        samples.map(|(room, &count)| ([("room", room.as_str())], count)),
    )
}

fn write_reloads(families: &mut Families<'_>, stats: &ExtraStats) -> fmt::Result {
    families.totals(
        Title {
            name: "config_reloads",
            help: "Reloads of the config file, by outcome.",
        },
        [
            ([("outcome", "ok")], stats.reloads),
            ([("outcome", "failed")], stats.failed_reloads),
        ],
    )?;
    families.count(
        "config_rejected",
        "1 while the newest config file is not in force because it was rejected.",
        u64::from(stats.last_reload_error.is_some()),
    )
}

/// Writes a family by room and by a word from a short list.
fn write_words(
    families: &mut Families<'_>,
    title: Title<'_>,
    label: &'static str,
    counts: &BTreeMap<(RoomName, &'static str), u64>,
) -> fmt::Result {
    let labels = |room, word| [("room", room), (label, word)];
    let counts = counts.iter();
    families.totals(
        title,
        counts.map(|((room, word), &count)| (labels(room.as_str(), *word), count)),
    )
}
