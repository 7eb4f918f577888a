//! What goes wrong with TLS, and what it means.

use std::error::Error;
use std::io;

use tokio_rustls::rustls;

use super::reply::Refusal;

pub(super) fn refusal(error: &rustls::Error) -> Refusal {
    use rustls::{AlertDescription, Error};
    match error {
        Error::InvalidCertificate(_) => (
            "shows a certificate that is not trusted",
            "check ca_file in [store], and that the certificate names the host of the address",
        ),
        Error::AlertReceived(AlertDescription::CertificateRequired) => (
            "wants a certificate from us, which we do not have",
            "set tls-auth-clients no at the server; a password shows who we are",
        ),
        Error::InvalidMessage(_) => (
            "does not speak TLS at that port",
            "check the port in [store], or write the address as redis:// if it has no TLS",
        ),
        _ => (
            "does not agree with us on TLS",
            "see what it says, and that it allows TLS 1.2 or 1.3",
        ),
    }
}

/// The error of TLS that caused this one.
pub(super) fn cause<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<rustls::Error>() {
            return Some(error);
        }
        // An I/O error hides what it carries behind a method of its own.
        let carried = error.downcast_ref::<io::Error>();
        next = match carried.and_then(io::Error::get_ref) {
            Some(carried) => Some(carried),
            None => error.source(),
        };
    }
    None
}
