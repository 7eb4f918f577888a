//! Languages of the waiting page.
//!
//! Only their names and tags. The page's crate has the texts and negotiates the language with
//! the browser.

/// A language that the waiting page is translated into.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Language {
    /// العربية
    Arabic,
    /// Deutsch
    German,
    /// English
    #[default]
    English,
    /// Español
    Spanish,
    /// Français
    French,
    /// עברית
    Hebrew,
    /// Italiano
    Italian,
    /// 日本語
    Japanese,
    /// 한국어
    Korean,
    /// Nederlands
    Dutch,
    /// Polski
    Polish,
    /// Português
    Portuguese,
    /// Русский
    Russian,
    /// Svenska
    Swedish,
    /// Türkçe
    Turkish,
    /// Українська
    Ukrainian,
    /// 简体中文
    SimplifiedChinese,
    /// 繁體中文
    TraditionalChinese,
}

/// Languages by the names that a config may use: our own tag, then the tag that hosted waiting
/// rooms use.
pub(crate) const LANGUAGES: &[(&str, Language)] = &[
    ("ar", Language::Arabic),
    ("ar-EG", Language::Arabic),
    ("de", Language::German),
    ("de-DE", Language::German),
    ("en", Language::English),
    ("en-US", Language::English),
    ("es", Language::Spanish),
    ("es-ES", Language::Spanish),
    ("fr", Language::French),
    ("fr-FR", Language::French),
    ("he", Language::Hebrew),
    ("he-IL", Language::Hebrew),
    ("it", Language::Italian),
    ("it-IT", Language::Italian),
    ("ja", Language::Japanese),
    ("ja-JP", Language::Japanese),
    ("ko", Language::Korean),
    ("ko-KR", Language::Korean),
    ("nl", Language::Dutch),
    ("nl-NL", Language::Dutch),
    ("pl", Language::Polish),
    ("pl-PL", Language::Polish),
    ("pt", Language::Portuguese),
    ("pt-BR", Language::Portuguese),
    ("ru", Language::Russian),
    ("ru-RU", Language::Russian),
    ("sv", Language::Swedish),
    ("sv-SE", Language::Swedish),
    ("tr", Language::Turkish),
    ("tr-TR", Language::Turkish),
    ("uk", Language::Ukrainian),
    ("uk-UA", Language::Ukrainian),
    ("zh-Hans", Language::SimplifiedChinese),
    ("zh-CN", Language::SimplifiedChinese),
    ("zh-Hant", Language::TraditionalChinese),
    ("zh-TW", Language::TraditionalChinese),
];

impl Language {
    /// All languages, in the order of their tags.
    pub const ALL: [Self; 18] = [
        Self::Arabic,
        Self::German,
        Self::English,
        Self::Spanish,
        Self::French,
        Self::Hebrew,
        Self::Italian,
        Self::Japanese,
        Self::Korean,
        Self::Dutch,
        Self::Polish,
        Self::Portuguese,
        Self::Russian,
        Self::Swedish,
        Self::Turkish,
        Self::Ukrainian,
        Self::SimplifiedChinese,
        Self::TraditionalChinese,
    ];

    /// Returns the tag by which browsers know the language (BCP 47).
    #[must_use]
    pub fn tag(self) -> &'static str {
        let mut named = LANGUAGES.iter().filter(|(_, language)| *language == self);
        named.next().map_or("en", |(tag, _)| *tag)
    }

    /// Whether it is written from right to left.
    #[must_use]
    pub const fn is_rtl(self) -> bool {
        matches!(self, Self::Arabic | Self::Hebrew)
    }

    /// Returns the language with exactly this tag, in any case.
    #[must_use]
    pub fn of_tag(tag: &str) -> Option<Self> {
        let mut tags = LANGUAGES.iter();
        tags.find(|(known, _)| known.eq_ignore_ascii_case(tag))
            .map(|(_, language)| *language)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_is_found_by_its_tag() {
        for language in Language::ALL {
            assert_eq!(Language::of_tag(language.tag()), Some(language));
        }
        let named: std::collections::BTreeSet<_> = LANGUAGES.iter().map(|(_, l)| *l).collect();
        assert_eq!(named.len(), Language::ALL.len());
        assert_eq!(
            Language::of_tag("ZH-hant"),
            Some(Language::TraditionalChinese)
        );
        assert_eq!(Language::of_tag("tlh"), None);
    }
}
