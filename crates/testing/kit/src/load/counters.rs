//! Counts of a load.

use std::collections::BTreeMap;
use std::fmt;

use anteroom_room::time::DurationMs;
use http::StatusCode;

/// Most findings of a kind that are kept: the first ones matter most.
const FINDINGS_MAX: usize = 40;

/// Counts over all visitors.
#[derive(Clone, Debug, Default)]
pub struct VisitorCounts {
    /// Visitors who were admitted.
    pub entered: u64,
    /// Pages of the origin.
    pub pages: u64,
    /// Waiting visitors at present: their last response was a waiting page.
    pub waiting: usize,
    /// Waiting pages, by the reason that the node gives.
    pub queued: BTreeMap<String, u64>,
    /// Visitors who were queued with a valid ticket: each one violates I3.
    pub queued_with_ticket: u64,
    /// First visitors who were queued with a valid ticket.
    pub queued_with_ticket_first: Vec<String>,
    /// Visitors whose seat was not renewed although they came again soon enough. Allowed only while
    /// a node or a store is unreachable.
    pub ran_out: u64,
    /// First visitors whose seat was not renewed.
    pub ran_out_first: Vec<String>,
    /// Requests without a response.
    pub unanswered: u64,
    /// Responses other than pages and waiting pages, by status.
    pub failed: BTreeMap<StatusCode, u64>,
    /// Old tickets that were sent: of running sessions, and of ended ones.
    pub replayed: (u64, u64),
    /// Tickets that passed after their session had been ended, and the longest time between.
    pub passed_after_logout: (u64, u64),
    /// First tickets that passed after a logout.
    pub passed_after_logout_first: Vec<String>,
    /// Visitors who logged out.
    pub logged_out: u64,
}

impl VisitorCounts {
    pub(super) fn throws_out(&mut self, finding: impl FnOnce() -> String) {
        self.queued_with_ticket += 1;
        if self.queued_with_ticket_first.len() < FINDINGS_MAX {
            self.queued_with_ticket_first.push(finding());
        }
    }

    pub(super) fn runs_out(&mut self, finding: impl FnOnce() -> String) {
        self.ran_out += 1;
        if self.ran_out_first.len() < FINDINGS_MAX {
            self.ran_out_first.push(finding());
        }
    }

    pub(super) fn passes_after_logout(
        &mut self,
        since: DurationMs,
        ended_at: &str,
        passed_at: &str,
    ) {
        let (count, longest) = &mut self.passed_after_logout;
        *count += 1;
        *longest = since.0.max(*longest);
        if self.passed_after_logout_first.len() < FINDINGS_MAX {
            let finding = format!("ended at {ended_at}, {} ms later at {passed_at}", since.0);
            self.passed_after_logout_first.push(finding);
        }
    }

    /// Returns the sum of two loads.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.entered += other.entered;
        self.pages += other.pages;
        self.waiting += other.waiting;
        for (reason, count) in other.queued {
            *self.queued.entry(reason).or_default() += count;
        }
        self.queued_with_ticket += other.queued_with_ticket;
        self.queued_with_ticket_first
            .extend(other.queued_with_ticket_first);
        self.ran_out += other.ran_out;
        self.ran_out_first.extend(other.ran_out_first);
        self.unanswered += other.unanswered;
        for (status, count) in other.failed {
            *self.failed.entry(status).or_default() += count;
        }
        self.replayed.0 += other.replayed.0;
        self.replayed.1 += other.replayed.1;
        self.passed_after_logout.0 += other.passed_after_logout.0;
        self.passed_after_logout.1 = self.passed_after_logout.1.max(other.passed_after_logout.1);
        self.passed_after_logout_first
            .extend(other.passed_after_logout_first);
        self.logged_out += other.logged_out;
        self
    }
}

impl fmt::Display for VisitorCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "visitors: {} entered, {} pages, queued {:?}, {} thrown out, {} ran out, {} logged out",
            self.entered,
            self.pages,
            self.queued,
            self.queued_with_ticket,
            self.ran_out,
            self.logged_out,
        )?;
        write!(
            f,
            "visitors: {} unanswered, failed {:?}, {} + {} old tickets sent, {} of ended sessions \
             passed (up to {} ms later)",
            self.unanswered,
            self.failed,
            self.replayed.0,
            self.replayed.1,
            self.passed_after_logout.0,
            self.passed_after_logout.1,
        )?;
        for line in &self.queued_with_ticket_first {
            write!(f, "\nthrown out: {line}")?;
        }
        for line in &self.ran_out_first {
            write!(f, "\nran out: {line}")?;
        }
        for line in &self.passed_after_logout_first {
            write!(f, "\npassed: {line}")?;
        }
        Ok(())
    }
}
