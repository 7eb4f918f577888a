//! Polish.

use super::list::Texts;
use crate::page::grammar::{Category, Grammar, Unit, polish};

pub(super) static TEXTS: Texts = Texts {
    grammar: Grammar {
        separator: "\u{a0}",
        digits_grouped: 5,
        category: polish,
        seconds: Unit {
            alone: &[
                (Category::One, "{n} sekunda"),
                (Category::Few, "{n} sekundy"),
                (Category::Other, "{n} sekund"),
            ],
            bound: &[
                (Category::One, "{n} sekundy"),
                (Category::Few, "{n} sekund"),
                (Category::Other, "{n} sekund"),
            ],
        },
        minutes: Unit {
            alone: &[
                (Category::One, "{n} minuta"),
                (Category::Few, "{n} minuty"),
                (Category::Other, "{n} minut"),
            ],
            bound: &[
                (Category::One, "{n} minuty"),
                (Category::Few, "{n} minut"),
                (Category::Other, "{n} minut"),
            ],
        },
        hours: Unit {
            alone: &[
                (Category::One, "{n} godzina"),
                (Category::Few, "{n} godziny"),
                (Category::Other, "{n} godzin"),
            ],
            bound: &[
                (Category::One, "{n} godziny"),
                (Category::Few, "{n} godzin"),
                (Category::Other, "{n} godzin"),
            ],
        },
        days: Unit {
            alone: &[
                (Category::One, "{n} dzień"),
                (Category::Few, "{n} dni"),
                (Category::Other, "{n} dni"),
            ],
            bound: &[
                (Category::One, "{n} dnia"),
                (Category::Few, "{n} dni"),
                (Category::Other, "{n} dni"),
            ],
        },
    },
    name: "Polski",
    heading_line: "Jesteś w kolejce",
    heading_lot: "Jesteś w poczekalni",
    heading_early: "Jeszcze nieczynne",
    heading_rejecting: "Chwilowo niedostępne",
    heading_cookies: "Zezwól na pliki cookie",
    heading_turn: "Twoja kolej",
    what: "To jest poczekalnia. Wpuszcza naraz tylko tyle osób, ile ta strona może dobrze \
           obsłużyć.",
    full: "W tej chwili w środku jest tyle osób, ile ta strona może dobrze obsłużyć. Wejdziesz, \
           gdy tylko będzie dla Ciebie miejsce.",
    line_moves: "Właśnie wchodzą kolejne osoby, jedna po drugiej. Wejdziesz, gdy tylko przyjdzie \
                 Twoja kolej.",
    lot_moves: "Właśnie wchodzą kolejne osoby, a tym razem wylosowano innych. Następne losowanie \
                to nowa szansa.",
    queue_all: "Organizator zatrzymuje tu na razie wszystkich i zacznie wpuszczać później.",
    paused: "Organizator wstrzymał wpuszczanie. Do wznowienia nikt nie wchodzi i nikt nie traci \
             swojego miejsca.",
    early: "Otwarcie nastąpi o godzinie podanej niżej. Jesteś wcześniej i do tego czasu nie \
            musisz nic robić.",
    early_unknown: "Jest zamknięte, a godzina otwarcia nie została jeszcze ustalona.",
    rejecting: "Ta strona nie przyjmuje teraz nowych osób i nie ma kolejki. Zajrzyj później.",
    store_away: "Część tej poczekalni jest nieosiągalna. Dopóki nie wróci, nikt nie wchodzi, aby \
                 nie przeciążyć strony.",
    recovering: "Po awarii wszystkie osoby w środku są liczone od nowa. Do tego czasu nikt nowy \
                 nie wchodzi, aby nie przeciążyć strony.",
    recovering_unknown: "Nie wiadomo jeszcze, jak długo to potrwa.",
    origin_down: "Strona za tą poczekalnią nie odpowiada prawidłowo. Do tego czasu nikt nie \
                  wchodzi: zobaczysz tam tylko błąd.",
    order_first: "Kto przyszedł pierwszy, wchodzi pierwszy.",
    order_draw: "Wszyscy, którzy są tu przed otwarciem, biorą udział w losowaniu kolejności; \
                 wcześniejsze przyjście nic nie daje. Kto przyjdzie później, stoi dalej.",
    order_drawn: "Kolejność osób, które były tu przed otwarciem, wylosowano. Kto przyszedł \
                  później, stoi dalej, w kolejności przyjścia.",
    order_lot: "Nie ma stałej kolejności: gdy jest miejsce, losuje się, kto wejdzie. Odświeżanie \
                strony nie pomaga ani nie szkodzi.",
    kept: "Twoje miejsce jest zachowane. Możesz odświeżyć tę stronę albo ją zamknąć i wrócić w \
           ciągu {time}, a nic nie stracisz. Miejsce jest zapisane w pliku cookie, więc używaj \
           tej samej przeglądarki.",
    label_ahead: "Osoby przed Tobą",
    label_waiting: "Osoby czekające",
    label_moved: "Weszło w ostatniej minucie",
    label_wait: "Szacowany czas oczekiwania",
    label_progress: "Twoja droga w kolejce do tej pory",
    label_since: "Czekasz od",
    label_opens: "Otwarcie",
    label_reopens: "Przewidywane wznowienie wpuszczania",
    label_updated: "Ostatnia aktualizacja",
    label_room: "Poczekalnia",
    label_message: "Wiadomość od organizatora",
    label_language: "Język",
    nobody: "Nikt",
    unknown: "Jeszcze nie wiadomo",
    unknown_organiser: "Nie wiadomo: decyduje organizator",
    unknown_fault: "Nie wiadomo do czasu naprawy",
    any_moment: "Lada chwila",
    up_to: "Do {time}",
    about: "Około {time}",
    more_than: "Powyżej {time}",
    less_than_minute: "Mniej niż minuta",
    more_than_day: "Ponad jeden dzień",
    not_sent: "To, co wysłano, nie zostało przekazane.",
    send_again: "Gdy przyjdzie Twoja kolej, wyślij to jeszcze raz.",
    cookies: "Ta przeglądarka chyba nie zachowuje plików cookie z tej strony. Bez nich nie można \
              zapamiętać Twojego miejsca. Zezwól na pliki cookie i odśwież stronę.",
    check: "Sprawdź teraz",
    change: "Zmień",
    live: "Ta strona odświeża się sama.",
    checked: "Sprawdzono przed chwilą: nadal czekasz.",
    reloads: "Ta strona sama pyta ponownie; odstęp: {time}.",
    turn_now: "Właśnie wchodzisz.",
    turn_again: "Kolejna próba za 20 sekund.",
    turn_send: "Wyślij jeszcze raz to, co nie zostało przekazane.",
    offline: "Brak internetu.",
    cut: "W tej chwili brak połączenia.",
    safe: "Twoje miejsce jest zachowane ({time} od ostatniej aktualizacji); próbujemy ponownie.",
};
