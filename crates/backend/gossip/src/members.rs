//! Membership: the known nodes and which of them are alive.
//!
//! Foca (SWIM) does the work: each node pings another one each second, has three others ping a node
//! that does not respond, and declares it down unless it objects within three seconds. Foca has
//! neither sockets nor clocks of its own; here it gets them as arguments.
//!
//! Deliberately absent: the reports that nodes exchange ([`crate::node`]).

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::num::{NonZeroU8, NonZeroUsize};
use std::time::Duration;

use foca::{
    Codec as _, Config, Foca, Header, Member, NoCustomBroadcast, Notification, PeriodicParams,
    PostcardCodec, Runtime, Timer,
};
use rand_core::SeedableRng as _;
use rand_pcg::Pcg64Mcg;
use serde::{Deserialize, Serialize};

use crate::cell::WriterId;
use crate::message::MEMBERSHIP_LARGEST;

/// Growth of the generation of a node that others declared down: an hour, in ms. A node whose clock
/// was set back overtakes its former self after as many tries as hours.
const GENERATION_STEP: u64 = 3_600_000;

/// Most known nodes, including those that are down for less than an hour. Far above any real
/// deployment, as each node reports to each other one. It bounds what a broken node, or an attacker
/// with the secret, makes the others keep and send.
pub(crate) const MEMBERS_MAX: usize = 1_000;

/// Identity of a node.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct Identity {
    pub(crate) address: SocketAddr,
    pub(crate) writer: WriterId,
    /// Start of the node, in milliseconds since the Unix epoch. Of successive nodes at one address
    /// the largest counts.
    pub(crate) generation: u64,
}

impl foca::Identity for Identity {
    type Addr = SocketAddr;

    fn renew(&self) -> Option<Self> {
        let generation = self.generation.checked_add(GENERATION_STEP)?;
        Some(Self {
            generation,
            ..self.clone()
        })
    }

    fn addr(&self) -> SocketAddr {
        self.address
    }

    fn win_addr_conflict(&self, adversary: &Self) -> bool {
        (self.generation, self.writer) > (adversary.generation, adversary.writer)
    }
}

/// Error of a membership message that is invalid.
#[derive(Debug, thiserror::Error)]
#[error("invalid membership message")]
pub(crate) struct MessageError {
    source: foca::Error,
}

/// Members, as this node sees them.
pub(crate) struct Members {
    foca: Foca<Identity, PostcardCodec, Pcg64Mcg, NoCustomBroadcast>,
    todo: Effect,
}

/// Effects that the library requests.
#[derive(Default)]
struct Effect {
    now: Duration,
    sends: Vec<(SocketAddr, Vec<u8>)>,
    /// Timers by due time and order of creation.
    timers: BTreeMap<(Duration, u64), Timer<Identity>>,
    timers_made: u64,
}

impl Runtime<Identity> for Effect {
    // The caller compares the members after each step.
    fn notify(&mut self, _: Notification<'_, Identity>) {}

    fn send_to(&mut self, to: Identity, data: &[u8]) {
        self.sends.push((to.address, data.to_vec()));
    }

    fn submit_after(&mut self, event: Timer<Identity>, after: Duration) {
        self.timers_made += 1;
        let due = self.now.saturating_add(after);
        self.timers.insert((due, self.timers_made), event);
    }
}

impl Members {
    /// Creates a membership of this node alone. `seed` decides which members are pinged.
    pub(crate) fn new(me: Identity, seed: u64) -> Self {
        let rng = Pcg64Mcg::seed_from_u64(seed);
        Self {
            foca: Foca::new(me, config(), rng, PostcardCodec),
            todo: Effect::default(),
        }
    }

    /// Announces this node to an address at which a node may listen.
    pub(crate) fn announce(&mut self, now: Duration, address: SocketAddr) {
        self.todo.now = now;
        // The node at this address accepts it as its own.
        let unknown = Identity {
            address,
            writer: WriterId(0),
            generation: 0,
        };
        let announced = self.foca.announce(unknown, &mut self.todo);
        note(announced);
    }

