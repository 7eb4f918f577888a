//! Reader of files of trusted certificates: bounds what is read and checks what it contains.
//!
//! The caller opens the file and adds the certificates to its trust store. No file is opened here,
//! and no TLS library is used.

use std::error::Error;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;

use crate::pem_error::PemError;

/// Largest file of certificates, in bytes. A whole system's trust store takes a quarter of 1 MiB.
pub const CA_FILE_BYTES_MAX: usize = 4 << 20;

/// Error of a file of trusted certificates.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaFileError {
    /// The file cannot be read, or is too large.
    #[error("cannot read the certificates in {} ({key})", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Key of the config file that names the file.
        key: &'static str,
        /// Underlying error.
        source: io::Error,
    },
    /// The file is not PEM.
    #[error("{} ({key}) cannot be read", path.display())]
    NoPem {
        /// The file.
        path: PathBuf,
        /// Key of the config file that names the file.
        key: &'static str,
        /// Underlying error.
        source: PemError,
    },
    /// The file holds a certificate that cannot be used.
    #[error("{} ({key}) holds a certificate that cannot sign others", path.display())]
    NoAuthority {
        /// The file.
        path: PathBuf,
        /// Key of the config file that names the file.
        key: &'static str,
        /// Underlying error.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The file holds no certificate.
    #[error("{} ({key}) holds no certificate", path.display())]
    NoCertificate {
        /// The file.
        path: PathBuf,
        /// Key of the config file that names the file.
        key: &'static str,
    },
}

/// A file of trusted certificates.
#[derive(Clone, Copy, Debug)]
pub struct CaFile<'f> {
    /// Path of the file.
    pub path: &'f Path,
    /// Key of the config file that names the file, for messages.
    pub key: &'static str,
}

impl CaFile<'_> {
    /// Reads the whole file, at most [`CA_FILE_BYTES_MAX`] of an endless device.
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

    /// Passes each certificate in the text of the file to `trust`.
    ///
    /// # Errors
    ///
    /// [`CaFileError`] if the text is not PEM, has no certificate, or has one that `trust` rejects.
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
    // One byte more than allowed, so that a file that is too large is noticed.
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

    /// Returns the error of a text. Certificates of three bytes are no authorities.
    fn error_of(text: &[u8]) -> CaFileError {
        #[derive(Debug, thiserror::Error)]
        #[error("nonsense")]
        struct Nonsense;
        let reject = |certificate: CertificateDer<'_>| match certificate.len() {
            3 => Err(Nonsense),
            _ => Ok(()),
        };
        file().each_certificate(text, reject).unwrap_err()
    }

    #[test]
    fn a_useless_certificate_file_is_rejected_with_path_and_reason() {
        let check = |text: &str, expected: &str| {
            assert_eq!(error_of(text.as_bytes()).to_string(), expected);
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
        let CaFileError::NoPem { source, .. } = error_of(b"-----BEGIN CERTIFICATE-----\nAAAA")
        else {
            panic!("it is no PEM file");
        };
        let message = source.to_string();
        assert!(
            message.contains("cut short"),
            "a remedy, no bytes: {message}"
        );
    }

    #[test]
    fn a_file_is_read_up_to_the_size_limit() {
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
