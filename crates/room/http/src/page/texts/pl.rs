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
    heading_early: "Jeszcze nie otwarto",
    heading_rejecting: "Chwilowo niedostępne",
    heading_cookies: "Zezwól na pliki cookie",
    heading_turn: "Twoja kolej",
    what: "To jest poczekalnia. Wpuszcza naraz tylko tyle osób, ile ta strona może obsłużyć.",
    full: "Na stronie jest teraz duży ruch. Wejdziesz, gdy tylko będzie dla Ciebie miejsce.",
    line_moves: "Właśnie wchodzą kolejne osoby, jedna po drugiej. Wejdziesz, gdy tylko przyjdzie \
                 Twoja kolej.",
    lot_moves: "Właśnie wchodzą kolejne osoby. Tym razem wylosowano innych. Następne losowanie to \
                nowa szansa.",
    queue_all: "Na razie wszyscy czekają tutaj. Organizator zacznie wpuszczać później.",
    paused: "Organizator wstrzymał wpuszczanie. W tej chwili nikt nie wchodzi i nikt nie traci \
             swojego miejsca.",
    early: "Jesteś przed czasem. Zostaw tę stronę otwartą; wpuścimy Cię po otwarciu.",
    early_unknown: "Godzina otwarcia nie została jeszcze ustalona.",
    rejecting: "Ta strona nie przyjmuje teraz nowych osób i nie ma kolejki. Wróć później.",
    store_away: "Część tej poczekalni jest niedostępna. Dopóki nie wróci, nikt nowy nie wchodzi, \
                 aby nie przeciążyć strony.",
    recovering: "Po awarii liczymy od nowa osoby, które są w środku. Do tego czasu nikt nowy nie \
                 wchodzi, aby nie przeciążyć strony.",
    recovering_unknown: "Nie wiadomo jeszcze, jak długo to potrwa.",
    origin_down: "Strona nie odpowiada teraz prawidłowo. Do czasu naprawy nikt nowy nie wchodzi, \
                  bo widać byłoby tylko błąd.",
    order_first: "Kto przyszedł pierwszy, wchodzi pierwszy.",
    order_draw: "Przy otwarciu losujemy kolejność wszystkich, którzy tu są. Wcześniejsze \
                 przyjście ani odświeżanie strony niczego nie zmienia. Kto przyjdzie później, \
                 stoi dalej.",
    order_drawn: "Kolejność wszystkich, którzy byli tu przed otwarciem, wylosowano. Kto przyszedł \
                  później, stoi dalej, w kolejności przyjścia.",
    order_lot: "Nie ma stałej kolejności: gdy jest miejsce, losowanie decyduje, kto wejdzie. \
                Odświeżanie strony niczego nie zmienia.",
    kept: "Twoje miejsce jest zapisane. Możesz odświeżyć tę stronę albo ją zamknąć i wrócić w \
           ciągu {time}. Pamięta je plik cookie, więc używaj tej samej przeglądarki.",
    label_ahead: "Osoby przed Tobą",
    label_waiting: "Osoby czekające",
    label_moved: "Weszło w ostatniej minucie",
    label_wait: "Szacowany czas oczekiwania",
    label_progress: "Twój postęp do tej pory",
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
    not_sent: "Twój formularz nie został wysłany.",
    send_again: "Gdy przyjdzie Twoja kolej, wyślij go jeszcze raz.",
    cookies: "Twoja przeglądarka chyba nie zapisuje plików cookie z tej strony. Bez nich nie \
              możemy zapisać Twojego miejsca. Zezwól na pliki cookie i odśwież stronę.",
    check: "Sprawdź teraz",
    change: "Zmień",
    live: "Ta strona odświeża się sama.",
    checked: "Sprawdzono przed chwilą: nadal czekasz.",
    reloads: "Ta strona sama sprawdza ponownie co {time}.",
    turn_now: "Właśnie wchodzisz.",
    turn_again: "Kolejna próba za 20 sekund.",
    turn_send: "Wyślij formularz jeszcze raz.",
    offline: "Jesteś offline.",
    cut: "W tej chwili brak połączenia.",
    safe: "Twoje miejsce jest bezpieczne przez {time} od ostatniej aktualizacji. Próbujemy \
           ponownie.",
};
