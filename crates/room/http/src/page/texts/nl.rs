//! Dutch.

use super::list::Texts;
use crate::page::grammar::{Category, Grammar, Unit, one_or_other};

pub(super) static TEXTS: Texts = Texts {
    grammar: Grammar {
        separator: ".",
        digits_grouped: 4,
        category: one_or_other,
        seconds: Unit::plain(&[
            (Category::One, "{n} seconde"),
            (Category::Other, "{n} seconden"),
        ]),
        minutes: Unit::plain(&[
            (Category::One, "{n} minuut"),
            (Category::Other, "{n} minuten"),
        ]),
        hours: Unit::plain(&[(Category::One, "{n} uur"), (Category::Other, "{n} uur")]),
        days: Unit::plain(&[(Category::One, "{n} dag"), (Category::Other, "{n} dagen")]),
    },
    name: "Nederlands",
    heading_line: "U staat in de wachtrij",
    heading_lot: "U bent in de wachtkamer",
    heading_early: "Nog niet open",
    heading_rejecting: "Op dit moment niet beschikbaar",
    heading_cookies: "Sta cookies toe",
    heading_turn: "U bent aan de beurt",
    what: "Dit is een wachtkamer. Die laat maar zo veel mensen tegelijk binnen als deze site \
           aankan.",
    full: "Het is nu druk op deze site. U gaat naar binnen zodra er plaats voor u is.",
    line_moves: "Er gaan nu mensen naar binnen, een voor een. U gaat naar binnen zodra u aan de \
                 beurt bent.",
    lot_moves: "Er gaan nu mensen naar binnen. Deze keer zijn anderen ingeloot. De volgende \
                loting is een nieuwe kans.",
    queue_all: "Iedereen wacht voorlopig hier. De organisator laat later mensen binnen.",
    paused: "De organisator heeft de toegang onderbroken. Op dit moment gaat niemand naar binnen, \
             en niemand verliest zijn plaats.",
    early: "U bent vroeg. Houd deze pagina open; na de opening laten we u binnen.",
    early_unknown: "De tijd van de opening is nog niet bekend.",
    rejecting: "Deze site laat op dit moment geen nieuwe bezoekers toe, en er is geen wachtrij. \
                Kom later terug.",
    store_away: "Een deel van deze wachtkamer is niet bereikbaar. Tot het terug is, gaat niemand \
                 anders naar binnen, zodat de site niet overbelast raakt.",
    recovering: "Na een storing tellen we opnieuw wie binnen is. Tot dat klaar is, gaat niemand \
                 anders naar binnen, zodat de site niet overbelast raakt.",
    recovering_unknown: "Hoe lang dat duurt is nog niet bekend.",
    origin_down: "De site reageert nu niet goed. Tot dat is hersteld, gaat niemand anders naar \
                  binnen, want u zou alleen een fout zien.",
    order_first: "Wie het eerst komt, gaat het eerst naar binnen.",
    order_draw: "Bij de opening wordt de volgorde geloot van iedereen die hier is. Eerder komen \
                 of opnieuw laden verandert niets. Wie later komt, staat erachter.",
    order_drawn: "De volgorde van iedereen die hier voor de opening was, is geloot. Wie later \
                  kwam, staat erachter, in volgorde van aankomst.",
    order_lot: "Er is geen vaste volgorde: zodra er plaats is, wordt geloot wie naar binnen gaat. \
                Opnieuw laden verandert niets.",
    kept: "Uw plaats is bewaard. U kunt deze pagina opnieuw laden, of sluiten en binnen {time} \
           terugkomen. Een cookie onthoudt uw plaats; gebruik dus dezelfde browser.",
    label_ahead: "Mensen voor u",
    label_waiting: "Wachtende mensen",
    label_moved: "Binnengelaten in de laatste minuut",
    label_wait: "Geschatte wachttijd",
    label_progress: "Uw voortgang tot nu toe",
    label_since: "U wacht sinds",
    label_opens: "Opening",
    label_reopens: "Verwachte hervatting van de toegang",
    label_updated: "Laatst bijgewerkt",
    label_room: "Wachtkamer",
    label_message: "Bericht van de organisator",
    label_language: "Taal",
    nobody: "Niemand",
    unknown: "Nog niet bekend",
    unknown_organiser: "Niet bekend: de organisator beslist",
    unknown_fault: "Niet bekend tot dit is hersteld",
    any_moment: "Elk moment",
    up_to: "Hoogstens {time}",
    about: "Ongeveer {time}",
    more_than: "Meer dan {time}",
    less_than_minute: "Minder dan een minuut",
    more_than_day: "Meer dan een dag",
    not_sent: "Uw formulier is niet verzonden.",
    send_again: "Verzend het opnieuw als u aan de beurt bent.",
    cookies: "Uw browser lijkt geen cookies van deze site te bewaren. Zonder cookie kunnen we uw \
              plaats niet bewaren. Sta cookies toe en laad opnieuw.",
    check: "Nu kijken",
    change: "Wijzigen",
    live: "Deze pagina werkt zichzelf bij.",
    checked: "Zojuist gekeken: u wacht nog.",
    reloads: "Deze pagina kijkt vanzelf opnieuw, elke {time}.",
    turn_now: "U gaat nu naar binnen.",
    turn_again: "Nieuwe poging over 20 seconden.",
    turn_send: "Verzend uw formulier opnieuw.",
    offline: "U bent offline.",
    cut: "Op dit moment geen verbinding.",
    safe: "Uw plaats blijft {time} bewaard vanaf de laatste update. Er volgt een nieuwe poging.",
};
