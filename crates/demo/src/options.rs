//! Flags of the demo, and the plan of its simulated visitors.

use std::time::Duration;

use anteroom_room::rules::Limits;
use anteroom_room::time::DurationMs;

use super::clock::whole_millis;
use super::layout::Layout;
use super::load::{LoadPlan, REQUESTS_AT_ONCE, REQUESTS_AT_ONCE_TO_SEVERAL};

/// Percentage of visitors who use another node for each request. Enough that every node receives
/// tickets of all others all the time; the rest come as through a load balancer.
pub(super) const WANDER_PERCENT: u32 = 25;

/// Flags of `anteroom demo`.
///
/// With the defaults the demo takes a minute: the seats are full after some ten seconds, turn over
/// several times, and the queue grows until the end.
#[derive(Clone, Debug, clap::Args)]
pub struct DemoOptions {
    /// Length of the demo, from 1s to 24h
    #[arg(
        long = "for",
        value_name = "DURATION",
        default_value = "60s",
        value_parser = parse_duration,
    )]
    pub run_for: Duration,

    /// Number of simulated visitors
    #[arg(
        long,
        value_name = "N",
        default_value_t = 600,
        value_parser = clap::value_parser!(u32).range(1..=100_000),
    )]
    pub visitors: u32,

    /// Limit of active visitors at once
    #[arg(
        long,
        value_name = "N",
        default_value_t = 50,
        value_parser = clap::value_parser!(u32).range(1..=2_147_483_647),
    )]
    pub total_active_users: u32,

    /// Limit of new visitors in a calendar minute
    #[arg(
        long,
        value_name = "N",
        default_value_t = 300,
        value_parser = clap::value_parser!(u32).range(1..=2_147_483_647),
    )]
    pub new_users_per_minute: u32,

    /// Length of a session after the visitor's last request, from 1s to 24h
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parse_duration)]
    pub session_duration: Duration,

    /// Nodes in each data center, from 1 to 10; several nodes share the limits through
    /// valkey-server or redis-server, which the demo starts and stops
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=10),
    )]
    pub nodes: u32,

    /// Data centers, from 1 to 5; with more than one, each has a store of its own, and there is a
    /// global store
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=5),
    )]
    pub data_centers: u32,

    /// Print one JSON object at the end, and nothing else, on standard output
    #[arg(long)]
    pub json: bool,
}

/// Error of a duration on the command line.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseDurationError {
    /// The text is not a number with a unit.
    #[error("not a duration; write it as 90s, 5m or 1h")]
    Unreadable,
    /// The duration is shorter than a second or longer than a day.
    #[error("not from 1s to 24h")]
    OutOfRange,
}

fn parse_duration(text: &str) -> Result<Duration, ParseDurationError> {
    let duration = humantime::parse_duration(text).map_err(|_| ParseDurationError::Unreadable)?;
    let range = Duration::from_secs(1)..=Duration::from_secs(86_400);
    if range.contains(&duration) {
        Ok(duration)
    } else {
        Err(ParseDurationError::OutOfRange)
    }
}

impl DemoOptions {
    /// Returns the limits of the room.
    #[must_use]
    pub const fn limits(&self) -> Limits {
        Limits {
            total_active_users: self.total_active_users,
            new_users_per_minute: self.new_users_per_minute,
        }
    }

    /// Returns the room's session duration.
    #[must_use]
    pub fn session(&self) -> DurationMs {
        DurationMs(whole_millis(self.session_duration))
    }

    /// Returns the numbers of nodes and data centers.
    #[must_use]
    pub const fn layout(&self) -> Layout {
        Layout {
            data_centers: self.data_centers,
            nodes_in_each: self.nodes,
        }
    }

    /// Returns a plan whose visitors arrive in the first three quarters of the demo, so that the
    /// last ones can still be admitted. They look at a page for a fraction of a session, so that
    /// their sessions do not end meanwhile.
    #[must_use]
    pub fn load_plan(&self) -> LoadPlan {
        let think_longest = (self.session_duration / 4).min(Duration::from_secs(3));
        LoadPlan {
            visitors: self.visitors,
            arrive_over: self.run_for.mul_f64(0.75),
            pages: 2..=6,
            think: think_longest / 4..=think_longest,
            impatient_percent: 15,
            leaves_after: self.run_for / 6..=self.run_for,
            buy_percent: 40,
            log_out_percent: 50,
            wander_percent: WANDER_PERCENT,
            first_poll_after: Duration::from_secs(1),
            response_timeout: Duration::from_secs(15),
            retry_pause: Duration::from_millis(500),
            requests_at_once: if self.layout().is_alone() {
                REQUESTS_AT_ONCE
            } else {
                REQUESTS_AT_ONCE_TO_SEVERAL
            },
            seed: 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        options: DemoOptions,
    }

    #[test]
    fn the_default_demo_takes_a_minute_and_exceeds_its_limits() {
        let options = Command::parse_from(["demo"]).options;
        assert_eq!(options.run_for, Duration::from_secs(60));
        assert_eq!(options.session(), DurationMs::from_secs(10));
        assert!(options.visitors > options.total_active_users);
        let plan = options.load_plan();
        assert!(*plan.think.end() < options.session_duration);
        assert!(options.layout().is_alone());
        assert_eq!(plan.requests_at_once, REQUESTS_AT_ONCE);
    }

    #[test]
    fn nodes_are_counted_in_each_data_center() {
        let several = ["demo", "--nodes", "3", "--data-centers", "2"];
        let options = Command::parse_from(several).options;
        assert_eq!(options.layout().nodes(), 6);
        let plan = options.load_plan();
        assert_eq!(plan.requests_at_once, REQUESTS_AT_ONCE_TO_SEVERAL);
        for (flag, value) in [
            ("--nodes", "0"),
            ("--nodes", "11"),
            ("--data-centers", "0"),
            ("--data-centers", "6"),
        ] {
            let is_rejected = Command::try_parse_from(["demo", flag, value]).is_err();
            assert!(is_rejected, "{flag} {value}");
        }
    }

    #[test]
    fn durations_have_a_unit_and_a_range() {
        for (text, outcome) in [
            ("1s", Ok(1)),
            ("1m 30s", Ok(90)),
            ("24h", Ok(86_400)),
            ("60", Err(ParseDurationError::Unreadable)),
            ("", Err(ParseDurationError::Unreadable)),
            ("999ms", Err(ParseDurationError::OutOfRange)),
            ("25h", Err(ParseDurationError::OutOfRange)),
        ] {
            assert_eq!(
                parse_duration(text),
                outcome.map(Duration::from_secs),
                "{text}"
            );
        }
    }

    #[test]
    fn a_limit_of_zero_is_rejected() {
        for flag in [
            "--visitors",
            "--total-active-users",
            "--new-users-per-minute",
        ] {
            assert!(
                Command::try_parse_from(["demo", flag, "0"]).is_err(),
                "{flag}"
            );
        }
    }
}
