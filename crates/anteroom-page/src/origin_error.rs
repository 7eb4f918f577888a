//! What does a visitor read when the site behind does not answer?
//!
//! Only the sentences. The page, its status and who gets it are the gateway's.

use anteroom_config::language::Language;

use crate::texts::Texts;

/// The sentences in one language. None of them holds markup.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct OriginErrorWords {
    /// Title: nobody answered.
    pub unreachable: &'static str,
    /// Title: the response took too long.
    pub slow: &'static str,
    /// What to do about it.
    pub again: &'static str,
    /// Whether the language is written from right to left.
    pub is_rtl: bool,
}

impl OriginErrorWords {
    /// The sentences of a language.
    #[must_use]
    pub const fn of(language: Language) -> Self {
        let texts = Texts::of(language);
        Self {
            unreachable: texts.origin_unreachable,
            slow: texts.origin_slow,
            again: texts.origin_again,
            is_rtl: texts.grammar.is_rtl,
        }
    }
}
