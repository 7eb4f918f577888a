//! Log of a run as a file, for questions that the table does not answer.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anteroom_testkit::load::{NodeAt, RequestOutcome};

use super::run::Outcome;

/// Writes one line for each response to a visitor who is not admitted yet. Times are seconds since
/// the start; `low`, `middle` and `high` are points in time as well.
///
/// # Errors
///
/// If the file cannot be written.
pub fn write(folder: &Path, outcome: &Outcome) -> std::io::Result<()> {
    let mut text =
        String::from("visitor,node,heard,outcome,moves,position,low,middle,high,reason\n");
    for (visitor, visit) in outcome.log.visits.iter().enumerate() {
        let NodeAt(_, node) = visit.at;
        for (at, outcome) in visit.exchanges.iter().filter_map(|one| one.response) {
            let (name, notice) = match outcome {
                RequestOutcome::Admitted => ("admitted", None),
                RequestOutcome::Queued(notice) => ("waits", Some(notice)),
                RequestOutcome::Failed => ("failed", None),
            };
            let notice = notice.unwrap_or_default();
            let end =
                |time: Option<Duration>| time.map_or_else(String::new, |time| seconds(at + time));
            let position = notice.position.map(|position| position.to_string());
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "{visitor},{node},{},{name},{},{},{},{},{},{}",
                seconds(at),
                notice.is_moving,
                position.unwrap_or_default(),
                end(notice.wait.map(|wait| wait.low)),
                end(notice.wait.map(|wait| wait.middle)),
                end(notice.wait.map(|wait| wait.high)),
                notice.has_reason,
            );
        }
    }
    fs::create_dir_all(folder)?;
    fs::write(folder.join(format!("{}.csv", outcome.case.name())), text)
}

fn seconds(at: Duration) -> String {
    format!("{:.1}", at.as_secs_f64())
}
