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
    what: "Burası bir bekleme odası. Bu sitenin iyi hizmet verebileceği kadar kişiyi aynı anda \
           içeri alır.",
    full: "Şu anda içeride bu sitenin iyi hizmet verebileceği kadar ziyaretçi var. Size yer \
           açılır açılmaz gireceksiniz.",
    line_moves: "Şu anda ziyaretçiler birer birer içeri alınıyor. Sıra size gelir gelmez \
                 gireceksiniz.",
    lot_moves: "Şu anda ziyaretçiler içeri alınıyor; bu kez kurada başkaları çıktı. Bir sonraki \
                kura yeni bir şanstır.",
    queue_all: "Düzenleyen şimdilik herkesi burada bekletiyor ve daha sonra içeri alacak.",
    paused: "Düzenleyen girişleri duraklattı. Girişler yeniden başlayana kadar kimse içeri \
             alınmaz ve kimse yerini kaybetmez.",
    early: "Açılış aşağıdaki saatte olacak. Erken geldiniz; o zamana kadar bir şey yapmanız \
            gerekmez.",
    early_unknown: "Şu an kapalı ve açılış saati henüz belirlenmedi.",
    rejecting: "Bu site şu anda yeni ziyaretçi almıyor ve bir sıra da yok. Lütfen daha sonra \
                tekrar gelin.",
    store_away: "Bu bekleme odasının bir bölümüne ulaşılamıyor. Geri gelene kadar kimse içeri \
                 alınmıyor; böylece site aşırı dolmaz.",
    recovering: "Bir arızadan sonra içeridekiler yeniden sayılıyor. Bu bitene kadar yeni kimse \
                 içeri alınmıyor; böylece site aşırı dolmaz.",
    recovering_unknown: "Bunun ne kadar süreceği henüz bilinmiyor.",
    origin_down: "Bu bekleme odasının arkasındaki site düzgün yanıt vermiyor. O zamana kadar \
                  kimse içeri alınmıyor: yalnızca bir hata görürdünüz.",
    order_first: "Önce gelen önce girer.",
    order_draw: "Açılıştan önce burada olan herkes sıra için tek bir kuraya katılır; erken gelmek \
                 avantaj sağlamaz. Sonra gelenler arkada yer alır.",
    order_drawn: "Açılıştan önce burada olanların sırası kurayla belirlendi. Sonra gelenler geliş \
                  sırasıyla arkada yer alır.",
    order_lot: "Sabit bir sıra yok: yer açıldığında kimin gireceği kurayla belirlenir. Sayfayı \
                yenilemek ne yarar ne de zarar sağlar.",
    kept: "Yeriniz saklanıyor. Bu sayfayı yenileyebilir ya da kapatıp {time} içinde geri \
           dönebilirsiniz; hiçbir şey kaybetmezsiniz. Yeriniz bir çerezle hatırlanır; lütfen aynı \
           tarayıcıyı kullanın.",
    label_ahead: "Önünüzdeki kişi sayısı",
    label_waiting: "Bekleyen kişi sayısı",
    label_moved: "Son dakikada içeri alınan",
    label_wait: "Tahmini bekleme süresi",
    label_progress: "Sıradaki ilerlemeniz",
    label_since: "Bekleme başlangıcı",
    label_opens: "Açılış",
    label_reopens: "İçeri almanın yeniden başlaması beklenen zaman",
    label_updated: "Son güncelleme",
    label_room: "Bekleme odası",
    label_message: "Düzenleyenden mesaj",
    label_language: "Dil",
    nobody: "Kimse yok",
    unknown: "Henüz bilinmiyor",
    unknown_organiser: "Bilinmiyor: düzenleyen karar verir",
    unknown_fault: "Arıza giderilene kadar bilinmiyor",
    any_moment: "Her an olabilir",
    up_to: "En fazla {time}",
    about: "Yaklaşık {time}",
    more_than: "En az {time}",
    less_than_minute: "Bir dakikadan az",
    more_than_day: "Bir günden fazla",
    not_sent: "Gönderdiğiniz şey iletilmedi.",
    send_again: "Sıra size geldiğinde lütfen yeniden gönderin.",
    cookies: "Bu tarayıcı bu sitenin çerezlerini saklamıyor gibi görünüyor. Çerez olmadan yeriniz \
              hatırlanamaz. Lütfen çerezlere izin verin ve sayfayı yenileyin.",
    check: "Şimdi denetle",
    change: "Değiştir",
    live: "Bu sayfa kendiliğinden güncellenir.",
    checked: "Az önce denetlendi: hâlâ bekliyorsunuz.",
    reloads: "Bu sayfa kendiliğinden yeniden sorar; aralık: {time}.",
    turn_now: "Şimdi içeri alınıyorsunuz.",
    turn_again: "20 saniye sonra yeniden denenecek.",
    turn_send: "Lütfen iletilmeyen şeyi yeniden gönderin.",
    offline: "Çevrimdışısınız.",
    cut: "Şu anda bağlantı yok.",
    safe: "Yeriniz son güncellemeden itibaren {time} saklanır; yeniden deneniyor.",
};
