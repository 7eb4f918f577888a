//! Races: every peer on every course, in turn and in rounds; the median counts.

use std::time::Duration;

use serde::Serialize;

use crate::load::{Burst, Requests};
use crate::peers::{Course, Peer, Stage};

/// Visitors whose cookies are sent in turn.
const VISITORS: usize = 1_000;
/// Time before the measurement, to fill pools and caches.
const WARM_UP: Duration = Duration::from_secs(1);

/// Size of the measurement.
pub(crate) struct Effort {
    pub(crate) rounds: usize,
    pub(crate) time: Duration,
}

/// Results of all peers on one course.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Race {
    /// Kind of requests.
    pub(crate) course: &'static str,
    pub(crate) body_bytes: usize,
    pub(crate) results: Vec<Result>,
}

/// Result of one peer: the median of its rounds, by processor time.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Result {
    pub(crate) name: String,
    #[serde(flatten)]
    pub(crate) burst: Burst,
    /// Processor seconds of the proxy per million requests.
    pub(crate) cpu_s_per_million: f64,
    /// Least and greatest value of all rounds.
    pub(crate) cpu_range: (f64, f64),
}

#[derive(Clone, Copy)]
struct Round {
    peer: usize,
    burst: Burst,
    cpu_s_per_million: f64,
}

/// Runs all races.
pub(crate) async fn run(stage: &Stage, effort: &Effort) -> anyhow::Result<Vec<Race>> {
    let mut races = Vec::new();
    for course in Course::ALL {
        races.push(race(stage, course, effort).await?);
    }
    Ok(races)
}

async fn race(stage: &Stage, course: Course, effort: &Effort) -> anyhow::Result<Race> {
    let (name, body_bytes) = match course {
        Course::Through => ("active visitors, through to the origin", 1_024),
        Course::Page => ("newcomers, a template's waiting page", stage.page_bytes[0]),
        Course::OwnPage => ("newcomers, the gateway's own page", stage.page_bytes[1]),
    };
    let mut requests = Vec::new();
    let mut of_first = Vec::new();
    for peer in &stage.peers {
        // Visitors that get a page are new each time and have no cookie.
        let cookies = match (&peer.visitors, course) {
            (_, Course::Page | Course::OwnPage) => vec![String::new()],
            (Some(visitors), Course::Through) => visitors.cookies(course, VISITORS).await?,
            // Send the same headers, though these peers ignore them.
            (None, Course::Through) => of_first.clone(),
        };
        if of_first.is_empty() {
            of_first.clone_from(&cookies);
        }
        requests.push(Requests::with(&cookies)?);
    }
    let mut rounds = Vec::new();
    for round in 0..=effort.rounds {
        for (index, peer) in stage.peers.iter().enumerate() {
            if round == 0 {
                requests[index]
                    .send(peer.address, course.path(), WARM_UP)
                    .await?;
                continue;
            }
            eprintln!("{name}: {} ({round} of {})", peer.name, effort.rounds);
            rounds.push(measure(index, peer, &requests[index], course, effort.time).await?);
        }
    }
    let names = stage.peers.iter().map(|peer| peer.name.clone());
    Ok(Race {
        course: name,
        body_bytes,
        results: results(names, &rounds),
    })
}

async fn measure(
    index: usize,
    peer: &Peer,
    requests: &Requests,
    course: Course,
    time: Duration,
) -> anyhow::Result<Round> {
    let before = peer.process.cpu_s()?;
    let burst = requests.send(peer.address, course.path(), time).await?;
    let used = peer.process.cpu_s()? - before;
    Ok(Round {
        peer: index,
        burst,
        cpu_s_per_million: used * 1e6 / burst.requests as f64,
    })
}

fn results(names: impl Iterator<Item = String>, rounds: &[Round]) -> Vec<Result> {
    let of = |(index, name)| {
        let mut of_peer: Vec<&Round> = rounds.iter().filter(|round| round.peer == index).collect();
        of_peer.sort_by(|a, b| a.cpu_s_per_million.total_cmp(&b.cpu_s_per_million));
        let middle = of_peer.get(of_peer.len() / 2)?;
        let (least, most) = (of_peer.first()?, of_peer.last()?);
        Some(Result {
            name,
            burst: middle.burst,
            cpu_s_per_million: middle.cpu_s_per_million,
            cpu_range: (least.cpu_s_per_million, most.cpu_s_per_million),
        })
    };
    names.enumerate().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_peer_has_its_median_round() {
        let round = |peer, cpu_s_per_million| Round {
            peer,
            burst: Burst {
                requests: 1,
                per_s: cpu_s_per_million,
                p50_us: 1.0,
                p99_us: 1.0,
            },
            cpu_s_per_million,
        };
        let rounds = [
            round(0, 3.0),
            round(1, 9.0),
            round(0, 1.0),
            round(1, 8.0),
            round(0, 2.0),
            round(1, 7.0),
        ];
        let results = results(["a", "b"].map(str::to_owned).into_iter(), &rounds);
        let short = results
            .iter()
            .map(|result| (result.name.as_str(), result.burst.per_s, result.cpu_range));
        assert_eq!(
            short.collect::<Vec<_>>(),
            [("a", 2.0, (1.0, 3.0)), ("b", 8.0, (7.0, 9.0))]
        );
    }
}
