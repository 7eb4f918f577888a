//! Spanish.

use super::list::Texts;
use crate::page::grammar::{Category, Grammar, Unit, one_or_other};

pub(super) static TEXTS: Texts = Texts {
    grammar: Grammar {
        separator: ".",
        digits_grouped: 5,
        category: one_or_other,
        seconds: Unit::plain(&[
            (Category::One, "{n} segundo"),
            (Category::Other, "{n} segundos"),
        ]),
        minutes: Unit::plain(&[
            (Category::One, "{n} minuto"),
            (Category::Other, "{n} minutos"),
        ]),
        hours: Unit::plain(&[(Category::One, "{n} hora"), (Category::Other, "{n} horas")]),
        days: Unit::plain(&[(Category::One, "{n} día"), (Category::Other, "{n} días")]),
    },
    name: "Español",
    heading_line: "Está en la cola",
    heading_lot: "Está en la sala de espera",
    heading_early: "Todavía no está abierto",
    heading_rejecting: "No disponible en este momento",
    heading_cookies: "Permita las cookies",
    heading_turn: "Es su turno",
    what: "Esta es una sala de espera. Solo deja entrar a la vez a tantas personas como este \
           sitio puede atender bien.",
    full: "Ahora mismo hay dentro tantos visitantes como este sitio puede atender bien. Entrará \
           en cuanto haya sitio para usted.",
    line_moves: "Ahora mismo se está dejando entrar, de uno en uno. Entrará en cuanto sea su \
                 turno.",
    lot_moves: "Ahora mismo se está dejando entrar, y esta vez el sorteo ha elegido a otras \
                personas. El próximo sorteo es una nueva oportunidad.",
    queue_all: "El organizador mantiene aquí a todo el mundo por ahora y dejará entrar más tarde.",
    paused: "El organizador ha pausado el acceso. Nadie entra hasta que se reanude, y nadie \
             pierde su lugar.",
    early: "Se abrirá a la hora que se indica abajo. Ha llegado pronto y no tiene que hacer nada \
            hasta entonces.",
    early_unknown: "No está abierto, y la hora de apertura todavía no se ha fijado.",
    rejecting: "Este sitio no admite nuevos visitantes en este momento, y no hay cola. Vuelva más \
                tarde.",
    store_away: "Una parte de esta sala de espera no responde. Hasta que vuelva no entra nadie, \
                 para que el sitio no se sature.",
    recovering: "Tras un fallo se está contando de nuevo a todas las personas que están dentro. \
                 Hasta terminar no entra nadie más, para que el sitio no se sature.",
    recovering_unknown: "Todavía no se sabe cuánto tardará.",
    origin_down: "El sitio que está detrás de esta sala de espera no responde bien. Hasta que lo \
                  haga no entra nadie: solo vería un error.",
    order_first: "Quien llegó antes entra antes.",
    order_draw: "Todas las personas que estén aquí antes de la apertura participan en un sorteo \
                 del orden; llegar antes no es una ventaja. Las que lleguen después se ponen \
                 detrás.",
    order_drawn: "El orden de quienes estaban aquí antes de la apertura se decidió por sorteo. \
                  Quienes llegaron después están detrás, por orden de llegada.",
    order_lot: "No hay un orden fijo: cuando hay sitio, se decide por sorteo quién entra. \
                Recargar la página ni ayuda ni perjudica.",
    kept: "Su lugar está guardado. Puede recargar esta página, o cerrarla y volver antes de \
           {time}, sin perder nada. Se recuerda con una cookie, así que use el mismo navegador.",
    label_ahead: "Personas delante de usted",
    label_waiting: "Personas que esperan",
    label_moved: "Han entrado en el último minuto",
    label_wait: "Espera estimada",
    label_progress: "Su avance en la cola hasta ahora",
    label_since: "Espera desde",
    label_opens: "Apertura",
    label_reopens: "Se espera volver a dejar entrar",
    label_updated: "Última actualización",
    label_room: "Sala de espera",
    label_message: "Mensaje del organizador",
    label_language: "Idioma",
    nobody: "Nadie",
    unknown: "Todavía no se sabe",
    unknown_organiser: "No se sabe: lo decide el organizador",
    unknown_fault: "No se sabe hasta que se repare",
    any_moment: "En cualquier momento",
    up_to: "Hasta {time}",
    about: "Alrededor de {time}",
    more_than: "Más de {time}",
    less_than_minute: "Menos de un minuto",
    more_than_day: "Más de un día",
    not_sent: "Lo que envió no se ha transmitido.",
    send_again: "Cuando sea su turno, envíelo otra vez.",
    cookies: "Parece que este navegador no guarda las cookies de este sitio. Sin una cookie no se \
              puede recordar su lugar. Permita las cookies y recargue la página.",
    check: "Comprobar ahora",
    change: "Cambiar",
    live: "Esta página se actualiza sola.",
    checked: "Comprobado ahora mismo: sigue en espera.",
    reloads: "Esta página vuelve a preguntar sola cada {time}.",
    turn_now: "Va a entrar ahora.",
    turn_again: "Nuevo intento en 20 segundos.",
    turn_send: "Envíe otra vez lo que no se transmitió.",
    offline: "No tiene conexión a internet.",
    cut: "No hay conexión en este momento.",
    safe: "Su lugar se guarda {time} desde la última actualización; se intenta de nuevo.",
};
