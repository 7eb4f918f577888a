//! Charts in the manner of the article: the true count in grey, the algorithm's count dashed in
//! orange, the limit as a line.

use crate::chart::axis::{Axis, as_f64};
use crate::chart::line::{Line, LineChart};
use crate::chart::palette::{BLUE, GREEN, GREY, INK, Look, Mark, ORANGE, PURPLE};
use crate::chart::{Caption, Chart};
use anteroom_config::time_text::rfc3339_secs;
use anteroom_limit::policy::Policy;
use anteroom_limit::rate::Rate;
use anteroom_limit::settings::Setting;
use anteroom_limit::time::{DurationUs, TimestampUs};
use anteroom_room::time::Timestamp;

use crate::lab::estimate::{Counted, admitted, counted};
use crate::lab::outcome::Outcome;
use crate::lab::traffic::Traffic;

const TRUTH: Look = plain(GREY, Mark::None);
/// Looks of a limit: ink, without marks.
pub(crate) const LIMIT: Look = plain(INK, Mark::None);
/// Looks of a limit with another line on it.
pub(crate) const DASHED_LIMIT: Look = Look {
    is_dashed: true,
    ..LIMIT
};
const ESTIMATE: Look = Look {
    colour: ORANGE,
    mark: Mark::None,
    is_dashed: true,
};
/// Looks of four lines that differ without colours.
pub(crate) const LINES: [Look; 4] = [
    plain(BLUE, Mark::None),
    plain(ORANGE, Mark::Triangle),
    plain(GREEN, Mark::Dot),
    plain(PURPLE, Mark::Cross),
];

const fn plain(colour: crate::chart::palette::Colour, mark: Mark) -> Look {
    Look {
        colour,
        mark,
        is_dashed: false,
    }
}

/// Largest ratio of the peak to the limit at which the limit is still visible above the axis.
const TIMES_THE_LIMIT_MAX: u64 = 40;

/// Name of an algorithm with its settings, which distinguishes two runs.
pub(crate) struct Name {
    /// Name in a title: `sub-windows (4 of 15 s)`.
    pub(crate) title: String,
    /// Name in a file name: `sub-windows-4`.
    pub(crate) slug: String,
}

impl Name {
    pub(crate) fn of(word: &str, policy: &Policy) -> Self {
        let of_parts = |parts: u32| {
            let part = DurationUs(policy.rate().window().0 / u64::from(parts));
            (format!(" ({parts} of {part})"), format!("-{parts}"))
        };
        let of = |what, count: u32| (format!(" ({what} {count})"), format!("-{what}-{count}"));
        let named = policy
            .each_setting()
            .find_map(|(setting, value)| match setting {
                Setting::SubWindows => Some(of_parts(value)),
                Setting::Burst => Some(of("burst", value)),
                Setting::Queue => Some(of("queue", value)),
                Setting::InitialBurst => None,
            });
        let (title, slug) = named.unwrap_or_default();
        Self {
            title: format!("{word}{title}"),
            slug: format!("{word}{slug}"),
        }
    }
}

/// Reason why the counts of an algorithm have no chart.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub(crate) enum NotDrawn {
    /// The algorithm has no counts.
    #[error("the algorithm has no counts")]
    NoCounts,
    /// The limit would lie on the axis.
    #[error("up to {most} requests come per window, and the limit of {limit} would not be visible")]
    LimitUnseen { most: u64, limit: u64 },
}

/// Draws an algorithm's count of the busiest client's requests.
pub(crate) fn counts(
    slug: &str,
    word: &str,
    policy: &Policy,
    traffic: &Traffic,
) -> Result<Chart, NotDrawn> {
    let counted = counted(policy, traffic, traffic.busiest()).ok_or(NotDrawn::NoCounts)?;
    let (begin, _) = traffic.span;
    let line = |name: String, look, value: &dyn Fn(&Counted) -> u64| Line {
        name,
        look,
        points: counted
            .iter()
            .map(|one| (ms(begin, one.at), as_f64(value(one))))
            .collect(),
    };
    let most = counted.iter().map(|one| one.truth.max(one.estimate)).max();
    let (most, limit) = (most.unwrap_or(0), u64::from(policy.rate().requests()));
    if most > limit.max(1) * TIMES_THE_LIMIT_MAX {
        return Err(NotDrawn::LimitUnseen { most, limit });
    }
    let draft = Draft {
        file_name: format!("{slug}.svg"),
        title: format!(
            "{}: requests in the last {}",
            Name::of(word, policy).title,
            policy.rate().window()
        ),
        description: describe(&counted, policy.rate(), word),
        up_is: "requests".to_owned(),
    };
    let lines = vec![
        line("true count".to_owned(), TRUTH, &|one| one.truth),
        line(format!("{word} counts"), ESTIMATE, &|one| one.estimate),
    ];
    Ok(draft.draw(policy.rate(), traffic, lines, most))
}

