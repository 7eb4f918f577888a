//! Signature algorithms and the kinds of their keys (RFC 7518, section 3.1; RFC 8037).

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters, VerificationAlgorithm,
};

/// Signature algorithm of a token.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(missing_docs, reason = "named as in the RFC")]
pub enum Algorithm {
    Rs256,
    Rs384,
    Rs512,
    Ps256,
    Ps384,
    Ps512,
    Es256,
    Es384,
    EdDsa,
}

/// Kind of a public key.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    Rsa,
    P256,
    P384,
    Ed25519,
}

impl Algorithm {
    /// All algorithms.
    pub const ALL: [Self; 9] = [
        Self::Rs256,
        Self::Rs384,
        Self::Rs512,
        Self::Ps256,
        Self::Ps384,
        Self::Ps512,
        Self::Es256,
        Self::Es384,
        Self::EdDsa,
    ];

    /// Returns the value of `alg`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Rs384 => "RS384",
            Self::Rs512 => "RS512",
            Self::Ps256 => "PS256",
            Self::Ps384 => "PS384",
            Self::Ps512 => "PS512",
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::EdDsa => "EdDSA",
        }
    }

    /// Returns the algorithm of this name, which is case-sensitive.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.name() == name)
    }

    /// Returns the kind of its keys.
    pub(crate) const fn kind(self) -> Kind {
        match self {
            Self::Es256 => Kind::P256,
            Self::Es384 => Kind::P384,
            Self::EdDsa => Kind::Ed25519,
            _ => Kind::Rsa,
        }
    }

    /// Returns the parameters for an RSA key.
    pub(crate) fn rsa(self) -> Option<&'static RsaParameters> {
        Some(match self {
            Self::Rs256 => &RSA_PKCS1_2048_8192_SHA256,
            Self::Rs384 => &RSA_PKCS1_2048_8192_SHA384,
            Self::Rs512 => &RSA_PKCS1_2048_8192_SHA512,
            Self::Ps256 => &RSA_PSS_2048_8192_SHA256,
            Self::Ps384 => &RSA_PSS_2048_8192_SHA384,
            Self::Ps512 => &RSA_PSS_2048_8192_SHA512,
            Self::Es256 | Self::Es384 | Self::EdDsa => return None,
        })
    }

    /// Returns the algorithm for any other key: signatures of JWS have a fixed length and are not
    /// ASN.1.
    pub(crate) fn curve(self) -> Option<&'static dyn VerificationAlgorithm> {
        Some(match self {
            Self::Es256 => &ECDSA_P256_SHA256_FIXED,
            Self::Es384 => &ECDSA_P384_SHA384_FIXED,
            Self::EdDsa => &ED25519,
            _ => return None,
        })
    }
}
