//! Tests of which tickets open, and which do not.

use anteroom_room::id::{DataCenterId, Epoch, VisitorId};
use anteroom_room::ticket::{Announced, FirstSeat, SEATS_MAX, Seat, Seats};
use anteroom_room::time::Timestamp;

use super::*;

const DEPLOYMENT: DeploymentId = DeploymentId(42);

fn ticket() -> Ticket {
    let mut seats = Seats::default();
    for n in 0..u32::try_from(SEATS_MAX).unwrap() {
        seats.put(Seat {
            data_center: DataCenterId(n),
            ends_at: Timestamp(u64::MAX - u64::from(n)),
            epoch: Epoch(u32::MAX),
        });
    }
    Ticket {
        visitor: VisitorId([0xff; 16]),
        bucket: Timestamp(1_694_432_754_000),
        last_check_in_at: Timestamp(1_694_432_755_000),
        accepted_at: Some(Timestamp(1_694_432_756_000)),
        first_seat: Some(FirstSeat::Newcomer),
        has_missed_turn: false,
        counted_until: Some(Timestamp(1_694_432_799_500)),
        announced: Announced::default(),
        unseen_loss: None,
        seats,
    }
}

fn binding() -> Binding {
    Binding::new("__anteroom_shop", "shop")
}

fn seal(ring: &KeyRing) -> String {
    ring.seal(&ticket(), DEPLOYMENT, &binding(), [9; NONCE_BYTES])
}

#[test]
fn a_ticket_opens_as_sealed_within_256_characters() {
    let ring = KeyRing::new(&[[1; 32]]);
    let sealed = seal(&ring);
    assert!(sealed.len() <= TICKET_CHARS_MAX, "{}", sealed.len());
    assert_eq!(ring.open(&sealed, DEPLOYMENT, &binding()), Ok(ticket()));
}

#[test]
fn a_waiting_ticket_has_no_seats_and_no_time_of_acceptance() {
    let ring = KeyRing::new(&[[1; 32]]);
    let waiting = Ticket {
        accepted_at: None,
        first_seat: None,
        has_missed_turn: false,
        counted_until: None,
        announced: Announced::default(),
        unseen_loss: None,
        seats: Seats::default(),
        ..ticket()
    };
    let sealed = ring.seal(&waiting, DEPLOYMENT, &binding(), [9; NONCE_BYTES]);
    assert_eq!(ring.open(&sealed, DEPLOYMENT, &binding()), Ok(waiting));
}

#[test]
fn older_keys_open_and_the_newest_seals() {
    let old = KeyRing::new(&[[1; 32]]);
    let both = KeyRing::new(&[[2; 32], [1; 32]]);
    let new = KeyRing::new(&[[2; 32]]);
    assert_eq!(both.open(&seal(&old), DEPLOYMENT, &binding()), Ok(ticket()));
    assert_eq!(new.open(&seal(&both), DEPLOYMENT, &binding()), Ok(ticket()));
    assert_eq!(
        new.open(&seal(&old), DEPLOYMENT, &binding()),
        Err(OpenError::UnknownKey)
    );
}

#[test]
fn tickets_of_another_room_cookie_or_deployment_do_not_open() {
    let ring = KeyRing::new(&[[1; 32]]);
    let sealed = seal(&ring);
    for (cookie, room) in [("__anteroom_shop", "spa"), ("__anteroom_spa", "shop")] {
        let opened = ring.open(&sealed, DEPLOYMENT, &Binding::new(cookie, room));
        assert_eq!(opened, Err(OpenError::Forged));
    }
    let opened = ring.open(&sealed, DeploymentId(43), &binding());
    assert_eq!(opened, Err(OpenError::OtherDeployment));
}

#[test]
fn a_changed_or_missing_character_is_detected() {
    let ring = KeyRing::new(&[[1; 32]]);
    let sealed = seal(&ring);
    for at in 0..sealed.len() {
        let mut changed = sealed.clone().into_bytes();
        changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(changed).unwrap();
        assert!(
            ring.open(&changed, DEPLOYMENT, &binding()).is_err(),
            "at {at}"
        );
    }
    for cut in 0..sealed.len() {
        assert!(ring.open(&sealed[..cut], DEPLOYMENT, &binding()).is_err());
    }
    let longer = sealed + "A";
    assert!(ring.open(&longer, DEPLOYMENT, &binding()).is_err());
    assert!(
        ring.open(&"A".repeat(100_000), DEPLOYMENT, &binding())
            .is_err()
    );
}

#[test]
fn debug_output_shows_no_key() {
    assert_eq!(format!("{:?}", KeyRing::new(&[[1; 32]])), "KeyRing(1 keys)");
}
