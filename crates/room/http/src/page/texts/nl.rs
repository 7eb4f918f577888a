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
    heading_line: "U staat in de rij",
    heading_lot: "U bent in de wachtkamer",
    heading_early: "Nog niet open",
    heading_rejecting: "Op dit moment niet beschikbaar",
    heading_cookies: "Sta cookies toe",
    heading_turn: "U bent aan de beurt",
    what: "Dit is een wachtkamer. Die laat maar zo veel mensen tegelijk binnen als deze site goed \
           kan bedienen.",
    full: "Er zijn nu zo veel bezoekers binnen als deze site goed kan bedienen. U gaat naar \
           binnen zodra er plaats voor u is.",
    line_moves: "Er worden nu mensen binnengelaten, een voor een. U gaat naar binnen zodra u aan \
                 de beurt bent.",
    lot_moves: "Er worden nu mensen binnengelaten, en deze keer zijn anderen geloot. De volgende \
                loting is een nieuwe kans.",
    queue_all: "De organisator houdt iedereen voorlopig hier en laat later mensen binnen.",
    paused: "De organisator heeft de toegang onderbroken. Tot die wordt hervat gaat niemand naar \
             binnen, en niemand verliest zijn plaats.",
    early: "Het gaat open op het tijdstip hieronder. U bent vroeg en hoeft tot dan niets te doen.",
    early_unknown: "Het is niet open, en er is nog geen tijd voor de opening bekend.",
    rejecting: "Deze site laat op dit moment geen nieuwe bezoekers toe, en er is geen rij. Kom \
                later terug.",
    store_away: "Een deel van deze wachtkamer is niet bereikbaar. Tot het terug is wordt niemand \
                 binnengelaten, zodat de site niet te vol raakt.",
    recovering: "Na een storing wordt iedereen die binnen is opnieuw geteld. Tot dat klaar is \
                 wordt niemand nieuw binnengelaten, zodat de site niet te vol raakt.",
    recovering_unknown: "Hoe lang dat duurt is nog niet bekend.",
    origin_down: "De site achter deze wachtkamer antwoordt niet goed. Tot dat weer zo is wordt \
                  niemand binnengelaten: u zou alleen een fout zien.",
    order_first: "Wie het eerst kwam, gaat het eerst naar binnen.",
    order_draw: "Iedereen die hier voor de opening is, doet mee aan één loting om de volgorde; \
                 eerder komen is geen voordeel. Wie later komt, staat erachter.",
    order_drawn: "De volgorde van wie hier voor de opening was, is geloot. Wie later kwam, staat \
                  erachter, in volgorde van aankomst.",
    order_lot: "Er is geen vaste volgorde: zodra er plaats is, wordt geloot wie naar binnen gaat. \
                Opnieuw laden helpt niet en schaadt niet.",
    kept: "Uw plaats blijft bewaard. U kunt deze pagina opnieuw laden, of sluiten en binnen \
           {time} terugkomen, zonder iets te verliezen. De plaats wordt onthouden met een cookie; \
           gebruik dus dezelfde browser.",
    label_ahead: "Mensen voor u",
    label_waiting: "Wachtende mensen",
    label_moved: "Binnengelaten in de laatste minuut",
    label_wait: "Geschatte wachttijd",
    label_progress: "Uw weg door de rij tot nu toe",
    label_since: "U wacht sinds",
    label_opens: "Opening",
    label_reopens: "Naar verwachting gaat het verder",
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
    not_sent: "Wat u hebt verstuurd, is niet doorgegeven.",
    send_again: "Verstuur het opnieuw als u aan de beurt bent.",
    cookies: "Deze browser lijkt geen cookies van deze site te bewaren. Zonder cookie kan uw \
              plaats niet worden onthouden. Sta cookies toe en laad opnieuw.",
    check: "Nu kijken",
    change: "Wijzigen",
    live: "Deze pagina werkt zichzelf bij.",
    checked: "Zojuist gekeken: u wacht nog.",
    reloads: "Deze pagina vraagt het vanzelf opnieuw, elke {time}.",
    turn_now: "U wordt nu binnengelaten.",
    turn_again: "Nieuwe poging over 20 seconden.",
    turn_send: "Verstuur opnieuw wat niet is doorgegeven.",
    offline: "U bent offline.",
    cut: "Op dit moment geen verbinding.",
    safe: "Uw plaats blijft {time} bewaard vanaf de laatste keer bijwerken; er volgt een nieuwe \
           poging.",
};
