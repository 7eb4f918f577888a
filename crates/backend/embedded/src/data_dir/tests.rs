//! Secrets that are drawn once, kept, restored and never overwritten.

use super::*;
use std::os::unix::fs::PermissionsExt as _;

#[test]
fn keys_and_deployment_are_drawn_once_and_private() {
    let dir = tempfile::tempdir().unwrap();
    let data = DataDir::open(&dir.path().join("new/deep")).unwrap();
    fs::write(data.journal(), "").unwrap();
    let first = (data.deployment().unwrap(), data.ticket_keys().unwrap());
    assert_eq!(
        (data.deployment().unwrap(), data.ticket_keys().unwrap()),
        first
    );
    for name in ["deployment", "ticket-keys"] {
        let mode = fs::metadata(data.path().join(name))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    let names = fs::read_dir(data.path()).unwrap().count();
    assert_eq!(names, 3, "no drafts are left");
}

#[test]
fn a_deleted_folder_is_restored_with_its_keys_and_deployment() {
    let dir = tempfile::tempdir().unwrap();
    let data = DataDir::open(&dir.path().join("data")).unwrap();
    let first = (data.deployment().unwrap(), data.ticket_keys().unwrap());
    fs::remove_dir_all(data.path()).unwrap();
    data.restore().unwrap();
    fs::write(data.journal(), "").unwrap();
    let next = DataDir::open(data.path()).unwrap();
    assert_eq!(
        (next.deployment().unwrap(), next.ticket_keys().unwrap()),
        first
    );
    let shown = format!("{data:?}");
    assert!(!shown.contains(&hex(&first.1[0])), "{shown}");
}

#[test]
fn restoring_overwrites_nothing_and_draws_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let data = DataDir::open(dir.path()).unwrap();
    data.restore().unwrap();
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    data.ticket_keys().unwrap();
    let rotated = format!("{}\n", "ab".repeat(32));
    fs::write(dir.path().join("ticket-keys"), &rotated).unwrap();
    data.restore().unwrap();
    assert_eq!(data.ticket_keys().unwrap(), [[0xab; 32]]);
}

#[test]
fn a_start_without_a_journal_draws_a_new_deployment() {
    let dir = tempfile::tempdir().unwrap();
    let data = DataDir::open(dir.path()).unwrap();
    fs::write(data.journal(), "").unwrap();
    let first = data.deployment().unwrap();
    fs::remove_file(data.journal()).unwrap();
    assert_eq!(
        data.deployment().unwrap(),
        first,
        "the running process keeps its deployment"
    );
    let next = DataDir::open(dir.path()).unwrap();
    assert_ne!(
        next.deployment().unwrap().deployment_id,
        first.deployment_id
    );
}

#[test]
fn a_damaged_file_is_an_error_and_not_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let data = DataDir::open(dir.path()).unwrap();
    fs::write(data.journal(), "").unwrap();
    fs::write(dir.path().join("deployment"), "zz zz").unwrap();
    fs::write(dir.path().join("ticket-keys"), "").unwrap();
    let message = data.deployment().unwrap_err().to_string();
    assert!(message.contains("deployment is damaged"), "{message}");
    assert!(data.ticket_keys().is_err());
}

#[test]
fn only_one_process_has_the_lock_and_it_notices_a_deleted_folder() {
    let dir = tempfile::tempdir().unwrap();
    let data = DataDir::open(&dir.path().join("data")).unwrap();
    let lock = data.try_lock().unwrap().unwrap();
    assert!(data.try_lock().unwrap().is_none());
    assert!(lock.is_in_place());
    fs::remove_dir_all(data.path()).unwrap();
    assert!(!lock.is_in_place());
    let data = DataDir::open(data.path()).unwrap();
    let other = data.try_lock().unwrap().unwrap();
    assert!(!lock.is_in_place());
    assert!(other.is_in_place());
}

#[test]
fn adopted_facts_replace_drawn_ones() {
    let temp = tempfile::tempdir().unwrap();
    let dir = DataDir::open(&temp.path().join("data")).unwrap();
    let (drawn, is_new) = dir.membership().unwrap();
    assert!(is_new);
    assert_eq!(dir.membership().unwrap(), (drawn.clone(), false));
    let common = Membership {
        deployment: Deployment {
            deployment_id: DeploymentId(7),
            lottery_key: LotteryKey([9; 16]),
        },
        ticket_keys: vec![[1; 32], [2; 32]],
    };
    assert_ne!(drawn, common);
    dir.adopt(&common).unwrap();
    let again = DataDir::open(dir.path()).unwrap();
    assert_eq!(again.membership().unwrap(), (common, false));
}

#[test]
fn a_token_is_drawn_once_and_private() {
    let dir = tempfile::tempdir().unwrap();
    let data = DataDir::open(dir.path()).unwrap();
    let token = data.admin_token().unwrap();
    assert_eq!(token.len(), 64);
    assert_eq!(data.admin_token().unwrap(), token);
    let path = dir.path().join("admin-token");
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    fs::write(&path, "admin\n").unwrap();
    let error = data.admin_token().unwrap_err().to_string();
    assert!(
        error.contains("64 hex digits") && !error.contains("visitor"),
        "{error}"
    );
}

#[test]
fn custom_pages_are_kept_until_no_room_refers_to_them() {
    let dir = tempfile::tempdir().unwrap();
    let data = DataDir::open(&dir.path().join("data")).unwrap();
    data.remove_other_custom_pages(&BTreeSet::new()).unwrap();
    assert_eq!(data.custom_page("0a").unwrap(), None);
    for name in ["0a", "0b"] {
        data.keep_custom_page(name, "<p>page</p>").unwrap();
    }
    data.remove_other_custom_pages(&BTreeSet::from(["0b"]))
        .unwrap();
    assert_eq!(data.custom_page("0a").unwrap(), None);
    let found = data.custom_page("0b").unwrap();
    assert_eq!(found.as_deref(), Some("<p>page</p>"));
    // One that was cut short is written again.
    let path = data.path().join("api-rooms-pages/0b");
    fs::write(&path, "<p>").unwrap();
    data.keep_custom_page("0b", "<p>page</p>").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "<p>page</p>");
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // A name stays in its folder.
    fs::write(data.path().join("secret"), "key").unwrap();
    assert_eq!(data.custom_page("../secret").unwrap(), None);
}
