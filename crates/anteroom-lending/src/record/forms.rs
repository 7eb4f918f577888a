//! The structs that are written down, and the conversions to and from those of the algorithms. The order of fields and
//! of variants is the format.

use anteroom_limits::fine::FineMicros;
use anteroom_limits::fixed_window::{self, FixedWindow};
use anteroom_limits::gcra::{self, Gcra};
use anteroom_limits::lending::epoch::{Before, Epoch, EpochId, StoreIdentity};
use anteroom_limits::lending::record::Record;
use anteroom_limits::lending::widened::Lending;
use anteroom_limits::policy::{Policy, State};
use anteroom_limits::rate::Rate;
use anteroom_limits::sliding_log::{self, Entry, SlidingLog};
use anteroom_limits::sliding_window::{self, SlidingWindow};
use anteroom_limits::sub_windows::{self, PARTS_MOST, SubWindows};
use anteroom_limits::sub_windows_strict::SubWindowsStrict;
use anteroom_limits::time::{MicroSpan, Micros};
use anteroom_limits::token_bucket::{self, TokenBucket};
use serde::{Deserialize, Serialize};

#[derive(Deserialize, Serialize)]
pub(super) struct EpochForm {
    id: EpochIdForm,
    identity: u64,
    began_at: u64,
    before: BeforeForm,
}

#[derive(Deserialize, Serialize)]
struct EpochIdForm {
    number: u64,
    random: u64,
}

#[derive(Deserialize, Serialize)]
enum BeforeForm {
    Unknown,
    Lost,
    Nothing,
}

#[derive(Deserialize, Serialize)]
pub(super) struct RecordForm {
    epoch: EpochIdForm,
    as_of: u64,
    nothing_until: u64,
    ttl: u64,
    calls: u32,
    window: u64,
    policy: PolicyForm,
    state: StateForm,
}

/// What a limit has beside its rate. A leaky bucket cannot be lent.
#[derive(Deserialize, Serialize)]
enum PolicyForm {
    SlidingLog,
    FixedWindow,
    SlidingWindow,
    SubWindows { parts: u32 },
    SubWindowsStrict { parts: u32 },
    TokenBucket { capacity: u32, initial_burst: u32 },
    Gcra { burst: u32 },
}

#[derive(Deserialize, Serialize)]
enum StateForm {
    New,
    /// How long after the one before, from the oldest on; and how many.
    SlidingLog(Vec<(u64, u32)>),
    FixedWindow {
        starts_at: u64,
        count: u32,
    },
    SlidingWindow {
        starts_at: u64,
        counts: [u32; 2],
    },
    SubWindows {
        starts_at: u64,
        counts: Vec<u32>,
    },
    TokenBucket {
        counted_at: u64,
        part: u64,
        tokens: u32,
        is_known: bool,
    },
    Gcra {
        micros: u64,
        fraction: u32,
    },
}

impl From<EpochId> for EpochIdForm {
    fn from(id: EpochId) -> Self {
        let EpochId { number, random } = id;
        Self { number, random }
    }
}

impl EpochIdForm {
    fn read(self) -> EpochId {
        let Self { number, random } = self;
        EpochId { number, random }
    }
}

impl From<&Epoch> for EpochForm {
    fn from(epoch: &Epoch) -> Self {
        Self {
            id: epoch.id.into(),
            identity: epoch.identity.0,
            began_at: epoch.began_at.0,
            before: match epoch.before {
                Before::Unknown => BeforeForm::Unknown,
                Before::Lost => BeforeForm::Lost,
                Before::Nothing => BeforeForm::Nothing,
            },
        }
    }
}

impl EpochForm {
    pub(super) fn read(self) -> Epoch {
        Epoch {
            id: self.id.read(),
            identity: StoreIdentity(self.identity),
            began_at: Micros(self.began_at),
            before: match self.before {
                BeforeForm::Unknown => Before::Unknown,
                BeforeForm::Lost => Before::Lost,
                BeforeForm::Nothing => Before::Nothing,
            },
        }
    }
}

impl From<&Record> for RecordForm {
    fn from(record: &Record) -> Self {
        let promised = record.lent_by.promised();
        let rate = promised.rate();
        Self {
            epoch: record.epoch.into(),
            as_of: record.as_of.0,
            nothing_until: record.nothing_until.0,
            ttl: record.lent_by.ttl().0,
            calls: rate.calls(),
            window: rate.window().0,
            policy: PolicyForm::from(promised),
            state: StateForm::from(&record.state),
        }
    }
}

impl RecordForm {
    /// `None` if there is no such limit, or no such state.
    pub(super) fn read(self) -> Option<Record> {
        let rate = Rate::new(self.calls, MicroSpan(self.window)).ok()?;
        let promised = self.policy.read(rate)?;
        Some(Record {
            epoch: self.epoch.read(),
            as_of: Micros(self.as_of),
            nothing_until: Micros(self.nothing_until),
            lent_by: Lending::with_ttl(promised, MicroSpan(self.ttl)).ok()?,
            state: self.state.read()?,
        })
    }
}

