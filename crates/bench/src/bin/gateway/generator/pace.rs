//! Paces at which the load generator sends.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use hdrhistogram::Histogram;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::connection::Connection;
use super::request::Prepared;

/// Time after the end in which the last responses may arrive.
const LAST_RESPONSES: Duration = Duration::from_secs(10);
/// Part of the requests that must have been sent at the end.
const SENT_MIN: f64 = 0.99;
/// Longest latency that the histogram tells apart.
const LATENCY_US_MAX: u64 = 60_000_000;

/// Pace of requests.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) enum Pace {
    /// Fixed number of requests per second.
    Rate {
        /// Requests per second.
        per_s: u64,
        /// Length of the burst.
        ms: u64,
    },
    /// Waves: all connections send, then all responses are read.
    Waves(u64),
}

/// Results of a burst of load.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Burst {
    pub(crate) requests: u64,
    /// Requests that were due until the end.
    pub(crate) due: u64,
    pub(crate) p50_us: u64,
    pub(crate) p99_us: u64,
}

impl Burst {
    /// Returns whether the proxy, or the generator, was too slow for the rate.
    pub(crate) fn is_saturated(&self) -> bool {
        (self.requests as f64) < self.due as f64 * SENT_MIN
    }
}

impl Pace {
    pub(crate) async fn run(
        self,
        connections: &mut Vec<Connection>,
        requests: &[Prepared],
    ) -> anyhow::Result<Burst> {
        match self {
            Self::Rate { per_s, ms } => {
                let schedule = Schedule::new(Instant::now(), per_s, Duration::from_millis(ms));
                at_rate(schedule, connections, requests).await
            }
            Self::Waves(count) => in_waves(count, connections, requests).await,
        }
    }
}

/// Points in time at which requests are due.
struct Schedule {
    began: Instant,
    end: Instant,
    per_s: u64,
    due: u64,
    /// Next request that a free connection takes.
    next: AtomicU64,
    sent: AtomicU64,
}

impl Schedule {
    fn new(began: Instant, per_s: u64, time: Duration) -> Self {
        let per_s = per_s.max(1);
        let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Self {
            began,
            end: began + time,
            per_s,
            due: per_s.saturating_mul(ms) / 1_000,
            next: AtomicU64::new(0),
            sent: AtomicU64::new(0),
        }
    }

    /// Takes the next request: its number and the time at which it is due.
    fn take(&self) -> Option<(u64, Instant)> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (seconds, rest) = (number / self.per_s, number % self.per_s);
        let due =
            Duration::from_secs(seconds) + Duration::from_nanos(rest * 1_000_000_000 / self.per_s);
        (number < self.due).then(|| (number, self.began + due))
    }
}

/// Sends each request on the connection that is free next.
///
/// The latency of a late request counts from the time at which it was due. A connection that waits
/// for a request wakes up to a millisecond late, as timers are no finer. This is no latency of the
/// proxy, so the latency counts from the time of sending then.
async fn at_rate(
    schedule: Schedule,
    connections: &mut Vec<Connection>,
    requests: &[Prepared],
) -> anyhow::Result<Burst> {
    let latency = Histogram::<u64>::new_with_max(LATENCY_US_MAX, 3)?;
    let shared = Arc::new((schedule, Mutex::new(latency), requests.to_vec()));
    let mut tasks = JoinSet::new();
    for mut connection in connections.drain(..) {
        let shared = Arc::clone(&shared);
        tasks.spawn(async move {
            let (schedule, latency, requests) = &*shared;
            while let Some((number, due)) = schedule.take() {
                let mut from = due;
                if Instant::now() < due {
                    sleep_until(due).await;
                    from = Instant::now();
                }
                if Instant::now() >= schedule.end {
                    break;
                }
                schedule.sent.fetch_add(1, Ordering::Relaxed);
                let number = usize::try_from(number)? % requests.len();
                connection.send(&requests[number]).await?;
                connection.receive().await?;
                let us = u64::try_from(from.elapsed().as_micros())?;
                latency.lock().saturating_record(us);
            }
            anyhow::Ok(connection)
        });
    }
    let last = shared.0.end + LAST_RESPONSES;
    while let Some(connection) = timeout_at(last, tasks.join_next())
        .await
        .context("the last responses did not arrive")?
    {
        connections.push(connection?.context("a request failed")?);
    }
    let (schedule, latency, _) = &*shared;
    let latency = latency.lock();
    Ok(Burst {
        requests: schedule.sent.load(Ordering::Relaxed),
        due: schedule.due,
        p50_us: latency.value_at_quantile(0.5),
        p99_us: latency.value_at_quantile(0.99),
    })
}

