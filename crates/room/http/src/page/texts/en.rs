//! English.

use super::list::Texts;
use crate::page::grammar::{Category, Grammar, Unit, one_or_other};

pub(super) static TEXTS: Texts = Texts {
    grammar: Grammar {
        separator: ",",
        digits_grouped: 4,
        category: one_or_other,
        seconds: Unit::plain(&[
            (Category::One, "{n} second"),
            (Category::Other, "{n} seconds"),
        ]),
        minutes: Unit::plain(&[
            (Category::One, "{n} minute"),
            (Category::Other, "{n} minutes"),
        ]),
        hours: Unit::plain(&[(Category::One, "{n} hour"), (Category::Other, "{n} hours")]),
        days: Unit::plain(&[(Category::One, "{n} day"), (Category::Other, "{n} days")]),
    },
    name: "English",
    heading_line: "You are in line",
    heading_lot: "You are in the waiting room",
    heading_early: "Not open yet",
    heading_rejecting: "Not available right now",
    heading_cookies: "Please allow cookies",
    heading_turn: "It is your turn",
    what: "This is a waiting room. It lets in only as many people at a time as this site can \
           handle.",
    full: "This site is busy right now. You go in as soon as there is room for you.",
    line_moves: "People are going in now, one after the other. You go in as soon as it is your \
                 turn.",
    lot_moves: "People are going in now. This time the draw picked others. The next draw is a new \
                chance.",
    queue_all: "Everyone waits here for now. The organiser will let people in later.",
    paused: "The organiser has paused entry. Nobody goes in right now, and nobody loses their \
             place.",
    early: "You’re early. Keep this page open; we’ll let you in after the opening.",
    early_unknown: "The opening time has not been set yet.",
    rejecting: "This site is not taking new visitors right now, and there is no line. Please come \
                back later.",
    store_away: "A part of this waiting room is not reachable. Until it is back, nobody new goes \
                 in, so that the site is not overloaded.",
    recovering: "After a fault, we are counting again who is inside. Until that is done, nobody \
                 new goes in, so that the site is not overloaded.",
    recovering_unknown: "How long that takes is not known yet.",
    origin_down: "The site is not answering properly right now. Nobody new goes in until it does, \
                  because you would only see an error.",
    order_first: "First come, first served.",
    order_draw: "At the opening, a draw decides the order of everyone who is here. Coming earlier \
                 or reloading changes nothing. Anyone who comes later stands behind.",
    order_drawn: "A draw decided the order of everyone who was here before the opening. Anyone \
                  who came later stands behind, in order of arrival.",
    order_lot: "There is no fixed order: whenever there is room, a draw decides who goes in next. \
                Reloading changes nothing.",
    kept: "Your place is saved. You can reload this page, or close it and come back within \
           {time}. A cookie remembers you, so use the same browser.",
    label_ahead: "People ahead of you",
    label_waiting: "People waiting",
    label_moved: "Let in during the last minute",
    label_wait: "Estimated wait",
    label_progress: "Your progress so far",
    label_since: "Waiting since",
    label_opens: "Opens",
    label_reopens: "Entry expected to continue",
    label_updated: "Last updated",
    label_room: "Waiting room",
    label_message: "Message from the organiser",
    label_language: "Language",
    nobody: "Nobody",
    unknown: "Not known yet",
    unknown_organiser: "Not known: the organiser decides",
    unknown_fault: "Not known until this is fixed",
    any_moment: "Any moment now",
    up_to: "Up to {time}",
    about: "About {time}",
    more_than: "More than {time}",
    less_than_minute: "Less than a minute",
    more_than_day: "More than a day",
    not_sent: "Your form was not sent.",
    send_again: "When it is your turn, please send it again.",
    cookies: "Your browser does not seem to keep cookies from this site. Without a cookie, we \
              can’t save your place. Please allow cookies and reload.",
    check: "Check now",
    change: "Change",
    live: "This page updates itself.",
    checked: "Checked just now: you are still waiting.",
    reloads: "This page checks again by itself every {time}.",
    turn_now: "You are going in now.",
    turn_again: "Trying again in 20 seconds.",
    turn_send: "Please send your form again.",
    offline: "You are offline.",
    cut: "No connection at the moment.",
    safe: "Your place is safe for {time} from the last update. Trying again.",
};
