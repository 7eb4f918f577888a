//! Errors of TLS, and their meaning.

use std::error::Error;
use std::io;

use tokio_rustls::rustls;

use super::reply::Rejection;

pub(super) fn rejection(error: &rustls::Error) -> Rejection {
    use rustls::{AlertDescription, Error};
    match error {
        Error::InvalidCertificate(_) => (
            "has a certificate that is not trusted",
            "check ca_file in [store], and that the certificate names the host of the address",
        ),
        Error::AlertReceived(AlertDescription::CertificateRequired) => (
            "requires a client certificate, which Anteroom does not have",
            "set tls-auth-clients no at the server, and use a password",
        ),
        Error::InvalidMessage(_) => (
            "does not speak TLS at that port",
            "check the port in [store], or write the address as redis:// if it has no TLS",
        ),
        _ => (
            "fails the TLS handshake",
            "see its error, and check that it allows TLS 1.2 or 1.3",
        ),
    }
}

/// Returns the error of TLS that caused this one.
pub(super) fn cause<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<rustls::Error>() {
            return Some(error);
        }
        // An I/O error returns its inner error by a method of its own.
        let inner = error.downcast_ref::<io::Error>();
        next = match inner.and_then(io::Error::get_ref) {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    None
}
