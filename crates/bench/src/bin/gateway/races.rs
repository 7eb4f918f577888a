//! Races: every peer on every course, in turn and in rounds; the median counts.

use serde::Serialize;

use crate::generator::{Burst, Headers, Pace, Protocol};
use crate::load::{CONNECTIONS, Generator, Load};
use crate::peers::{Cast, Course, Peer, Stage};
use crate::visitors::cookies;

/// Visitors whose cookies are sent in turn.
const VISITORS: usize = 1_000;
/// Time before each measurement, to fill pools and caches.
const WARM_UP_MS: u64 = 500;
/// Connections of the race with many of them.
const MANY_CONNECTIONS: usize = 5_000;

/// Kind of requests that all peers get.
#[derive(Clone, Copy, Debug)]
struct Kind {
    name: &'static str,
    course: Course,
    protocol: Protocol,
    headers: Headers,
    connections: usize,
    /// Target of the processor time, relative to nginx.
    to_nginx_max: Option<f64>,
    /// Whether a gateway that logs each request takes part.
    with_access_log: bool,
}

/// The first race, which the others differ from.
const LEAN: Kind = Kind {
    name: "through, lean",
    course: Course::Through,
    protocol: Protocol::Http1,
    headers: Headers::Lean,
    connections: CONNECTIONS,
    to_nginx_max: Some(0.9),
    with_access_log: true,
};
/// Race without a target.
const OTHER: Kind = Kind {
    to_nginx_max: None,
    with_access_log: false,
    ..LEAN
};

const KINDS: [Kind; 7] = [
    LEAN,
    Kind {
        name: "through, browser",
        headers: Headers::Browser,
        ..OTHER
    },
    Kind {
        name: "through, 5,000 connections",
        connections: MANY_CONNECTIONS,
        ..OTHER
    },
    Kind {
        name: "through, TLS",
        protocol: Protocol::Tls,
        ..OTHER
    },
    Kind {
        name: "through, HTTP/2",
        protocol: Protocol::Http2,
        to_nginx_max: Some(1.1),
        ..OTHER
    },
    Kind {
        name: "page of a template",
        course: Course::Page,
        to_nginx_max: Some(1.0),
        ..OTHER
    },
    Kind {
        name: "own page",
        course: Course::OwnPage,
        ..OTHER
    },
];

/// Size of the measurement.
#[derive(Clone, Copy)]
pub(crate) struct Effort<'a> {
    pub(crate) rounds: usize,
    pub(crate) seconds: u64,
    /// Requests per second.
    pub(crate) rate: u64,
    /// Part of the names of the races to run.
    pub(crate) only: Option<&'a str>,
}

impl Effort<'_> {
    /// Returns whether a measurement with this name is chosen.
    pub(crate) fn includes(&self, name: &str) -> bool {
        self.only.is_none_or(|part| name.contains(part))
    }
}

/// Results of all peers in one race.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Race {
    pub(crate) name: &'static str,
    pub(crate) body_bytes: usize,
    pub(crate) connections: usize,
    pub(crate) to_nginx_max: Option<f64>,
    pub(crate) results: Vec<Result>,
}

/// Result of one peer: the median of its rounds, by processor time.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Result {
    pub(crate) name: String,
    #[serde(flatten)]
    pub(crate) burst: Burst,
    /// Whether requests of any round could not be sent.
    pub(crate) is_saturated: bool,
    /// Processor seconds of the proxy per million requests.
    pub(crate) cpu_s_per_million: f64,
    /// Least and greatest value of all rounds.
    pub(crate) cpu_range: (f64, f64),
    /// Resident memory after the race.
    pub(crate) resident_bytes: u64,
}

#[derive(Clone, Copy)]
struct Round {
    peer: usize,
    burst: Burst,
    cpu_s_per_million: f64,
    resident_bytes: u64,
}

/// Runs the chosen races: those without TLS, then those with it, as each has its own processes.
pub(crate) async fn run(cast: Cast<'_>, effort: Effort<'_>) -> anyhow::Result<Vec<Race>> {
    let mut races = Vec::new();
    for with_tls in [false, true] {
        let of_stage = KINDS.into_iter().filter(|kind| {
            (kind.protocol != Protocol::Http1) == with_tls && effort.includes(kind.name)
        });
        let kinds: Vec<Kind> = of_stage.collect();
        if kinds.is_empty() {
            continue;
        }
        let stage = Stage::start(Cast {
            with_tls,
            with_access_log: kinds.iter().any(|kind| kind.with_access_log),
            ..cast
        })
        .await?;
        for kind in kinds {
            races.push(race(&stage, &kind, effort).await?);
        }
    }
    races.sort_by_key(|race| KINDS.iter().position(|kind| kind.name == race.name));
    Ok(races)
}