    /// Handles a message of a member. Returns the number of nodes left out of it because too many
    /// are known.
    pub(crate) fn handle(&mut self, now: Duration, bytes: &[u8]) -> Result<usize, MessageError> {
        self.todo.now = now;
        let is_full = self.foca.iter_membership_state().len() >= MEMBERS_MAX;
        let (bytes, left_out) = if is_full {
            self.without_unknown(bytes)?
        } else {
            (Cow::Borrowed(bytes), 0)
        };
        if bytes.is_empty() && left_out > 0 {
            return Ok(left_out);
        }
        let handled = self.foca.handle_data(&bytes, &mut self.todo);
        match handled {
            // The node sent this to itself: it is among its own peers, by another address.
            Ok(()) | Err(foca::Error::DataFromOurselves) => Ok(left_out),
            Err(source) => Err(MessageError { source }),
        }
    }

    /// Returns the message reduced to known members, and the number of others that it named. Empty
    /// if the sender is not known.
    fn without_unknown<'b>(&self, bytes: &'b [u8]) -> Result<(Cow<'b, [u8]>, usize), MessageError> {
        let invalid = |error: postcard::Error| MessageError {
            source: foca::Error::Decode(Box::new(error)),
        };
        let known = self.foca.iter_membership_state();
        let known = known.map(|member| member.id().address);
        let mut known: BTreeSet<SocketAddr> = known.collect();
        known.insert(self.foca.identity().address);
        let mut rest = bytes;
        let header: Header<Identity> = PostcardCodec.decode_header(&mut rest).map_err(invalid)?;
        if !known.contains(&header.src.address) {
            return Ok((Cow::Borrowed(&[]), 1));
        }
        let head = &bytes[..bytes.len() - rest.len()];
        let Some((named, tail)) = rest.split_first_chunk::<2>() else {
            return Ok((Cow::Borrowed(bytes), 0));
        };
        let (mut kept, mut left_out, mut members) = (0_u16, 0, Vec::new());
        rest = tail;
        for _ in 0..u16::from_be_bytes(*named) {
            let before = rest;
            let member: Member<Identity> =
                PostcardCodec.decode_member(&mut rest).map_err(invalid)?;
            if known.contains(&member.id().address) {
                kept += 1;
                members.extend_from_slice(&before[..before.len() - rest.len()]);
            } else {
                left_out += 1;
            }
        }
        let all = [head, &kept.to_be_bytes(), &members, rest].concat();
        Ok((Cow::Owned(all), left_out))
    }

    /// Carries out all timers that are due.
    pub(crate) fn poll(&mut self, now: Duration) {
        self.todo.now = now;
        while let Some(first) = self.todo.timers.first_entry() {
            let (due, _) = *first.key();
            if due > now {
                break;
            }
            let event = first.remove();
            note(self.foca.handle_timer(event, &mut self.todo));
        }
    }

    /// Returns the time of the next timer.
    pub(crate) fn next_at(&self) -> Option<Duration> {
        let first = self.todo.timers.first_key_value();
        first.map(|((due, _), _)| *due)
    }

    /// Announces to the others that this node leaves.
    pub(crate) fn leave(&mut self, now: Duration) {
        self.todo.now = now;
        note(self.foca.leave_cluster(&mut self.todo));
    }

    /// Takes the messages to send.
    pub(crate) fn take_sends(&mut self) -> Vec<(SocketAddr, Vec<u8>)> {
        std::mem::take(&mut self.todo.sends)
    }

    /// Returns the other live members.
    pub(crate) fn peers(&self) -> impl Iterator<Item = (SocketAddr, WriterId)> {
        let members = self.foca.iter_members();
        members.map(|member| (member.id().address, member.id().writer))
    }
}

/// Logs an error of the library, which continues all the same.
fn note(done: Result<(), foca::Error>) {
    if let Err(error) = done {
        tracing::debug!(%error, "unexpected membership event");
    }
}

