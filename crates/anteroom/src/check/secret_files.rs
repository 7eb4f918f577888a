//! Check of files with secrets, and of the certificate authorities of a store.
//!
//! A gateway needs them to start. `anteroom check` may run on another machine, or as a user who
//! cannot read them, so a file that cannot be opened is a warning. Invalid contents are a mistake.

use std::io;
use std::path::Path;

use anteroom_config::{CA_FILE_BYTES_MAX, Config, Finding, PemError, Problem, StoreConfig};
use anteroom_store::chain;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;

use crate::check::store_password::{self, PasswordFileError};
use crate::check::token_file::{self, TokenFileError};
use crate::check::{files, location_of};

/// Mistakes, one a line, and warnings of files that could not be opened.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) mistakes: Vec<String>,
    pub(crate) warnings: Vec<Problem>,
}

/// Checks the files that `config` names. It was read from `text` in `file`.
pub(crate) fn check(text: &str, config: &Config, file: &Path) -> Found {
    let mut found = Found::default();
    let folder = file.parent().unwrap_or_else(|| Path::new(""));
    if let Some(path) = &config.server.admin_token_file
        && let Err(error) = token_file::load(&folder.join(path))
    {
        let read_error = match &error {
            TokenFileError::Read { source, .. } => Some(source),
            TokenFileError::Content { .. } => None,
        };
        found.note(text, file, "admin_token_file", chain(&error), read_error);
    }
    let mut copy = config.clone();
    if let Err(error) = store_password::load(&mut copy, file) {
        let read_error = match &error {
            PasswordFileError::Read { source, .. } => Some(source),
            _ => None,
        };
        found.note(text, file, "password_file", chain(&error), read_error);
    }
    if let StoreConfig::Valkey(valkey) = &copy.store
        && let Some(ca_file) = valkey
            .local
            .tls
            .as_ref()
            .and_then(|tls| tls.ca_file.as_ref())
    {
        let name = ca_file.display();
        match files::read_at_most(ca_file, CA_FILE_BYTES_MAX) {
            Ok(bytes) => {
                if let Err(why) = certificates(&bytes) {
                    let message = format!("{name} (ca_file in [store]) cannot be read: {why}");
                    found.note(text, file, "ca_file", message, None);
                }
            }
            Err(error) => {
                let message = format!("cannot read {name} (ca_file in [store]): {error}");
                found.note(text, file, "ca_file", message, Some(&error));
            }
        }
    }
    found
}

fn certificates(bytes: &[u8]) -> Result<(), String> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(bytes).collect();
    match all {
        Ok(all) if all.is_empty() => Err("it holds no certificate".to_owned()),
        Ok(_) => Ok(()),
        Err(error) => Err(PemError::from(error).to_string()),
    }
}

impl Found {
    fn note(
        &mut self,
        text: &str,
        file: &Path,
        key: &str,
        message: String,
        read_error: Option<&io::Error>,
    ) {
        let is_missing_here = read_error.is_some_and(|error| {
            matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied
            )
        });
        if !is_missing_here {
            self.mistakes
                .push(format!("{}: {message}", location_of(text, file, key, None)));
            return;
        }
        self.warnings.push(Problem {
            source: location_of(text, file, key, None).as_str().into(),
            line: None,
            column: None,
            owner: None,
            key: key.to_owned(),
            finding: Finding::Remark(message),
            allowed: String::new(),
            hint: Some("anteroom serve needs it".to_owned()),
        });
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use crate::check::read;

    const CONFIG: &str = "[server]\nadmin_token_file = \"tokens\"\n[store]\nkind = \"valkey\"\n\
                          local = \"rediss://10.0.0.5\"\nca_file = \"ca.pem\"\n\
                          password_file = \"redis\"\n[[room]]\nname = \"shop\"\n\
                          origin = \"http://127.0.0.1:9\"\ntotal_active_users = 1\n\
                          new_users_per_minute = 1\nbypass = []\n";

    #[test]
    fn missing_files_draw_warnings_and_unusable_files_are_mistakes() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("anteroom.toml");
        fs::write(&file, CONFIG).unwrap();
        let warnings = read(&file).unwrap().warnings;
        let warnings: Vec<String> = warnings.iter().map(ToString::to_string).collect();
        for (line, key) in [
            (2, "admin_token_file"),
            (7, "password_file"),
            (6, "ca_file"),
        ] {
            let location = format!("anteroom.toml:{line}: ");
            assert!(
                warnings
                    .iter()
                    .any(|warning| warning.contains(&location) && warning.contains(key)),
                "{location}{key}: {warnings:#?}"
            );
        }
        let write = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
        write("tokens", b"\xff\xfes\0");
        write("redis", b"");
        write("ca.pem", b"-----BEGIN CERTIFICATE-----\nAAAA\n");
        let lines = read(&file).unwrap_err().lines();
        let expected = [
            ("anteroom.toml:2: ", "it is not UTF-8 text"),
            ("anteroom.toml:7: ", "holds no password alone"),
            ("anteroom.toml:6: ", "cut short"),
        ];
        assert_eq!(lines.len(), expected.len(), "{lines:#?}");
        for (line, (location, what)) in lines.iter().zip(expected) {
            assert!(line.contains(location) && line.contains(what), "{lines:#?}");
        }
        write("tokens", b"short\n");
        let lines = read(&file).unwrap_err().lines();
        assert!(lines[0].contains("openssl rand -hex 32"), "{lines:#?}");
    }
}
