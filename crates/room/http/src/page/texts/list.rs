//! Everything that is said in a language: the one list that each language fills.

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
