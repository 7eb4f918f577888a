//! Frame of a measurement that runs cases and prints a row for each.

use std::process::ExitCode;

use anteroom_demo::checker::Verdict;

/// Chooses the cases with one of these parts in their name; without parts, all. Lists them instead
/// if that is wanted.
///
/// # Errors
///
/// The exit code, if nothing is to be run.
#[expect(clippy::print_stdout, reason = "the tools print")]
pub fn selected<C>(
    all: Vec<C>,
    name: impl Fn(&C) -> String,
    parts: &[String],
    is_list: bool,
) -> Result<Vec<C>, ExitCode> {
    let is_selected = |case: &C| {
        let name = name(case);
        parts.is_empty() || parts.iter().any(|part| name.contains(part.as_str()))
    };
    let cases: Vec<C> = all.into_iter().filter(is_selected).collect();
    if cases.is_empty() {
        eprintln!("error: no case has {parts:?} in its name; --list lists all");
        return Err(ExitCode::FAILURE);
    }
    if is_list {
        for case in &cases {
            println!("{}", name(case));
        }
        return Err(ExitCode::SUCCESS);
    }
    Ok(cases)
}

/// Prints the row of a case as soon as it is known. Beside JSON it is a message.
#[expect(clippy::print_stdout, reason = "the tools print")]
pub fn print_row(row: &str, is_json: bool) {
    if is_json {
        eprintln!("{row}");
    } else {
        println!("{row}");
    }
}

/// Reports the cases that exceeded a limit, and returns the exit code.
pub fn exit_code<'a>(verdicts: impl Iterator<Item = (String, &'a Verdict)>) -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    for (name, verdict) in verdicts.filter(|(_, verdict)| !are_limits_kept(verdict)) {
        eprintln!("error: a limit was exceeded in {name}: {verdict:?}");
        code = ExitCode::FAILURE;
    }
    code
}

/// Whether the limits held, as the origin counts. Late requests have a column of their own.
#[must_use]
pub const fn are_limits_kept(verdict: &Verdict) -> bool {
    !verdict.is_over_total_active_users() && !verdict.is_over_new_users_per_minute()
}
