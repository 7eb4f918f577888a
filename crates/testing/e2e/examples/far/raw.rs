//! The log of a case as a file, for questions that the table does not answer.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anteroom_testkit::load::{NewcomerLog, NodeAt, RequestOutcome};

use crate::cases::Case;

/// Writes one line for each request of a visitor who is not admitted yet. Times are milliseconds
/// since the start.
///
/// # Errors
///
/// If the file cannot be written.
pub(crate) fn write(folder: &Path, case: &Case, log: &NewcomerLog) -> std::io::Result<()> {
    let mut text = String::from("visitor,node,due,sent,heard,outcome,ahead,seat_ends\n");
    for (visitor, visit) in log.visits.iter().enumerate() {
        let NodeAt(data_center, node) = visit.at;
        let due = millis(Some(visit.due_at));
        let seat_ends = millis(visit.seat_ends_at);
        for exchange in &visit.exchanges {
            let sent = millis(Some(exchange.sent_at));
            let heard = millis(exchange.response.map(|(at, _)| at));
            let (outcome, ahead) = match exchange.response {
                Some((_, RequestOutcome::Admitted)) => ("admitted", None),
                Some((_, RequestOutcome::Queued(notice))) => ("waits", notice.people_ahead),
                Some((_, RequestOutcome::Failed)) => ("failed", None),
                None => ("nothing", None),
            };
            let ahead = ahead.map_or_else(String::new, |ahead| ahead.to_string());
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "{visitor},{data_center}-{node},{due},{sent},{heard},{outcome},{ahead},{seat_ends}"
            );
        }
    }
    fs::create_dir_all(folder)?;
    let name = format!("{}.csv", case.name().replace('/', "-"));
    fs::write(folder.join(name), text)
}

fn millis(at: Option<Duration>) -> String {
    at.map_or_else(String::new, |at| {
        format!("{:.1}", at.as_secs_f64() * 1_000.0)
    })
}