impl From<&Policy> for PolicyForm {
    fn from(policy: &Policy) -> Self {
        match policy {
            Policy::SlidingLog(_) => Self::SlidingLog,
            Policy::SlidingWindow(_) => Self::SlidingWindow,
            Policy::SubWindows(sub) => Self::SubWindows { parts: sub.parts() },
            Policy::SubWindowsStrict(sub) => Self::SubWindowsStrict { parts: sub.parts() },
            Policy::TokenBucket(bucket) => Self::TokenBucket {
                capacity: bucket.capacity(),
                initial_burst: bucket.initial_burst(),
            },
            Policy::Gcra(gcra) => Self::Gcra {
                burst: gcra.burst(),
            },
            // There is no record of a leaky bucket, which cannot be lent.
            Policy::FixedWindow(_) | Policy::LeakyBucket(_) => Self::FixedWindow,
        }
    }
}

impl PolicyForm {
    fn read(self, rate: Rate) -> Option<Policy> {
        Some(match self {
            Self::SlidingLog => Policy::SlidingLog(SlidingLog::new(rate).ok()?),
            Self::FixedWindow => Policy::FixedWindow(FixedWindow::new(rate)),
            Self::SlidingWindow => Policy::SlidingWindow(SlidingWindow::new(rate)),
            Self::SubWindows { parts } => Policy::SubWindows(SubWindows::new(rate, parts).ok()?),
            Self::SubWindowsStrict { parts } => {
                Policy::SubWindowsStrict(SubWindowsStrict::new(rate, parts).ok()?)
            }
            Self::TokenBucket {
                capacity,
                initial_burst,
            } => Policy::TokenBucket(TokenBucket::new(rate, capacity, initial_burst).ok()?),
            Self::Gcra { burst } => Policy::Gcra(Gcra::new(rate, burst).ok()?),
        })
    }
}

impl From<&State> for StateForm {
    fn from(state: &State) -> Self {
        match state {
            // See the limit: there is no state of a leaky bucket either.
            State::New | State::LeakyBucket(_) => Self::New,
            State::SlidingLog(log) => {
                let mut before = Micros(0);
                let entries = log.entries().map(|entry| {
                    let after = entry.at.since(before).0;
                    before = entry.at;
                    (after, entry.calls)
                });
                Self::SlidingLog(entries.collect())
            }
            State::FixedWindow(fixed) => Self::FixedWindow {
                starts_at: fixed.starts_at.0,
                count: fixed.count,
            },
            State::SlidingWindow(sliding) => Self::SlidingWindow {
                starts_at: sliding.starts_at.0,
                counts: sliding.counts,
            },
            State::SubWindows(sub) => Self::SubWindows {
                starts_at: sub.starts_at().0,
                counts: sub.counts().to_vec(),
            },
            State::TokenBucket(bucket) => Self::TokenBucket {
                counted_at: bucket.counted_at.0,
                part: bucket.part,
                tokens: bucket.tokens,
                is_known: bucket.is_known,
            },
            State::Gcra(gcra) => Self::Gcra {
                micros: gcra.free_at.micros.0,
                fraction: gcra.free_at.fraction,
            },
        }
    }
}

impl StateForm {
    /// `None` if its times are none, or if it has more counters than any limit.
    fn read(self) -> Option<State> {
        Some(match self {
            Self::New => State::New,
            Self::SlidingLog(entries) => State::SlidingLog(Box::new(log(entries)?)),
            Self::FixedWindow { starts_at, count } => State::FixedWindow(fixed_window::State {
                starts_at: Micros(starts_at),
                count,
            }),
            Self::SlidingWindow { starts_at, counts } => {
                State::SlidingWindow(sliding_window::State {
                    starts_at: Micros(starts_at),
                    counts,
                })
            }
            Self::SubWindows { starts_at, counts } => {
                let most = usize::try_from(PARTS_MOST).ok()?.checked_add(1)?;
                let counts = (counts.len() <= most).then(|| counts.into_boxed_slice())?;
                State::SubWindows(sub_windows::State::from_counts(Micros(starts_at), counts))
            }
            Self::TokenBucket {
                counted_at,
                part,
                tokens,
                is_known,
            } => State::TokenBucket(token_bucket::State {
                counted_at: Micros(counted_at),
                part,
                tokens,
                is_known,
            }),
            Self::Gcra { micros, fraction } => State::Gcra(gcra::State {
                free_at: FineMicros {
                    micros: Micros(micros),
                    fraction,
                },
            }),
        })
    }
}

fn log(entries: Vec<(u64, u32)>) -> Option<sliding_log::State> {
    let mut at = Micros(0);
    let entries: Option<Vec<Entry>> = entries
        .into_iter()
        .map(|(after, calls)| {
            at = Micros(at.0.checked_add(after)?);
            Some(Entry { at, calls })
        })
        .collect();
    entries.map(sliding_log::State::from_entries)
}
