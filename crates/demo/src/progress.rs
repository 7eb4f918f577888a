//! Progress of a demo: one live line on a terminal, a new line every few seconds elsewhere.

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// Time between two updates. Faster ones cannot be read, slower ones look stuck.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Time between two lines without a terminal: a demo of a minute prints a dozen.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Stats of a running demo.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProgressStats {
    /// Time since the start.
    pub(super) elapsed: Duration,
    /// Active visitors, as the origin counts them.
    pub(super) inside: usize,
    /// Limit of active visitors.
    pub(super) total_active_users: u32,
    /// Waiting visitors, as the gateway counts them.
    pub(super) waiting: u32,
    /// Admissions, as the gateway counts them.
    pub(super) admitted: u64,
    /// Wait of the visitor who was admitted last.
    pub(super) last_wait: Option<Duration>,
}

/// Form in which progress is shown.
#[derive(Debug)]
pub(super) enum Progress {
    /// One line on standard error that is redrawn.
    Live(ProgressBar),
    /// Lines on the output, the next one at this time since the start.
    Lines(Duration),
    /// Progress is not shown.
    Hidden,
}

impl Progress {
    /// Chooses by the terminal, if there is one. With `is_json`, standard output stays empty.
    pub(super) fn choose(is_json: bool) -> Self {
        let can_draw = io::stderr().is_terminal();
        match (is_json, can_draw && io::stdout().is_terminal()) {
            (true, _) if can_draw => Self::Live(live_line()),
            (true, _) => Self::Hidden,
            (false, true) => Self::Live(live_line()),
            (false, false) => Self::lines(),
        }
    }

    /// Creates progress as lines.
    pub(super) const fn lines() -> Self {
        Self::Lines(LINE_EVERY)
    }

    /// Shows the stats, if it is time to.
    ///
    /// # Errors
    ///
    /// If the output cannot be written.
    pub(super) fn show(&mut self, stats: &ProgressStats, out: &mut impl Write) -> io::Result<()> {
        match self {
            Self::Live(line) => {
                line.set_length(u64::from(stats.total_active_users));
                line.set_position(stats.inside.try_into().unwrap_or(u64::MAX));
                line.set_message(stats.to_string());
                Ok(())
            }
            Self::Lines(next_at) => {
                if stats.elapsed < *next_at {
                    return Ok(());
                }
                *next_at += LINE_EVERY;
                writeln!(out, "{:>4} s: {stats}", stats.elapsed.as_secs())?;
                out.flush()
            }
            Self::Hidden => Ok(()),
        }
    }

    /// Removes the live line.
    pub(super) fn finish(self) {
        if let Self::Live(line) = self {
            line.finish_and_clear();
        }
    }
}

fn live_line() -> ProgressBar {
    let style = ProgressStyle::with_template("{elapsed:>4} [{bar:20}] {wide_msg}")
        .expect("the template is a constant, and a test reads it")
        .progress_chars("=> ");
    ProgressBar::new(0).with_style(style)
}

impl fmt::Display for ProgressStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            inside,
            total_active_users,
            waiting,
            admitted,
            ..
        } = self;
        write!(
            f,
            "{inside} of {total_active_users} inside, {waiting} waiting, {admitted} admitted"
        )?;
        match self.last_wait {
            Some(wait) => write!(f, ", last wait {:.1} s", wait.as_secs_f64()),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stats(secs: u64) -> ProgressStats {
        ProgressStats {
            elapsed: Duration::from_secs(secs),
            inside: 47,
            total_active_users: 50,
            waiting: 120,
            admitted: 99,
            last_wait: Some(Duration::from_millis(12_340)),
        }
    }

    #[test]
    fn lines_come_every_five_seconds() {
        let mut progress = Progress::lines();
        let mut out = Vec::new();
        for secs in [1, 4, 5, 6, 9, 10] {
            progress.show(&stats(secs), &mut out).unwrap();
        }
        let expected = "\u{20}  5 s: 47 of 50 inside, 120 waiting, 99 admitted, last wait 12.3 s
  10 s: 47 of 50 inside, 120 waiting, 99 admitted, last wait 12.3 s\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn the_live_line_leaves_the_output_alone() {
        let mut progress = Progress::Live(live_line());
        let mut out = Vec::new();
        progress.show(&stats(5), &mut out).unwrap();
        progress.finish();
        assert!(out.is_empty());
    }
}
