//! Certificates that are changed, and files that are none.

use std::fs;

use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use tempfile::TempDir;

use super::*;

/// Files of a certificate that is good until the first of January of a year.
fn write(folder: &TempDir, name: &str, until: i32) -> TlsConfig {
    let mut params = CertificateParams::new(["a".to_owned()]).unwrap();
    params.not_after = date_time_ymd(until, 1, 1);
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let files = TlsConfig {
        certificate: folder.path().join(format!("{name}.pem")),
        key: folder.path().join(format!("{name}.key")),
    };
    fs::write(&files.certificate, certificate.pem()).unwrap();
    fs::write(&files.key, key.serialize_pem()).unwrap();
    files
}

/// The first seconds of 2040 and 2050.
const IN_2040: i64 = 2_208_988_800;
const IN_2050: i64 = 2_524_608_000;

#[test]
fn a_certificate_is_changed_by_one_that_can_be_used_and_by_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (write(&folder, "a", 2040), write(&folder, "b", 2050));
    let tls = Tls::load(&first).unwrap();
    assert_eq!(tls.expires_at(), IN_2040);

    let with = |certificate: &Path, key: &Path| TlsConfig {
        certificate: certificate.to_owned(),
        key: key.to_owned(),
    };
    let empty = folder.path().join("empty");
    fs::write(&empty, "").unwrap();
    let broken = folder.path().join("broken");
    let text = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    fs::write(&broken, text).unwrap();
    let gone = folder.path().join("gone");
    let refused = |files: TlsConfig| {
        let error = tls.reload(&files).unwrap_err();
        assert_eq!(tls.expires_at(), IN_2040, "{error}");
        assert!(Tls::check(&files).is_err());
        error
    };
    assert!(matches!(
        refused(with(&gone, &first.key)),
        TlsError::Certificate { .. }
    ));
    assert!(matches!(
        refused(with(&empty, &first.key)),
        TlsError::NoCertificate { .. }
    ));
    assert!(matches!(
        refused(with(&broken, &first.key)),
        TlsError::Malformed { .. }
    ));
    assert!(matches!(
        refused(with(&first.certificate, &gone)),
        TlsError::Key { .. }
    ));
    assert!(matches!(
        refused(with(&first.certificate, &empty)),
        TlsError::Key { .. }
    ));
    let other = refused(with(&second.certificate, &first.key));
    assert!(matches!(other, TlsError::Unfit { .. }), "{other}");

    tls.reload(&second).unwrap();
    assert_eq!(tls.expires_at(), IN_2050);
    assert_eq!(tls.clone().expires_at(), IN_2050, "clones share it");
}

#[test]
fn a_key_that_everybody_may_read_is_noticed() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let files = write(&folder, "a", 2040);
    for (mode, expected) in [(0o600, false), (0o640, false), (0o644, true)] {
        fs::set_permissions(&files.key, fs::Permissions::from_mode(mode)).unwrap();
        assert_eq!(is_open_to_all(&files.key), expected, "{mode:o}");
    }
}

#[test]
fn what_somebody_without_tls_is_told_has_the_length_that_it_says() {
    let text = std::str::from_utf8(SPEAK_TLS).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    assert!(
        head.contains(&format!("Content-Length: {}", body.len())),
        "{}",
        body.len()
    );
}
