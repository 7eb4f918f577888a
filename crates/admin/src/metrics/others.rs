//! What do the figures of the rest of the program mean?

use std::collections::BTreeMap;
use std::fmt;

use anteroom_config::RoomName;

use super::writer::{Families, Title};
use super::{limits, origins, rate_limits};
use crate::extras::{ConnectionFigures, ExtraFigures};

/// Writes all families of the rest of the program.
pub(super) fn write(families: &mut Families<'_>, figures: &ExtraFigures) -> fmt::Result {
    write_occupancy(families, &figures.connections)?;
    families.total(
        "accept_pauses",
        "How often accepting paused until connections had ended that were told to.",
        figures.accept_pauses,
    )?;
    families.total(
        "accept_failures",
        "How often accepting failed, most likely with too many files open.",
        figures.accept_failures,
    )?;
    write_connections(families, figures)?;
    families.total(
        "journal_rewritten",
        "How often the journal was written anew from memory because it had gone.",
        figures.journal_rewrites,
    )?;
    write_reloads(families, figures)?;
    write_by_room(
        families,
        Title {
            name: "bypass_failures",
            help: "Bypass rules that could not be worked out for a request.",
        },
        &figures.bypass_failures,
    )?;
    write_shared_tickets(families, figures)?;
    write_words(
        families,
        Title {
            name: "origin_outcomes",
            help: "Requests that went to the origin, by what became of them.",
        },
        "class",
        &figures.origin_outcomes,
    )?;
    origins::write(families, figures)?;
    write_words(
        families,
        Title {
            name: "verdicts",
            help: "Requests by what was said to them.",
        },
        "verdict",
        &figures.verdicts,
    )?;
    limits::write(families, figures)?;
    rate_limits::write(families, figures.rate_limits.as_ref())
}

fn write_occupancy(families: &mut Families<'_>, figures: &ConnectionFigures) -> fmt::Result {
    families.count(
        "connections_open",
        "Connections of visitors that are open.",
        figures.open,
    )?;
    families.count(
        "connections_with_ticket",
        "Connections of visitors that are open and whose newest request passed by a ticket.",
        figures.with_ticket,
    )?;
    families.count(
        "connections_limit",
        "Connections of visitors that there may be.",
        figures.limit,
    )?;
    let reclaimed = figures.reclaimed.iter();
    families.totals(
        Title {
            name: "connections_reclaimed",
            help: "Idle connections of visitors that were ended to make room, by why.",
        },
        reclaimed.map(|(word, &count)| ([("reason", *word)], count)),
    )?;
    let turned_away = figures.turned_away.iter();
    families.totals(
        Title {
            name: "connections_turned_away",
            help: "Connections of visitors that got nothing but a refusal, by why.",
        },
        turned_away.map(|(word, &count)| ([("reason", *word)], count)),
    )
}

fn write_connections(families: &mut Families<'_>, figures: &ExtraFigures) -> fmt::Result {
    let broken = figures.connections_broken_off.iter();
    families.totals(
        Title {
            name: "connections_broken_off",
            help: "Connections of visitors that were broken off, by why.",
        },
        broken.map(|(word, &count)| ([("reason", *word)], count)),
    )?;
    families.total(
        "tls_handshakes_failed",
        "TLS handshakes of visitors that failed, and connections that were no TLS.",
        figures.handshakes_failed,
    )?;
    let Some(expires_at) = figures.certificate_expires_at else {
        return Ok(());
    };
    families.seconds(
        "tls_certificate_expires_at",
        "Until when the TLS certificate in force is good, in seconds since 1970.",
        // Exact for some hundred million years.
        expires_at as f64,
    )
}

fn write_shared_tickets(families: &mut Families<'_>, figures: &ExtraFigures) -> fmt::Result {
    write_by_room(
        families,
        Title {
            name: "shared_tickets",
            help: "Tickets used from more addresses at this node than one person has.",
        },
        &figures.shared_tickets,
    )?;
    write_by_room(
        families,
        Title {
            name: "shared_ticket_requests",
            help: "Requests above max_addresses_per_ticket, treated as those of new visitors.",
        },
        &figures.shared_ticket_requests,
    )?;
    families.total(
        "ticket_addresses_evicted",
        "Tickets whose addresses were forgotten for want of space, though used lately.",
        figures.tickets_evicted,
    )
}

/// A family by room.
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

fn write_reloads(families: &mut Families<'_>, figures: &ExtraFigures) -> fmt::Result {
    families.totals(
        Title {
            name: "config_reloads",
            help: "Config files that were read again, by whether they were taken.",
        },
        [
            ([("outcome", "ok")], figures.reloads),
            ([("outcome", "failed")], figures.failed_reloads),
        ],
    )?;
    families.count(
        "config_refused",
        "1 while the newest config file is not the one that holds, because it was refused.",
        u64::from(figures.last_reload_error.is_some()),
    )
}

/// A family by room and by a word from a short list.
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
