//! Swedish.

use super::list::Texts;
use crate::page::grammar::{Category, Grammar, Unit, one_or_other};

pub(super) static TEXTS: Texts = Texts {
    grammar: Grammar {
        separator: "\u{a0}",
        digits_grouped: 4,
        category: one_or_other,
        seconds: Unit::plain(&[
            (Category::One, "{n} sekund"),
            (Category::Other, "{n} sekunder"),
        ]),
        minutes: Unit::plain(&[
            (Category::One, "{n} minut"),
            (Category::Other, "{n} minuter"),
        ]),
        hours: Unit::plain(&[
            (Category::One, "{n} timme"),
            (Category::Other, "{n} timmar"),
        ]),
        days: Unit::plain(&[(Category::One, "{n} dag"), (Category::Other, "{n} dagar")]),
    },
    name: "Svenska",
    heading_line: "Du står i kön",
    heading_lot: "Du är i väntrummet",
    heading_early: "Inte öppet ännu",
    heading_rejecting: "Inte tillgängligt just nu",
    heading_cookies: "Tillåt kakor",
    heading_turn: "Det är din tur",
    what: "Det här är ett väntrum. Det släpper bara in så många åt gången som webbplatsen klarar.",
    full: "Det är många på webbplatsen just nu. Du kommer in så snart det finns plats för dig.",
    line_moves: "Just nu släpps besökare in, en efter en. Du kommer in så snart det är din tur.",
    lot_moves: "Just nu släpps besökare in. Den här gången lottades andra fram. Nästa lottning är \
                en ny chans.",
    queue_all: "Alla väntar här för tillfället. Arrangören släpper in besökare senare.",
    paused: "Arrangören har pausat insläppet. Just nu släpps ingen in, och ingen förlorar sin \
             plats.",
    early: "Du är tidig. Låt sidan vara öppen; vi släpper in dig efter öppningen.",
    early_unknown: "Tiden för öppningen är inte bestämd ännu.",
    rejecting: "Webbplatsen tar inte emot nya besökare just nu, och det finns ingen kö. Kom \
                tillbaka senare.",
    store_away: "En del av väntrummet kan inte nås. Ingen ny släpps in förrän den är tillbaka, så \
                 att webbplatsen inte överbelastas.",
    recovering: "Efter ett fel räknar vi om vilka som är inne. Ingen ny släpps in förrän det är \
                 klart, så att webbplatsen inte överbelastas.",
    recovering_unknown: "Hur lång tid det tar är inte känt ännu.",
    origin_down: "Webbplatsen svarar inte som den ska just nu. Ingen ny släpps in förrän den gör \
                  det, för du skulle bara se ett fel.",
    order_first: "Den som kom först kommer in först.",
    order_draw: "När det öppnar lottas ordningen för alla som är här. Att komma tidigare eller \
                 ladda om ändrar ingenting. Den som kommer senare står bakom.",
    order_drawn: "Ordningen för alla som var här före öppningen lottades. Den som kom senare står \
                  bakom, i ankomstordning.",
    order_lot: "Det finns ingen fast ordning: när det finns plats lottas det vem som kommer in. \
                Att ladda om ändrar ingenting.",
    kept: "Din plats är sparad. Du kan ladda om sidan, eller stänga den och komma tillbaka inom \
           {time}. En kaka minns dig, så använd samma webbläsare.",
    label_ahead: "Personer före dig",
    label_waiting: "Personer som väntar",
    label_moved: "Insläppta den senaste minuten",
    label_wait: "Uppskattad väntetid",
    label_progress: "Så långt har du kommit",
    label_since: "Du har väntat sedan",
    label_opens: "Öppnar",
    label_reopens: "Insläppet väntas fortsätta",
    label_updated: "Senast uppdaterad",
    label_room: "Väntrum",
    label_message: "Meddelande från arrangören",
    label_language: "Språk",
    nobody: "Ingen",
    unknown: "Inte känt ännu",
    unknown_organiser: "Inte känt: arrangören bestämmer",
    unknown_fault: "Inte känt förrän felet är åtgärdat",
    any_moment: "När som helst",
    up_to: "Högst {time}",
    about: "Ungefär {time}",
    more_than: "Mer än {time}",
    less_than_minute: "Mindre än en minut",
    more_than_day: "Mer än ett dygn",
    not_sent: "Ditt formulär skickades inte.",
    send_again: "Skicka det igen när det är din tur.",
    cookies: "Din webbläsare verkar inte spara kakor från den här webbplatsen. Utan kaka kan vi \
              inte spara din plats. Tillåt kakor och ladda om.",
    check: "Kolla nu",
    change: "Byt",
    live: "Sidan uppdateras av sig själv.",
    checked: "Nyss kollat: du väntar fortfarande.",
    reloads: "Sidan kollar igen av sig själv; mellanrum: {time}.",
    turn_now: "Du släpps in nu.",
    turn_again: "Nytt försök om 20 sekunder.",
    turn_send: "Skicka formuläret igen.",
    offline: "Du är inte uppkopplad.",
    cut: "Ingen anslutning för tillfället.",
    safe: "Din plats är säker i {time} från den senaste uppdateringen. Försöker igen.",
};