async fn in_waves(
    count: u64,
    connections: &mut [Connection],
    requests: &[Prepared],
) -> anyhow::Result<Burst> {
    let mut turn = requests.iter().cycle();
    for _ in 0..count {
        for connection in &mut *connections {
            let request = turn.next().context("there are requests")?;
            connection.send(request).await?;
        }
        for connection in &mut *connections {
            connection.receive().await?;
        }
    }
    let sent = count * u64::try_from(connections.len())?;
    Ok(Burst {
        requests: sent,
        due: sent,
        p50_us: 0,
        p99_us: 0,
    })
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;
    use crate::generator::Headers;
    use crate::generator::http1::Http1;

    #[tokio::test]
    async fn requests_are_due_at_equal_distances_until_the_end() {
        let began = Instant::now();
        let schedule = Schedule::new(began, 400, Duration::from_millis(10));
        let taken = std::iter::from_fn(|| schedule.take());
        let taken: Vec<_> = taken
            .map(|(number, due)| (number, (due - began).as_micros()))
            .collect();
        assert_eq!(taken, [(0, 0), (1, 2_500), (2, 5_000), (3, 7_500)]);
        let schedule = Schedule::new(began, 400, Duration::from_secs(3));
        schedule.next.store(401, Ordering::Relaxed);
        assert_eq!(
            schedule.take().unwrap().1,
            began + Duration::from_micros(1_002_500)
        );
    }

    /// Returns a connection whose other end responds after `delay`.
    fn connection(delay: Duration) -> Connection {
        let (near, mut far) = tokio::io::duplex(1_024);
        tokio::spawn(async move {
            let mut request = [0; 1_024];
            while far.read(&mut request).await.is_ok_and(|count| count > 0) {
                sleep_until(Instant::now() + delay).await; // tidy: paused time
                let response = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
                far.write_all(response).await.unwrap();
            }
        });
        Connection::Http1(Http1::new(Box::new(near)))
    }

    async fn burst(delay_ms: u64, pace: Pace) -> Burst {
        let delay = Duration::from_millis(delay_ms);
        let mut connections = vec![connection(delay), connection(delay)];
        let address = "127.0.0.1:1".parse().unwrap();
        let request = Prepared::new(address, "/", Headers::Lean, "").unwrap();
        let burst = pace.run(&mut connections, &[request]).await.unwrap();
        assert_eq!(connections.len(), 2);
        burst
    }

    #[tokio::test(start_paused = true)]
    async fn a_fast_proxy_gets_all_requests_on_time() {
        let pace = Pace::Rate {
            per_s: 100,
            ms: 1_000,
        };
        let burst = burst(10, pace).await;
        assert_eq!((burst.requests, burst.due), (100, 100));
        assert!(!burst.is_saturated());
        assert!((9_900..=11_100).contains(&burst.p99_us), "{burst:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn late_requests_to_a_slow_proxy_count_from_their_due_time() {
        let pace = Pace::Rate {
            per_s: 100,
            ms: 1_000,
        };
        let burst = burst(40, pace).await;
        assert!((48..=52).contains(&burst.requests), "{burst:?}");
        assert!(burst.is_saturated());
        assert!(burst.p99_us > 400_000, "{burst:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn each_wave_sends_on_every_connection() {
        assert_eq!(burst(1, Pace::Waves(5)).await.requests, 10);
    }
}
