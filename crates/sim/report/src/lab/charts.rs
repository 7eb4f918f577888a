//! The charts, in the manner of the article: the true count in grey, what the algorithm counts
//! dashed in orange, the limit as a line.

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
/// A limit: ink, without marks.
pub(crate) const LIMIT: Look = plain(INK, Mark::None);
/// A limit on which another line lies.
pub(crate) const DASHED_LIMIT: Look = Look {
    is_dashed: true,
    ..LIMIT
};
const ESTIMATE: Look = Look {
    colour: ORANGE,
    mark: Mark::None,
    is_dashed: true,
};
/// Four lines that are told apart without colours, too.
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

/// Above so many times the limit its line cannot be told from the axis.
const TIMES_THE_LIMIT_MAX: u64 = 40;

/// How an algorithm with its settings is called, so that two runs are told apart.
pub(crate) struct Name {
    /// In a title: `sub-windows (4 of 15 s)`.
    pub(crate) title: String,
    /// In the name of a file: `sub-windows-4`.
    pub(crate) slug: String,
}

impl Name {
    pub(crate) fn of(word: &str, policy: &Policy) -> Self {
        let of_parts = |parts: u32| {
            let part = DurationUs(policy.rate().window().0 / u64::from(parts));
            (format!(" ({parts} of {part})"), format!("-{parts}"))
        };
        let of = |what, calls: u32| (format!(" ({what} {calls})"), format!("-{what}-{calls}"));
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

/// Why there is no chart of what an algorithm counts.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub(crate) enum NotDrawn {
    /// It keeps something else.
    #[error("it does not keep counts")]
    NoCounts,
    /// The limit would lie on the axis.
    #[error("up to {most} calls come in the time of {limit}, and the limit would not be seen")]
    LimitUnseen { most: u64, limit: u64 },
}

/// What an algorithm counts of the busiest client's calls, of all that come.
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
    let (most, limit) = (most.unwrap_or(0), u64::from(policy.rate().calls()));
    if most > limit.max(1) * TIMES_THE_LIMIT_MAX {
        return Err(NotDrawn::LimitUnseen { most, limit });
    }
    let figure = Figure {
        file_name: format!("{slug}.svg"),
        title: format!(
            "{}: calls in the last {}",
            Name::of(word, policy).title,
            policy.rate().window()
        ),
        description: describe(&counted, policy.rate(), word),
        up_is: "calls".to_owned(),
    };
    let lines = vec![
        line("true count".to_owned(), TRUTH, &|one| one.truth),
        line(format!("{word} counts"), ESTIMATE, &|one| one.estimate),
    ];
    Ok(figure.draw(policy.rate(), traffic, lines, most))
}

/// How much of the busiest client was admitted in the last window.
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
    let figure = Figure {
        file_name: format!("admitted-{store}-{}.svg", name.slug),
        title: format!(
            "{}, {store}: admitted in the last {}",
            name.title,
            rate.window()
        ),
        description: format!(
            "The limit is {}. At its highest the count of admitted calls is {most}.",
            rate.calls()
        ),
        up_is: "calls".to_owned(),
    };
    let points = admitted
        .iter()
        .map(|(at, count)| (ms(begin, *at), as_f64(*count)));
    let line = Line {
        name: "admitted in the last window".to_owned(),
        look: LINES[0],
        points: points.collect(),
    };
    figure.draw(rate, traffic, vec![line], most)
}

struct Figure {
    file_name: String,
    title: String,
    description: String,
    up_is: String,
}

impl Figure {
    fn draw(self, rate: Rate, traffic: &Traffic, mut lines: Vec<Line>, most: u64) -> Chart {
        let (begin, end) = traffic.span;
        let length = end.since(begin).0 / 1_000;
        let limit = as_f64(u64::from(rate.calls()));
        lines.push(Line {
            name: format!("limit: {}", rate.calls()),
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

/// What there is to see, for those who cannot see it.
fn describe(counted: &[Counted], rate: Rate, word: &str) -> String {
    let limit = u64::from(rate.calls());
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