fn config() -> Config {
    let one = NonZeroUsize::MIN;
    let of = |usual: usize| NonZeroUsize::new(usual).unwrap_or(one);
    let every = |millis: u64, members: usize| {
        Some(PeriodicParams {
            frequency: Duration::from_millis(millis),
            num_members: of(members),
        })
    };
    Config {
        probe_period: Duration::from_secs(1),
        probe_rtt: Duration::from_millis(300),
        num_indirect_probes: of(3),
        max_transmissions: NonZeroU8::new(10).unwrap_or(NonZeroU8::MIN),
        suspect_to_down_after: Duration::from_secs(3),
        // Addresses change where nodes are pods; departed members must not pile up.
        remove_down_after: Some(Duration::from_secs(3_600)),
        max_packet_size: of(MEMBERSHIP_LARGEST),
        notify_down_members: true,
        // These repair lost datagrams and partitions.
        periodic_announce: every(10_000, 1),
        periodic_announce_to_down_members: every(10_000, 2),
        periodic_gossip: every(500, 3),
    }
}

#[cfg(test)]
mod tests {
    use foca::Identity as _;

    use super::*;

    #[test]
    fn the_newest_identity_wins_an_address() {
        let first = Identity {
            address: SocketAddr::from(([10, 0, 0, 5], 7_946)),
            writer: WriterId(9),
            generation: 1_767_225_600_000,
        };
        let second = Identity {
            writer: WriterId(3),
            generation: first.generation + 1,
            ..first
        };
        assert!(second.win_addr_conflict(&first) && !first.win_addr_conflict(&second));
        let renewed = first.renew().unwrap();
        assert!(renewed.win_addr_conflict(&second));
        assert_eq!(
            (renewed.writer, renewed.addr()),
            (first.writer, first.address)
        );
    }

    fn identity(at: u16) -> Identity {
        Identity {
            address: SocketAddr::from(([10, 0, 0, 5], at)),
            writer: WriterId(u64::from(at)),
            generation: 1,
        }
    }

    /// Encodes a gossip message of `by` that names these members.
    fn gossip(by: u16, to: u16, named: &[u16]) -> Vec<u8> {
        let header = Header {
            src: identity(by),
            src_incarnation: 0,
            dst: identity(to),
            message: foca::Message::Gossip,
        };
        let mut bytes = Vec::new();
        PostcardCodec.encode_header(&header, &mut bytes).unwrap();
        bytes.extend(u16::try_from(named.len()).unwrap().to_be_bytes());
        for at in named {
            let member = Member::alive(identity(*at));
            PostcardCodec.encode_member(&member, &mut bytes).unwrap();
        }
        bytes
    }

    #[test]
    fn a_flood_of_named_nodes_is_bounded_and_evicts_no_member() {
        const ME: u16 = 1;
        let mut members = Members::new(identity(ME), 1);
        let mut left_out = 0;
        for first in (2..5_000).step_by(30) {
            let named: Vec<u16> = (first..first + 30).collect();
            let now = Duration::ZERO;
            left_out += members.handle(now, &gossip(2, ME, &named)).unwrap();
        }
        let known = members.peers().count();
        // The last message before the limit may have named up to 30 more.
        assert!((MEMBERS_MAX..MEMBERS_MAX + 30).contains(&known), "{known}");
        assert!(left_out >= 3_900, "{left_out}");
        // Updates of known members are handled: that one is down, or has come back.
        let mut bytes = gossip(3, ME, &[]);
        bytes.truncate(bytes.len() - 2);
        bytes.extend(1_u16.to_be_bytes());
        let departed = Member::down(identity(7));
        PostcardCodec.encode_member(&departed, &mut bytes).unwrap();
        assert_eq!(members.handle(Duration::ZERO, &bytes).unwrap(), 0);
        assert_eq!(members.peers().count(), known - 1);
        // Messages of unknown nodes are ignored.
        assert_eq!(
            members
                .handle(Duration::ZERO, &gossip(60_000, ME, &[2]))
                .unwrap(),
            1
        );
        assert!(
            members
                .handle(Duration::ZERO, &gossip(3, ME, &[2])[..9])
                .is_err()
        );
    }
}
