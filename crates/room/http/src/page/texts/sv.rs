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
    what: "Det här är ett väntrum. Det släpper bara in så många åt gången som webbplatsen klarar \
           av väl.",
    full: "Just nu är så många besökare inne som webbplatsen klarar av väl. Du kommer in så snart \
           det finns plats för dig.",
    line_moves: "Just nu släpps besökare in, en efter en. Du kommer in så snart det är din tur.",
    lot_moves: "Just nu släpps besökare in, och den här gången lottades andra fram. Nästa \
                lottning är en ny chans.",
    queue_all: "Arrangören håller kvar alla här för tillfället och släpper in senare.",
    paused: "Arrangören har pausat insläppet. Ingen släpps in förrän det återupptas, och ingen \
             förlorar sin plats.",
    early: "Det öppnar vid tiden nedan. Du är tidig och behöver inte göra något till dess.",
    early_unknown: "Det är inte öppet, och någon tid för öppningen är inte bestämd ännu.",
    rejecting: "Webbplatsen tar inte emot nya besökare just nu, och det finns ingen kö. Kom \
                tillbaka senare.",
    store_away: "En del av väntrummet kan inte nås. Ingen släpps in förrän den är tillbaka, så \
                 att webbplatsen inte blir överfull.",
    recovering: "Efter ett fel räknas alla som är inne på nytt. Ingen ny släpps in förrän det är \
                 klart, så att webbplatsen inte blir överfull.",
    recovering_unknown: "Hur lång tid det tar är inte känt ännu.",
    origin_down: "Webbplatsen bakom väntrummet svarar inte som den ska. Ingen släpps in förrän \
                  den gör det: du skulle bara se ett fel.",
    order_first: "Den som kom först går in först.",
    order_draw: "Alla som är här före öppningen deltar i en lottning om ordningen, så det är \
                 ingen fördel att komma tidigare. De som kommer senare står bakom.",
    order_drawn: "Ordningen för dem som var här före öppningen lottades. De som kom senare står \
                  bakom, i den ordning de kom.",
    order_lot: "Det finns ingen fast ordning: när det finns plats lottas det vem som kommer in. \
                Att ladda om hjälper inte och skadar inte.",
    kept: "Din plats hålls. Du kan ladda om sidan, eller stänga den och komma tillbaka inom \
           {time}, utan att förlora något. Den sparas med en kaka, så använd samma webbläsare.",
    label_ahead: "Personer före dig",
    label_waiting: "Personer som väntar",
    label_moved: "Insläppta den senaste minuten",
    label_wait: "Uppskattad väntetid",
    label_progress: "Din väg genom kön hittills",
    label_since: "Du väntar sedan",
    label_opens: "Öppnar",
    label_reopens: "Beräknas släppa in igen",
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
    not_sent: "Det du skickade har inte förts vidare.",
    send_again: "Skicka det igen när det är din tur.",
    cookies: "Webbläsaren verkar inte spara kakor från den här webbplatsen. Utan kaka kan din \
              plats inte kommas ihåg. Tillåt kakor och ladda om.",
    check: "Kolla nu",
    change: "Byt",
    live: "Sidan uppdateras av sig själv.",
    checked: "Nyss kollat: du väntar fortfarande.",
    reloads: "Sidan frågar igen av sig själv; mellanrum: {time}.",
    turn_now: "Du släpps in nu.",
    turn_again: "Nytt försök om 20 sekunder.",
    turn_send: "Skicka igen det som inte fördes vidare.",
    offline: "Du är inte uppkopplad.",
    cut: "Ingen anslutning för tillfället.",
    safe: "Din plats är sparad i {time} från den senaste uppdateringen; försöker igen.",
};
