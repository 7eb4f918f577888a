//! Arabic.

use super::list::Texts;
use crate::page::grammar::{Category, Grammar, Unit, arabic};

pub(super) static TEXTS: Texts = Texts {
    grammar: Grammar {
        separator: ",",
        digits_grouped: 4,
        category: arabic,
        seconds: Unit {
            alone: &[
                (Category::Zero, "{n} ثانية"),
                (Category::One, "ثانية واحدة"),
                (Category::Two, "ثانيتان"),
                (Category::Few, "{n} ثوانٍ"),
                (Category::Many, "{n} ثانية"),
                (Category::Other, "{n} ثانية"),
            ],
            bound: &[
                (Category::Zero, "{n} ثانية"),
                (Category::One, "ثانية واحدة"),
                (Category::Two, "ثانيتين"),
                (Category::Few, "{n} ثوانٍ"),
                (Category::Many, "{n} ثانية"),
                (Category::Other, "{n} ثانية"),
            ],
        },
        minutes: Unit {
            alone: &[
                (Category::Zero, "{n} دقيقة"),
                (Category::One, "دقيقة واحدة"),
                (Category::Two, "دقيقتان"),
                (Category::Few, "{n} دقائق"),
                (Category::Many, "{n} دقيقة"),
                (Category::Other, "{n} دقيقة"),
            ],
            bound: &[
                (Category::Zero, "{n} دقيقة"),
                (Category::One, "دقيقة واحدة"),
                (Category::Two, "دقيقتين"),
                (Category::Few, "{n} دقائق"),
                (Category::Many, "{n} دقيقة"),
                (Category::Other, "{n} دقيقة"),
            ],
        },
        hours: Unit {
            alone: &[
                (Category::Zero, "{n} ساعة"),
                (Category::One, "ساعة واحدة"),
                (Category::Two, "ساعتان"),
                (Category::Few, "{n} ساعات"),
                (Category::Many, "{n} ساعة"),
                (Category::Other, "{n} ساعة"),
            ],
            bound: &[
                (Category::Zero, "{n} ساعة"),
                (Category::One, "ساعة واحدة"),
                (Category::Two, "ساعتين"),
                (Category::Few, "{n} ساعات"),
                (Category::Many, "{n} ساعة"),
                (Category::Other, "{n} ساعة"),
            ],
        },
        days: Unit {
            alone: &[
                (Category::Zero, "{n} يوم"),
                (Category::One, "يوم واحد"),
                (Category::Two, "يومان"),
                (Category::Few, "{n} أيام"),
                (Category::Many, "{n} يومًا"),
                (Category::Other, "{n} يوم"),
            ],
            bound: &[
                (Category::Zero, "{n} يوم"),
                (Category::One, "يوم واحد"),
                (Category::Two, "يومين"),
                (Category::Few, "{n} أيام"),
                (Category::Many, "{n} يومًا"),
                (Category::Other, "{n} يوم"),
            ],
        },
    },
    name: "العربية",
    heading_line: "أنت في الطابور",
    heading_lot: "أنت في غرفة الانتظار",
    heading_early: "لم يُفتح بعد",
    heading_rejecting: "غير متاح حاليًا",
    heading_cookies: "يُرجى السماح بملفات تعريف الارتباط",
    heading_turn: "حان دورك",
    what: "هذه غرفة انتظار. لا تُدخل في الوقت نفسه إلا عددًا من الأشخاص يستطيع هذا الموقع خدمتهم \
           جيدًا.",
    full: "عدد الزوار في الداخل الآن هو أقصى ما يستطيع هذا الموقع خدمته جيدًا. ستدخل حالما يتوفر \
           مكان لك.",
    line_moves: "يدخل الزوار الآن واحدًا بعد الآخر. ستدخل حالما يحين دورك.",
    lot_moves: "يدخل الزوار الآن، وقد وقعت القرعة هذه المرة على غيرك. القرعة التالية فرصة جديدة.",
    queue_all: "يُبقي المنظِّم الجميع هنا في الوقت الحالي، وسيسمح بالدخول لاحقًا.",
    paused: "أوقف المنظِّم الدخول مؤقتًا. لن يدخل أحد حتى يُستأنف الدخول، ولن يفقد أحد مكانه.",
    early: "يُفتح في الوقت المذكور أدناه. لقد وصلت مبكرًا، ولا يلزمك فعل أي شيء حتى ذلك الحين.",
    early_unknown: "المكان مغلق، ولم يُحدَّد وقت الافتتاح بعد.",
    rejecting: "لا يستقبل هذا الموقع زوارًا جددًا في الوقت الحالي، ولا يوجد طابور. يُرجى العودة \
                لاحقًا.",
    store_away: "يتعذر الوصول إلى جزء من غرفة الانتظار هذه. لن يدخل أحد حتى يعود، كي لا يمتلئ \
                 الموقع فوق طاقته.",
    recovering: "بعد عطل، يُعاد إحصاء كل من في الداخل. لن يدخل أحد جديد حتى ينتهي ذلك، كي لا \
                 يمتلئ الموقع فوق طاقته.",
    recovering_unknown: "لا يُعرف بعد كم سيستغرق ذلك.",
    origin_down: "الموقع خلف غرفة الانتظار هذه لا يستجيب كما ينبغي. لن يدخل أحد حتى يستجيب، فلن \
                  ترى سوى خطأ.",
    order_first: "من وصل أولًا يدخل أولًا.",
    order_draw: "كل من يوجد هنا قبل الافتتاح يشارك في قرعة واحدة لتحديد الترتيب، فلا فائدة من \
                 الوصول أبكر. ومن يصل لاحقًا يقف خلفهم.",
    order_drawn: "حُدِّد بالقرعة ترتيب من كانوا هنا قبل الافتتاح. ومن وصلوا لاحقًا يقفون خلفهم \
                  بترتيب وصولهم.",
    order_lot: "لا يوجد ترتيب ثابت: كلما توفر مكان، تُحدِّد القرعة من يدخل. إعادة تحميل الصفحة لا \
                تفيد ولا تضر.",
    kept: "مكانك محفوظ. يمكنك إعادة تحميل هذه الصفحة، أو إغلاقها والعودة خلال {time}، دون أن تخسر \
           شيئًا. يُحفظ مكانك في ملف تعريف ارتباط، لذا استخدم المتصفح نفسه.",
    label_ahead: "عدد الأشخاص أمامك",
    label_waiting: "عدد المنتظرين",
    label_moved: "دخلوا في الدقيقة الأخيرة",
    label_wait: "مدة الانتظار المقدَّرة",
    label_progress: "تقدمك في الطابور حتى الآن",
    label_since: "تنتظر منذ",
    label_opens: "الافتتاح",
    label_reopens: "يُتوقع استئناف الدخول",
    label_updated: "آخر تحديث",
    label_room: "غرفة الانتظار",
    label_message: "رسالة من المنظِّم",
    label_language: "اللغة",
    nobody: "لا أحد",
    unknown: "غير معروف بعد",
    unknown_organiser: "غير معروف: القرار للمنظِّم",
    unknown_fault: "غير معروف حتى إصلاح العطل",
    any_moment: "في أي لحظة",
    up_to: "حتى {time}",
    about: "نحو {time}",
    more_than: "أكثر من {time}",
    less_than_minute: "أقل من دقيقة",
    more_than_day: "أكثر من يوم",
    not_sent: "لم يُمرَّر ما أرسلته.",
    send_again: "عندما يحين دورك، يُرجى إرساله مرة أخرى.",
    cookies: "يبدو أن هذا المتصفح لا يحتفظ بملفات تعريف الارتباط من هذا الموقع. من دونها لا يمكن \
              تذكر مكانك. يُرجى السماح بها وإعادة تحميل الصفحة.",
    check: "تحقق الآن",
    change: "تغيير",
    live: "تتحدث هذه الصفحة تلقائيًا.",
    checked: "جرى التحقق الآن: ما زلت تنتظر.",
    reloads: "تسأل هذه الصفحة مجددًا تلقائيًا؛ الفاصل الزمني: {time}.",
    turn_now: "سيتم إدخالك الآن.",
    turn_again: "محاولة جديدة بعد 20 ثانية.",
    turn_send: "يُرجى أن ترسل مرة أخرى ما لم يُمرَّر.",
    offline: "أنت غير متصل بالإنترنت.",
    cut: "لا يوجد اتصال في الوقت الحالي.",
    safe: "مكانك محفوظ ({time} من آخر تحديث)؛ تجري محاولة جديدة.",
};
