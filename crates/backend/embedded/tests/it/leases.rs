//! Lease file on a real disk: conformance, restarts, crashes and failing disks.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail the test, like the tests themselves"
)]

mod bounds;
mod conformance;
mod crashes;
mod disk;
mod folder;
mod losses;
mod owners;
