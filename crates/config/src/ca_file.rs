//! Files of certificates whose signers are trusted: how much of one is read, and what it must hold.
//!
//! A caller opens the file and adds the certificates to what it trusts: no file is opened here, and
//! no TLS library is known.

use std::error::Error;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;

use crate::pem_error::PemError;

/// Most bytes of a file of certificates. All that a machine trusts takes a quarter of a megabyte.
pub const CA_FILE_BYTES_MAX: usize = 4 << 20;

/// Why a file of trusted certificates cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaFileError {
    /// The file cannot be read, or is too large.
    #[error("cannot read the certificates in {} ({key})", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What names it in the config file.
        key: &'static str,
        /// The cause.
        source: io::Error,
    },
    /// The file is no PEM file.
    #[error("{} ({key}) cannot be read", path.display())]
    NoPem {
        /// The file.
        path: PathBuf,
        /// What names it in the config file.
        key: &'static str,
        /// What is wrong.
        source: PemError,
    },
    /// The file holds a certificate that cannot be used.
    #[error("{} ({key}) holds a certificate that cannot sign others", path.display())]
    NoAuthority {
        /// The file.
        path: PathBuf,
        /// What names it in the config file.
        key: &'static str,
        /// What is wrong.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The file holds no certificate.
    #[error("{} ({key}) holds no certificate", path.display())]
    NoCertificate {
        /// The file.
        path: PathBuf,
        /// What names it in the config file.
        key: &'static str,
    },
}

/// A file of trusted certificates.
#[derive(Clone, Copy, Debug)]
pub struct CaFile<'f> {
    /// Where it is.
    pub path: &'f Path,
    /// What names it in the config file, for messages.
    pub key: &'static str,
}

impl CaFile<'_> {
    /// Reads the whole file. A device without end is not read for ever.
    ///
    /// # Errors
    ///
    /// [`CaFileError::Read`] if it could not be opened, cannot be read, or holds more than
    /// [`CA_FILE_BYTES_MAX`].
    pub fn text(&self, opened: io::Result<impl Read>) -> Result<Vec<u8>, CaFileError> {
        let text = opened.and_then(read_at_most);
        text.map_err(|source| CaFileError::Read {
            path: self.path.to_owned(),
            key: self.key,
            source,
        })
    }

    /// Hands each certificate in the text of the file to `trust`.
    ///
    /// # Errors
    ///
    /// [`CaFileError`] if the text is no PEM, holds no certificate, or one that `trust` rejects.
    pub fn each_certificate<E: Error + Send + Sync + 'static>(
        &self,
        text: &[u8],
        mut trust: impl FnMut(CertificateDer<'static>) -> Result<(), E>,
    ) -> Result<(), CaFileError> {
        let (path, key) = (|| self.path.to_owned(), self.key);
        let mut is_empty = true;
        for certificate in CertificateDer::pem_slice_iter(text) {
            let certificate = certificate.map_err(|error| CaFileError::NoPem {
                path: path(),
                key,
                source: error.into(),
            })?;
            trust(certificate).map_err(|error| CaFileError::NoAuthority {
                path: path(),
                key,
                source: error.into(),
            })?;
            is_empty = false;
        }
        if is_empty {
            return Err(CaFileError::NoCertificate { path: path(), key });
        }
        Ok(())
    }
}

fn read_at_most(file: impl Read) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    // One byte more than may be, so that it is noticed.
    let most = CA_FILE_BYTES_MAX as u64 + 1;
    file.take(most).read_to_end(&mut text)?;
    if text.len() > CA_FILE_BYTES_MAX {
        let message = format!("it is larger than {CA_FILE_BYTES_MAX} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> CaFile<'static> {
        CaFile {
            path: Path::new("ca.pem"),
            key: "origin_ca_file",
        }
    }

    /// What is said about a text whose certificates of three bytes are no authorities.
    fn told(text: &[u8]) -> CaFileError {
        #[derive(Debug, thiserror::Error)]
        #[error("nonsense")]
        struct Nonsense;
        let refuse = |certificate: CertificateDer<'_>| match certificate.len() {
            3 => Err(Nonsense),
            _ => Ok(()),
        };
        file().each_certificate(text, refuse).unwrap_err()
    }

    #[test]
    fn a_file_of_certificates_that_cannot_be_used_says_which_and_why() {
        let check = |text: &str, expected: &str| {
            assert_eq!(told(text.as_bytes()).to_string(), expected);
        };
        check("", "ca.pem (origin_ca_file) holds no certificate");
        check(
            "what is this?",
            "ca.pem (origin_ca_file) holds no certificate",
        );
        check(
            "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n",
            "ca.pem (origin_ca_file) cannot be read",
        );
        check(
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            "ca.pem (origin_ca_file) holds a certificate that cannot sign others",
        );
        let CaFileError::NoPem { source, .. } = told(b"-----BEGIN CERTIFICATE-----\nAAAA") else {
            panic!("it is no PEM file");
        };
        let said = source.to_string();
        assert!(said.contains("cut short"), "a remedy, no bytes: {said}");
    }

    #[test]
    fn a_file_is_read_whole_up_to_the_bound_and_no_further() {
        let read = |bytes: u64| file().text(Ok(io::repeat(b'a').take(bytes)));
        let most = CA_FILE_BYTES_MAX as u64;
        assert_eq!(read(most).unwrap().len(), CA_FILE_BYTES_MAX);
        for bytes in [most + 1, u64::MAX] {
            let error = read(bytes).unwrap_err();
            assert!(matches!(error, CaFileError::Read { .. }), "{error:?}");
            let source = error.source().unwrap().to_string();
            assert_eq!(source, "it is larger than 4194304 bytes");
        }
        let missing = file().text(Err::<io::Empty, _>(io::ErrorKind::NotFound.into()));
        let message = missing.unwrap_err().to_string();
        assert_eq!(
            message,
            "cannot read the certificates in ca.pem (origin_ca_file)"
        );
    }
}
