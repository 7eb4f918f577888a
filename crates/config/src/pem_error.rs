//! Error of a PEM file, with its remedy.

use std::error::Error;
use std::fmt;

use rustls_pki_types::pem;

/// Error of a file that is not valid PEM.
#[derive(Debug)]
pub struct PemError(pem::Error);

impl From<pem::Error> for PemError {
    fn from(error: pem::Error) -> Self {
        Self(error)
    }
}

impl fmt::Display for PemError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            pem::Error::Io(error) => error.fmt(f),
            pem::Error::MissingSectionEnd { .. } => {
                f.write_str("a section has no -----END line; the file was cut short: copy it again")
            }
            pem::Error::IllegalSectionStart { .. } => f.write_str(
                "a line that begins with -----BEGIN does not end in -----; copy the file again",
            ),
            pem::Error::Base64Decode(_) => f.write_str(
                "the text between -----BEGIN and -----END is not base64; copy the file again, \
                 as plain text",
            ),
            pem::Error::NoItemsFound => f.write_str(
                "it contains nothing of this kind; PEM is plain text with -----BEGIN lines; \
                 `openssl x509` or `openssl pkey` with `-inform der` makes it from DER",
            ),
            _ => f.write_str("it is not valid PEM"),
        }
    }
}

impl Error for PemError {}

#[cfg(test)]
mod tests {
    use rustls_pki_types::CertificateDer;
    use rustls_pki_types::pem::PemObject as _;

    use super::*;

    #[test]
    fn the_error_of_a_broken_file_names_the_cause_without_bytes() {
        let check = |pem: &str, expected: &str| {
            let error = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap_err();
            let message = PemError(error).to_string();
            assert!(message.contains(expected), "{pem}: {message}");
            assert!(!message.contains("45, 45"), "{message}");
        };
        let begin = "-----BEGIN CERTIFICATE-----\n";
        check(&format!("{begin}AAAA\n"), "cut short");
        check("-----BEGIN CERTIFICATE\nAAAA\n", "does not end in -----");
        check(
            &format!("{begin}=?=\n-----END CERTIFICATE-----\n"),
            "not base64",
        );
        check("nothing\n", "-inform der");
    }
}
