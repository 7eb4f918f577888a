//! Store that keeps two records, has a clock and an identity, and may lose what it has.

use anteroom_limit::leases::epoch::{Epoch, StoreIdentity};
use anteroom_limit::leases::message::LeaseReply;
use anteroom_limit::leases::parent::Write;
use anteroom_limit::leases::record::Record;
use anteroom_limit::time::TimestampUs;

use crate::leases::mutations::Mutation;

/// Record and its version.
#[derive(Clone, Debug)]
pub(crate) struct Kept<T> {
    pub(crate) version: u64,
    pub(crate) value: T,
}

#[derive(Clone, Debug, Default)]
struct Memory {
    epoch: Option<Kept<Epoch>>,
    client: Option<Kept<Record>>,
    forget_at: u64,
}

pub(crate) struct Store {
    identity: u64,
    /// Lead of its clock, in us.
    step: i64,
    memory: Memory,
    /// Memory after each write, for a replica that lags.
    past: Vec<(u64, Memory)>,
    versions: u64,
    mutation: Option<Mutation>,
}

#[derive(Clone, Debug)]
pub(crate) enum Message {
    Load,
    SwapEpoch {
        expected: Expected,
        epoch: Epoch,
    },
    Swap {
        expected: Expected,
        write: Box<Write>,
        reply: LeaseReply,
    },
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected {
    version: u64,
    identity: StoreIdentity,
}

#[derive(Clone, Debug)]
pub(crate) enum Reply {
    Loaded(Box<Loaded>),
    Swapped(LeaseReply),
}

#[derive(Clone, Debug)]
pub(crate) struct Loaded {
    pub(crate) epoch: Option<Kept<Epoch>>,
    pub(crate) client: Option<Kept<Record>>,
    pub(crate) now: TimestampUs,
    pub(crate) identity: StoreIdentity,
}

fn version<T>(kept: Option<&Kept<T>>) -> u64 {
    kept.map_or(0, |kept| kept.version)
}

impl Loaded {
    pub(crate) fn expected_epoch(&self) -> Expected {
        Expected {
            version: version(self.epoch.as_ref()),
            identity: self.identity,
        }
    }

    pub(crate) fn expected_client(&self) -> Expected {
        Expected {
            version: version(self.client.as_ref()),
            identity: self.identity,
        }
    }
}

impl Store {
    pub(crate) fn new(epoch: Option<Epoch>, mutation: Option<Mutation>) -> Self {
        let epoch = epoch.map(|value| Kept { version: 1, value });
        let memory = Memory {
            epoch,
            ..Memory::default()
        };
        Self {
            identity: 1,
            step: 0,
            past: vec![(0, memory.clone())],
            memory,
            versions: 1,
            mutation,
        }
    }

    pub(crate) fn handle(&mut self, real: u64, message: Message) -> Reply {
        if self.memory.forget_at <= real {
            self.memory.client = None;
        }
        match message {
            Message::Load => {}
            Message::SwapEpoch { expected, epoch } => {
                if self.is_expected(expected, version(self.memory.epoch.as_ref())) {
                    let version = self.next_version();
                    let value = epoch;
                    self.memory.epoch = Some(Kept { version, value });
                    self.past.push((real, self.memory.clone()));
                }
            }
            Message::Swap {
                expected,
                write,
                reply,
            } => {
                if self.is_expected(expected, version(self.memory.client.as_ref())) {
                    self.write(real, *write);
                    return Reply::Swapped(reply);
                }
            }
        }
        Reply::Loaded(Box::new(Loaded {
            epoch: self.memory.epoch.clone(),
            client: self.memory.client.clone(),
            now: self.now(real),
            identity: StoreIdentity(self.identity),
        }))
    }

    fn write(&mut self, real: u64, write: Write) {
        let version = self.next_version();
        let mut forget_after = write.forget_after.0;
        if self.mutation == Some(Mutation::ForgetsTooSoon) {
            forget_after /= 2;
        }
        let value = write.record;
        self.memory.client = Some(Kept { version, value });
        self.memory.forget_at = real + forget_after;
        self.past.push((real, self.memory.clone()));
    }

    fn is_expected(&self, expected: Expected, version: u64) -> bool {
        let is_same_store = expected.identity.0 == self.identity;
        match self.mutation {
            Some(Mutation::SwapsBlindly) => is_same_store,
            Some(Mutation::SwapsIntoAnyStore) => expected.version == version,
            _ => expected.version == version && is_same_store,
        }
    }

    fn next_version(&mut self) -> u64 {
        self.versions += 1;
        self.versions
    }

    pub(crate) fn now(&self, real: u64) -> TimestampUs {
        TimestampUs(real.saturating_add_signed(self.step))
    }

    pub(crate) fn step_clock(&mut self, by: i64) {
        self.step += by;
    }

    /// Loses everything.
    pub(crate) fn wipe(&mut self) {
        self.identity += 1;
        self.memory = Memory::default();
    }

    /// Loses what was written since `real`.
    pub(crate) fn roll_back(&mut self, real: u64) {
        self.identity += 1;
        self.past.retain(|(at, _)| *at <= real);
        let last = self.past.last();
        self.memory = last.map(|(_, memory)| memory.clone()).unwrap_or_default();
    }
}
