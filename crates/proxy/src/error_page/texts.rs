//! Texts of the error pages for a site without a response, by language.
//!
//! For translators: short, plain sentences, polite address. None of them has markup.

use anteroom_config::language::Language;

/// Texts in one language.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Texts {
    /// Title: the site cannot be reached.
    pub(super) unreachable: &'static str,
    /// Title: the response took too long.
    pub(super) slow: &'static str,
    /// Title: this gateway cannot serve the request now.
    pub(super) unavailable: &'static str,
    /// Message: next step of the visitor.
    pub(super) again: &'static str,
}

impl Texts {
    /// Returns the texts of a language.
    #[expect(clippy::too_many_lines, reason = "a table: a row for each language")]
    pub(super) const fn of(language: Language) -> Self {
        match language {
            Language::Arabic => Self {
                unreachable: "تعذّر الوصول إلى الموقع",
                slow: "استغرق الموقع وقتًا طويلًا جدًا في الرد",
                unavailable: "الموقع غير متاح حاليًا",
                again: "هذا ليس خطأً منك. يُرجى المحاولة مرة أخرى بعد دقيقة.",
            },
            Language::German => Self {
                unreachable: "Die Website ist gerade nicht erreichbar",
                slow: "Die Website hat zu lange nicht geantwortet",
                unavailable: "Die Website ist gerade nicht verfügbar",
                again: "Das liegt nicht an Ihnen. Bitte versuchen Sie es in einer Minute noch \
                        einmal.",
            },
            Language::English => Self {
                unreachable: "The site could not be reached",
                slow: "The site took too long to answer",
                unavailable: "The site is not available right now",
                again: "This is not your fault. Please try again in a minute.",
            },
            Language::Spanish => Self {
                unreachable: "No se ha podido acceder al sitio",
                slow: "El sitio ha tardado demasiado en responder",
                unavailable: "El sitio no está disponible en este momento",
                again: "No es culpa suya. Inténtelo de nuevo dentro de un minuto.",
            },
            Language::French => Self {
                unreachable: "Le site est injoignable pour le moment",
                slow: "Le site a mis trop de temps à répondre",
                unavailable: "Le site n’est pas disponible pour le moment",
                again: "Vous n’y êtes pour rien. Veuillez réessayer dans une minute.",
            },
            Language::Hebrew => Self {
                unreachable: "לא ניתן להגיע לאתר",
                slow: "לאתר לקח יותר מדי זמן להשיב",
                unavailable: "האתר אינו זמין כרגע",
                again: "התקלה אינה אצלכם. נא לנסות שוב בעוד דקה.",
            },
            Language::Italian => Self {
                unreachable: "Il sito non è raggiungibile",
                slow: "Il sito ha impiegato troppo tempo a rispondere",
                unavailable: "Il sito non è disponibile al momento",
                again: "Non dipende da te. Riprova tra un minuto.",
            },
            Language::Japanese => Self {
                unreachable: "サイトに接続できませんでした",
                slow: "サイトの応答に時間がかかりすぎました",
                unavailable: "サイトは現在ご利用いただけません",
                again: "お客様側の問題ではありません。1分ほどしてからもう一度お試しください。",
            },
            Language::Korean => Self {
                unreachable: "사이트에 연결할 수 없습니다",
                slow: "사이트의 응답이 너무 오래 걸렸습니다",
                unavailable: "현재 사이트를 이용할 수 없습니다",
                again: "방문자님의 잘못이 아닙니다. 1분 후에 다시 시도해 주세요.",
            },
            Language::Dutch => Self {
                unreachable: "De site is niet bereikbaar",
                slow: "De site deed er te lang over om te antwoorden",
                unavailable: "De site is op dit moment niet beschikbaar",
                again: "Dit ligt niet aan u. Probeer het over een minuut opnieuw.",
            },
            Language::Polish => Self {
                unreachable: "Nie można połączyć się ze stroną",
                slow: "Strona zbyt długo nie odpowiadała",
                unavailable: "Strona jest obecnie niedostępna",
                again: "To nie Twoja wina. Spróbuj ponownie za minutę.",
            },
            Language::Portuguese => Self {
                unreachable: "Não foi possível acessar o site",
                slow: "O site demorou demais para responder",
                unavailable: "O site não está disponível no momento",
                again: "Não é culpa sua. Tente novamente daqui a um minuto.",
            },
            Language::Russian => Self {
                unreachable: "Сайт сейчас недоступен",
                slow: "Сайт слишком долго не отвечал",
                unavailable: "Сайт временно недоступен",
                again: "Это не ваша вина. Пожалуйста, попробуйте ещё раз через минуту.",
            },
            Language::Swedish => Self {
                unreachable: "Det gick inte att nå webbplatsen",
                slow: "Webbplatsen tog för lång tid på sig att svara",
                unavailable: "Webbplatsen är inte tillgänglig just nu",
                again: "Det beror inte på dig. Försök igen om en minut.",
            },
            Language::Turkish => Self {
                unreachable: "Siteye ulaşılamadı",
                slow: "Site yanıt vermekte çok gecikti",
                unavailable: "Site şu anda kullanılamıyor",
                again: "Bu sizden kaynaklanmıyor. Lütfen bir dakika sonra yeniden deneyin.",
            },
            Language::Ukrainian => Self {
                unreachable: "Сайт зараз недоступний",
                slow: "Сайт надто довго не відповідав",
                unavailable: "Сайт тимчасово недоступний",
                again: "Це не ваша провина. Будь ласка, спробуйте ще раз за хвилину.",
            },
            Language::SimplifiedChinese => Self {
                unreachable: "无法连接到网站",
                slow: "网站响应时间过长",
                unavailable: "网站目前无法访问",
                again: "这不是您的问题。请一分钟后再试。",
            },
            Language::TraditionalChinese => Self {
                unreachable: "無法連線到網站",
                slow: "網站回應時間過長",
                unavailable: "網站目前無法使用",
                again: "這不是您的問題。請一分鐘後再試。",
            },
        }
    }
}
