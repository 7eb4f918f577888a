//! Texts of the page in each language.
//!
//! Each language has a file, and all of them fill one list, so that a missing text does not
//! compile. `words` decides which texts are on a page.
//!
//! For translators: short, plain sentences, polite address, no idioms, no exclamation marks. `list`
//! explains the placeholders. `{time}` stands for a
//! duration; where the list says so, it has the form that follows a preposition.

mod ar;
mod de;
mod en;
mod es;
mod fr;
mod he;
mod it;
mod ja;
mod ko;
mod list;
mod nl;
mod pl;
mod pt;
mod ru;
mod sv;
mod tr;
mod uk;
mod zh_hans;
mod zh_hant;

use anteroom_config::language::Language;

pub(crate) use list::Texts;

impl Texts {
    /// Returns the texts of a language.
    pub(crate) const fn of(language: Language) -> &'static Self {
        match language {
            Language::Arabic => &ar::TEXTS,
            Language::German => &de::TEXTS,
            Language::English => &en::TEXTS,
            Language::Spanish => &es::TEXTS,
            Language::French => &fr::TEXTS,
            Language::Hebrew => &he::TEXTS,
            Language::Italian => &it::TEXTS,
            Language::Japanese => &ja::TEXTS,
            Language::Korean => &ko::TEXTS,
            Language::Dutch => &nl::TEXTS,
            Language::Polish => &pl::TEXTS,
            Language::Portuguese => &pt::TEXTS,
            Language::Russian => &ru::TEXTS,
            Language::Swedish => &sv::TEXTS,
            Language::Turkish => &tr::TEXTS,
            Language::Ukrainian => &uk::TEXTS,
            Language::SimplifiedChinese => &zh_hans::TEXTS,
            Language::TraditionalChinese => &zh_hant::TEXTS,
        }
    }
}

#[cfg(test)]
mod tests;