async fn race(stage: &Stage, kind: &Kind, effort: Effort<'_>) -> anyhow::Result<Race> {
    let body_bytes = match kind.course {
        Course::Through => 1_024,
        Course::Page => stage.page_bytes[0],
        Course::OwnPage => stage.page_bytes[1],
    };
    let peers = stage.peers.iter();
    let peers: Vec<&Peer> = peers
        .filter(|peer| kind.with_access_log || !peer.name.ends_with("access log"))
        .collect();
    let mut cookies_of_peers = Vec::new();
    for peer in &peers {
        cookies_of_peers.push(cookies_for(peer, kind.course, cookies_of_peers.first()).await?);
    }
    let mut rounds = Vec::new();
    for round in 1..=effort.rounds {
        for (index, peer) in peers.iter().enumerate() {
            eprintln!(
                "{}: {} ({round} of {})",
                kind.name, peer.name, effort.rounds
            );
            let load = Load {
                address: peer.address,
                path: kind.course.path(),
                cookies: &cookies_of_peers[index],
                connections: kind.connections,
                protocol: kind.protocol,
                headers: kind.headers,
                certificate: peer.certificate.as_deref(),
            };
            rounds.push(measure(index, peer, &load, effort).await?);
        }
    }
    let names = peers.iter().map(|peer| peer.name.clone());
    Ok(Race {
        name: kind.name,
        body_bytes,
        connections: kind.connections,
        to_nginx_max: kind.to_nginx_max,
        results: results(names, &rounds),
    })
}

/// Returns the cookies of a peer's visitors. Peers without visitors get those of the first peer,
/// so that they read the same headers.
pub(crate) async fn cookies_for(
    peer: &Peer,
    course: Course,
    of_first: Option<&Vec<String>>,
) -> anyhow::Result<Vec<String>> {
    match (course, of_first) {
        // Visitors that get a page are new each time and have no cookie.
        (Course::Page | Course::OwnPage, _) => Ok(vec![String::new()]),
        (Course::Through, Some(first)) if !peer.is_gateway => Ok(first.clone()),
        (Course::Through, _) => cookies(peer, course.path(), VISITORS).await,
    }
}

async fn measure(
    index: usize,
    peer: &Peer,
    load: &Load<'_>,
    effort: Effort<'_>,
) -> anyhow::Result<Round> {
    let mut generator = Generator::start(load).await?;
    let pace = |ms| Pace::Rate {
        per_s: effort.rate,
        ms,
    };
    generator.send(pace(WARM_UP_MS)).await?;
    let before = peer.process.cpu_s()?;
    let burst = generator.send(pace(effort.seconds * 1_000)).await?;
    let used = peer.process.cpu_s()? - before;
    let resident_bytes = peer.process.resident_bytes()?;
    generator.end().await?;
    Ok(Round {
        peer: index,
        burst,
        cpu_s_per_million: used * 1e6 / burst.requests as f64,
        resident_bytes,
    })
}

fn results(names: impl Iterator<Item = String>, rounds: &[Round]) -> Vec<Result> {
    let of = |(index, name)| {
        let of_peer = rounds.iter().filter(|round| round.peer == index);
        let resident_bytes = of_peer.clone().next_back()?.resident_bytes;
        let mut of_peer: Vec<&Round> = of_peer.collect();
        of_peer.sort_by(|a, b| a.cpu_s_per_million.total_cmp(&b.cpu_s_per_million));
        let middle = of_peer.get(of_peer.len() / 2)?;
        let (least, most) = (of_peer.first()?, of_peer.last()?);
        Some(Result {
            name,
            burst: middle.burst,
            is_saturated: of_peer.iter().any(|round| round.burst.is_saturated()),
            cpu_s_per_million: middle.cpu_s_per_million,
            cpu_range: (least.cpu_s_per_million, most.cpu_s_per_million),
            resident_bytes,
        })
    };
    names.enumerate().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_peer_has_its_median_round() {
        let round = |peer, cpu_s_per_million, requests| Round {
            peer,
            burst: Burst {
                requests,
                due: 1_000,
                p50_us: 1,
                p99_us: 1,
            },
            cpu_s_per_million,
            resident_bytes: requests,
        };
        let rounds = [
            round(0, 3.0, 1_000),
            round(1, 9.0, 900),
            round(0, 1.0, 999),
            round(1, 8.0, 995),
            round(0, 2.0, 998),
            round(1, 7.0, 996),
        ];
        let results = results(["a", "b"].map(str::to_owned).into_iter(), &rounds);
        let short = results.iter().map(|result| {
            let name = result.name.as_str();
            let requests = result.burst.requests;
            (name, requests, result.cpu_range, result.is_saturated)
        });
        assert_eq!(
            short.collect::<Vec<_>>(),
            [("a", 998, (1.0, 3.0), false), ("b", 995, (7.0, 9.0), true)]
        );
        assert_eq!(results[1].resident_bytes, 996);
    }

    #[test]
    fn races_are_chosen_by_a_part_of_their_name() {
        let effort = Effort {
            rounds: 1,
            seconds: 1,
            rate: 1,
            only: Some("HTTP/2"),
        };
        let chosen = KINDS.iter().filter(|kind| effort.includes(kind.name));
        assert_eq!(chosen.count(), 1);
    }
}
