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
    heading_line: "Está usted en la cola",
    heading_lot: "Está usted en la sala de espera",
    heading_early: "Todavía no está abierto",
    heading_rejecting: "No disponible en este momento",
    heading_cookies: "Permita las cookies",
    heading_turn: "Es su turno",
    what: "Esta es una sala de espera. Solo deja entrar a la vez a tantas personas como este \
           sitio puede atender.",
    full: "Ahora hay mucha gente en este sitio. Entrará en cuanto haya lugar para usted.",
    line_moves: "Ahora van entrando personas, una tras otra. Entrará en cuanto sea su turno.",
    lot_moves: "Ahora van entrando personas. Esta vez el sorteo ha elegido a otras. El próximo \
                sorteo es una nueva oportunidad.",
    queue_all: "Por ahora todos esperan aquí. El organizador dejará entrar a los visitantes más \
                tarde.",
    paused: "El organizador ha pausado el acceso. Nadie entra en este momento, y nadie pierde su \
             lugar.",
    early: "Ha llegado pronto. Deje esta página abierta; le dejaremos entrar después de la \
            apertura.",
    early_unknown: "La hora de apertura todavía no se ha fijado.",
    rejecting: "Este sitio no admite nuevos visitantes en este momento, y no hay cola. Vuelva más \
                tarde.",
    store_away: "No se puede acceder a una parte de esta sala de espera. Hasta que vuelva no \
                 entra nadie más, para no saturar el sitio.",
    recovering: "Tras un fallo, estamos contando de nuevo quién está dentro. Hasta terminar no \
                 entra nadie más, para no saturar el sitio.",
    recovering_unknown: "Todavía no se sabe cuánto tardará.",
    origin_down: "El sitio no responde bien en este momento. Hasta que lo haga no entra nadie \
                  más, porque solo vería un error.",
    order_first: "Se entra por orden de llegada.",
    order_draw: "En la apertura se sortea el orden de todas las personas que estén aquí. Llegar \
                 antes o recargar la página no cambia nada. Quien llegue después se pone detrás.",
    order_drawn: "El orden de quienes estaban aquí antes de la apertura se decidió por sorteo. \
                  Quien llegó después está detrás, por orden de llegada.",
    order_lot: "No hay un orden fijo: cuando hay lugar, un sorteo decide quién entra. Recargar la \
                página no cambia nada.",
    kept: "Su lugar está guardado. Puede recargar esta página, o cerrarla y volver en menos de \
           {time}. Una cookie guarda su lugar, así que use el mismo navegador.",
    label_ahead: "Personas delante de usted",
    label_waiting: "Personas en espera",
    label_moved: "Han entrado en el último minuto",
    label_wait: "Espera estimada",
    label_progress: "Su avance hasta ahora",
    label_since: "Espera desde",
    label_opens: "Apertura",
    label_reopens: "Se espera reanudar el acceso",
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
    not_sent: "Su formulario no se ha enviado.",
    send_again: "Cuando sea su turno, envíelo otra vez.",
    cookies: "Parece que su navegador no guarda las cookies de este sitio. Sin una cookie no \
              podemos guardar su lugar. Permita las cookies y recargue la página.",
    check: "Comprobar ahora",
    change: "Cambiar",
    live: "Esta página se actualiza sola.",
    checked: "Comprobado ahora mismo: sigue en espera.",
    reloads: "Esta página vuelve a comprobar por sí sola cada {time}.",
    turn_now: "Va a entrar ahora.",
    turn_again: "Nuevo intento en 20 segundos.",
    turn_send: "Envíe otra vez su formulario.",
    offline: "No tiene conexión a internet.",
    cut: "No hay conexión en este momento.",
    safe: "Su lugar está seguro {time} desde la última actualización. Se intenta de nuevo.",
};
