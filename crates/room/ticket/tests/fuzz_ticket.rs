//! Opening tickets on damaged bytes: never a panic, never a forgery that opens.
//!
//! `ANTEROOM_FUZZ_SECONDS=10 cargo test -p anteroom-ticket --test fuzz_ticket` runs longer;
//! `ANTEROOM_FUZZ_SEED=n` begins at another seed, or repeats a failure.

use std::path::{Path, PathBuf};

use anteroom_room::id::{DeploymentId, VisitorId};
use anteroom_room::ticket::{Announced, Seats, Ticket};
use anteroom_room::time::Timestamp;
use anteroom_testkit::{Effort, Language, fuzz, seeds};
use anteroom_ticket::{Binding, KeyRing, NONCE_BYTES, OpenError};

/// Fields of a ticket before it is sealed, and edge cases of the text after.
const LANGUAGE: Language<'_> = Language {
    pieces: &[
        &[0],
        &[1],
        &[4],
        &[5],
        &[0xff],
        &[0; 4],
        &[0; 8],
        &[0; 16],
        &[0xff; 8],
        // A seat: data center, end, epoch.
        &[
            1, 0, 0, 0, 0x60, 0x17, 0xe2, 0x61, 0xba, 1, 0, 0, 0, 0, 0, 0,
        ],
        b"=",
        b"-",
        b"_",
        b"+",
        b"/",
        b"\xc3\xa9",
    ],
    field: None,
};

/// Key of the function under test, [`anteroom_ticket::fuzz::ticket`].
const KEY: [u8; 32] = [7; 32];
const COOKIE: &str = "__anteroom_fuzz";
const ROOM: &str = "fuzz";
const DEPLOYMENT: DeploymentId = DeploymentId(1);

/// Seals a ticket under the right key, for the given room and deployment.
fn sealed(room: &str, deployment: DeploymentId) -> String {
    let ticket = Ticket {
        visitor: VisitorId([9; 16]),
        bucket: Timestamp(1_900_000_000_000),
        last_check_in_at: Timestamp(1_900_000_005_000),
        accepted_at: None,
        first_seat: None,
        has_missed_turn: false,
        counted_until: None,
        announced: Announced::default(),
        unseen_loss: None,
        seats: Seats::default(),
    };
    let nonce = [3; NONCE_BYTES];
    KeyRing::new(&[KEY]).seal(&ticket, deployment, &Binding::new(COOKIE, room), nonce)
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/fuzz/ticket")
}

fn corpus() -> Vec<Vec<u8>> {
    seeds::of_folder(&folder())
}

#[test]
fn sealed_seeds_fail_with_the_error_in_their_name() {
    let ring = KeyRing::new(&[KEY]);
    let check = |name: &str, text: &str, expected: OpenError| {
        let seed = std::fs::read_to_string(folder().join(name)).unwrap_or_default();
        // Fails when the layout of tickets changes: then replace the seed.
        assert_eq!(seed, text, "{name}");
        let opened = ring.open(&seed, DEPLOYMENT, &Binding::new(COOKIE, ROOM));
        assert_eq!(opened, Err(expected), "{name}");
    };
    check(
        "sealed-for-another-room",
        &sealed("other", DEPLOYMENT),
        OpenError::Forged,
    );
    check(
        "sealed-for-another-deployment",
        &sealed(ROOM, DeploymentId(2)),
        OpenError::OtherDeployment,
    );
    check("text-unknown-key", &"A".repeat(120), OpenError::UnknownKey);
}

#[test]
fn every_seed_holds_what_must_hold() {
    for seed in corpus() {
        anteroom_ticket::fuzz::ticket(&seed);
    }
}

#[test]
fn damaged_tickets_hold_what_must_hold() {
    fuzz(
        Effort::from_environment(),
        &LANGUAGE,
        &corpus(),
        anteroom_ticket::fuzz::ticket,
    );
}
