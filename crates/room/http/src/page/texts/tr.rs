//! Turkish.

use super::list::Texts;
use crate::page::grammar::{Category, Grammar, Unit, one_or_other};

pub(super) static TEXTS: Texts = Texts {
    grammar: Grammar {
        separator: ".",
        digits_grouped: 4,
        category: one_or_other,
        seconds: Unit::plain(&[
            (Category::One, "{n} saniye"),
            (Category::Other, "{n} saniye"),
        ]),
        minutes: Unit::plain(&[
            (Category::One, "{n} dakika"),
            (Category::Other, "{n} dakika"),
        ]),
        hours: Unit::plain(&[(Category::One, "{n} saat"), (Category::Other, "{n} saat")]),
        days: Unit::plain(&[(Category::One, "{n} gün"), (Category::Other, "{n} gün")]),
    },
    name: "Türkçe",
    heading_line: "Sıradasınız",
    heading_lot: "Bekleme odasındasınız",
    heading_early: "Henüz açılmadı",
    heading_rejecting: "Şu anda kullanılamıyor",
    heading_cookies: "Lütfen çerezlere izin verin",
    heading_turn: "Sıra sizde",
    what: "Burası bir bekleme odası. Aynı anda yalnızca bu sitenin kaldırabileceği kadar kişiyi \
           içeri alır.",
    full: "Site şu anda yoğun. Size yer açılır açılmaz gireceksiniz.",
    line_moves: "Şu anda ziyaretçiler birer birer içeri alınıyor. Sıra size gelir gelmez \
                 gireceksiniz.",
    lot_moves: "Şu anda ziyaretçiler içeri alınıyor. Bu kez kurada başkaları çıktı. Bir sonraki \
                kura yeni bir şanstır.",
    queue_all: "Şimdilik herkes burada bekliyor. Organizatör ziyaretçileri daha sonra içeri \
                alacak.",
    paused: "Organizatör girişleri duraklattı. Şu anda kimse içeri alınmıyor ve kimse yerini \
             kaybetmiyor.",
    early: "Erken geldiniz. Bu sayfayı açık tutun; açılıştan sonra sizi içeri alacağız.",
    early_unknown: "Açılış saati henüz belirlenmedi.",
    rejecting: "Bu site şu anda yeni ziyaretçi almıyor ve sıra da yok. Lütfen daha sonra tekrar \
                gelin.",
    store_away: "Bu bekleme odasının bir bölümüne ulaşılamıyor. Site aşırı yüklenmesin diye, \
                 düzelene kadar yeni kimse içeri alınmıyor.",
    recovering: "Bir arızadan sonra içeridekileri yeniden sayıyoruz. Site aşırı yüklenmesin diye, \
                 bu bitene kadar yeni kimse içeri alınmıyor.",
    recovering_unknown: "Bunun ne kadar süreceği henüz bilinmiyor.",
    origin_down: "Site şu anda düzgün yanıt vermiyor. Düzelene kadar yeni kimse içeri alınmıyor; \
                  yalnızca bir hata görürdünüz.",
    order_first: "Önce gelen önce girer.",
    order_draw: "Açılışta burada olan herkesin sırası kurayla belirlenir. Erken gelmek ya da \
                 sayfayı yenilemek bir şey değiştirmez. Sonra gelenler arkada yer alır.",
    order_drawn: "Açılıştan önce burada olan herkesin sırası kurayla belirlendi. Sonra gelenler \
                  geliş sırasıyla arkada yer alır.",
    order_lot: "Sabit bir sıra yok: yer açıldığında kimin gireceği kurayla belirlenir. Sayfayı \
                yenilemek bir şey değiştirmez.",
    kept: "Yeriniz kayıtlı. Bu sayfayı yenileyebilir ya da kapatıp {time} içinde geri \
           dönebilirsiniz. Yerinizi bir çerez hatırlar; lütfen aynı tarayıcıyı kullanın.",
    label_ahead: "Önünüzdeki kişi sayısı",
    label_waiting: "Bekleyen kişi sayısı",
    label_moved: "Son dakikada içeri alınan",
    label_wait: "Tahmini bekleme süresi",
    label_progress: "Şimdiye kadarki ilerlemeniz",
    label_since: "Bekleme başlangıcı",
    label_opens: "Açılış",
    label_reopens: "Girişlerin yeniden başlaması bekleniyor",
    label_updated: "Son güncelleme",
    label_room: "Bekleme odası",
    label_message: "Organizatörün mesajı",
    label_language: "Dil",
    nobody: "Kimse yok",
    unknown: "Henüz bilinmiyor",
    unknown_organiser: "Bilinmiyor: organizatör karar verir",
    unknown_fault: "Arıza giderilene kadar bilinmiyor",
    any_moment: "Her an olabilir",
    up_to: "En fazla {time}",
    about: "Yaklaşık {time}",
    more_than: "En az {time}",
    less_than_minute: "Bir dakikadan az",
    more_than_day: "Bir günden fazla",
    not_sent: "Formunuz gönderilmedi.",
    send_again: "Sıra size geldiğinde lütfen yeniden gönderin.",
    cookies: "Tarayıcınız bu sitenin çerezlerini saklamıyor gibi görünüyor. Çerez olmadan \
              yerinizi kaydedemeyiz. Lütfen çerezlere izin verin ve sayfayı yenileyin.",
    check: "Şimdi kontrol et",
    change: "Değiştir",
    live: "Bu sayfa kendiliğinden güncellenir.",
    checked: "Az önce kontrol edildi: hâlâ bekliyorsunuz.",
    reloads: "Bu sayfa kendiliğinden yeniden kontrol eder; aralık: {time}.",
    turn_now: "Şimdi içeri alınıyorsunuz.",
    turn_again: "20 saniye sonra yeniden denenecek.",
    turn_send: "Lütfen formunuzu yeniden gönderin.",
    offline: "Çevrimdışısınız.",
    cut: "Şu anda bağlantı yok.",
    safe: "Yeriniz son güncellemeden itibaren {time} güvende. Yeniden deneniyor.",
};
