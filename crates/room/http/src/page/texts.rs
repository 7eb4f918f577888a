//! Which words does the page have in each language?
//!
//! One file for each language, all filled from one list, so that the compiler misses what a
//! translator forgot. Which of the texts stand on a page is decided in `words`.
//!
//! For translators: short, plain sentences, polite address, no idioms. `{time}` stands for a length
//! of time; where the sentence says so below, in the form that follows a preposition.

mod ar;
mod de;
mod en;
mod es;
mod fr;
mod he;
mod it;
mod ja;
mod ko;
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

use crate::page::grammar::Grammar;

macro_rules! texts {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Everything that is said in one language.
        pub(crate) struct Texts {
            /// How numbers and lengths of time are written.
            pub(crate) grammar: Grammar,
            $($(#[$doc])* pub(crate) $name: &'static str,)*
        }

        impl Texts {
            /// Every text by its name.
            pub(crate) fn all(&self) -> Vec<(&'static str, &'static str)> {
                vec![$((stringify!($name), self.$name),)*]
            }
        }
    };
}

texts! {
    /// What the language calls itself.
    name,
    heading_line,
    heading_lot,
    heading_early,
    heading_rejecting,
    heading_cookies,
    heading_turn,
    /// What this page is.
    what,
    /// Reasons, one or two sentences each.
    full,
    line_moves,
    lot_moves,
    queue_all,
    paused,
    early,
    early_unknown,
    rejecting,
    store_away,
    recovering,
    /// Follows `recovering` where no time is known.
    recovering_unknown,
    origin_down,
    /// Rules of the line.
    order_first,
    order_draw,
    order_drawn,
    order_lot,
    /// `{time}` after a preposition: within so long.
    kept,
    /// Labels, in front of a value.
    label_ahead,
    label_waiting,
    label_moved,
    label_wait,
    label_progress,
    label_since,
    label_opens,
    label_reopens,
    label_updated,
    label_room,
    label_message,
    label_language,
    /// Values.
    nobody,
    unknown,
    unknown_organiser,
    unknown_fault,
    any_moment,
    /// Estimates; `{time}` after a preposition.
    up_to,
    about,
    more_than,
    less_than_minute,
    more_than_day,
    not_sent,
    send_again,
    cookies,
    check,
    change,
    live,
    checked,
    /// `{time}`: how often.
    reloads,
    turn_now,
    turn_again,
    turn_send,
    offline,
    cut,
    /// `{time}`: for so long.
    safe,
}

impl Texts {
    /// The texts of a language.
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