/// Draws how many requests of the busiest client were allowed in the last window.
pub(crate) fn admissions(
    store: &str,
    name: &Name,
    rate: Rate,
    outcome: &Outcome,
    traffic: &Traffic,
) -> Chart {
    let client = traffic.busiest();
    let admitted = admitted(rate, &outcome.decisions, client, traffic.span);
    let most = admitted.iter().map(|(_, count)| *count).max().unwrap_or(0);
    let (begin, _) = traffic.span;
    let draft = Draft {
        file_name: format!("admitted-{store}-{}.svg", name.slug),
        title: format!(
            "{}, {store}: allowed in the last {}",
            name.title,
            rate.window()
        ),
        description: format!(
            "The limit is {}. The peak of allowed requests is {most}.",
            rate.requests()
        ),
        up_is: "requests".to_owned(),
    };
    let points = admitted
        .iter()
        .map(|(at, count)| (ms(begin, *at), as_f64(*count)));
    let line = Line {
        name: "allowed in the last window".to_owned(),
        look: LINES[0],
        points: points.collect(),
    };
    draft.draw(rate, traffic, vec![line], most)
}

struct Draft {
    file_name: String,
    title: String,
    description: String,
    up_is: String,
}

impl Draft {
    fn draw(self, rate: Rate, traffic: &Traffic, mut lines: Vec<Line>, most: u64) -> Chart {
        let (begin, end) = traffic.span;
        let length = end.since(begin).0 / 1_000;
        let limit = as_f64(u64::from(rate.requests()));
        lines.push(Line {
            name: format!("limit: {}", rate.requests()),
            look: LIMIT,
            points: vec![(0.0, limit), (as_f64(length), limit)],
        });
        LineChart {
            caption: Caption {
                file_name: self.file_name,
                title: self.title,
                description: self.description,
            },
            across: Axis::time(Timestamp(begin.0 / 1_000), length),
            across_is: "time of day (UTC)".to_owned(),
            up: Axis::count(as_f64(most).max(limit) * 1.05),
            up_is: self.up_is,
            lines,
        }
        .draw()
    }
}

/// Describes a chart for readers who cannot see it.
fn describe(counted: &[Counted], rate: Rate, word: &str) -> String {
    let limit = u64::from(rate.requests());
    let share = |is_so: &dyn Fn(&Counted) -> bool| {
        let count = counted.iter().filter(|one| is_so(one)).count();
        count * 100 / counted.len().max(1)
    };
    let over = share(&|one| one.truth >= limit);
    let seen = share(&|one| one.estimate >= limit);
    let low = counted
        .iter()
        .max_by_key(|one| one.truth.saturating_sub(one.estimate));
    let high = counted
        .iter()
        .max_by_key(|one| one.estimate.saturating_sub(one.truth));
    let clock = |at: TimestampUs| {
        let text = rfc3339_secs(Timestamp(at.0 / 1_000));
        text.get(11..19).unwrap_or_default().to_owned()
    };
    let off = |one: Option<&Counted>, how: &str| match one {
        Some(one) if one.truth != one.estimate => format!(
            "{how} by {} at {}",
            one.truth.abs_diff(one.estimate),
            clock(one.at)
        ),
        _ => format!("never {how}"),
    };
    format!(
        "The true count is at the limit of {limit} or above it {over} % of the time, the count of \
         {word} {seen} %. At most it is {}, and {}.",
        off(low.filter(|one| one.truth > one.estimate), "too low"),
        off(high.filter(|one| one.estimate > one.truth), "too high"),
    )
}

fn ms(begin: TimestampUs, at: TimestampUs) -> f64 {
    as_f64(at.since(begin).0) / 1_000.0
}
