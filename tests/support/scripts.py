"""Texts in many scripts and densities, for counters that must not fall short on any of them."""

from __future__ import annotations

import base64
import json
import random
import uuid

_SEED = 7
SENTENCES = {
    "english": "The tests pass on my machine, but the build server says that two of the files were never checked in.",
    "chinese": "请帮我修复这个程序里的错误，并写一个测试。会议将在明天下午三点举行，请准时参加，不要忘记带上报告。",
    "traditional": "請幫我修復這個程式裡的錯誤，並寫一個測試。會議將在明天下午三點舉行，請準時參加，不要忘記帶上報告。",
    "japanese": "このプログラムのバグを修正して、テストを書いてください。会議は明日の午後三時に始まります。",
    "korean": "이 프로그램의 오류를 고치고 테스트를 작성해 주세요. 회의는 내일 오후 세 시에 열립니다.",
    "arabic": "من فضلك أصلح الخطأ في هذا البرنامج واكتب اختبارا. سيبدأ الاجتماع غدا في الساعة الثالثة بعد الظهر.",
    "hebrew": "אנא תקן את השגיאה בתוכנית הזאת וכתוב בדיקה. הפגישה תתחיל מחר בשעה שלוש אחר הצהריים.",
    "hindi": "कृपया इस प्रोग्राम की गलती ठीक करें और एक परीक्षण लिखें। बैठक कल दोपहर तीन बजे शुरू होगी।",
    "tamil": "இந்த நிரலில் உள்ள பிழையை சரிசெய்து ஒரு சோதனையை எழுதுங்கள். கூட்டம் நாளை மதியம் தொடங்கும்.",
    "thai": "กรุณาแก้ไขข้อผิดพลาดในโปรแกรมนี้และเขียนชุดทดสอบ การประชุมจะเริ่มพรุ่งนี้ตอนบ่ายสามโมง",
    "russian": "Исправьте, пожалуйста, ошибку в этой программе и напишите тест. Встреча начнётся завтра в три часа.",
    "greek": "Διορθώστε παρακαλώ το σφάλμα στο πρόγραμμα και γράψτε έναν έλεγχο. Η συνάντηση αρχίζει αύριο στις τρεις.",
    "georgian": "გთხოვთ შეასწოროთ შეცდომა ამ პროგრამაში და დაწეროთ ტესტი. შეხვედრა ხვალ სამ საათზე დაიწყება.",
    "armenian": "Խնդրում եմ ուղղել այս ծրագրի սխալը և գրել թեստ։ Հանդիպումը կսկսվի վաղը ժամը երեքին։",
    "amharic": "እባክዎ በዚህ ፕሮግራም ውስጥ ያለውን ስህተት ያስተካክሉ። ስብሰባው ነገ ከሰዓት በኋላ ይጀምራል።",
    "burmese": "ကျေးဇူးပြု၍ ဤပရိုဂရမ်ရှိ အမှားကို ပြင်ပါ။ အစည်းအဝေးသည် မနက်ဖြန် စတင်မည်။",
    "vietnamese": "Hãy sửa lỗi trong chương trình này và viết một bài kiểm tra. Cuộc họp sẽ bắt đầu vào chiều mai.",
}


CODE = """def fold(path: Path, cut: int) -> View:
    if cut <= 0:
        return View(path)

    kept = path[cut:]
    return View(kept, digest=self.digests.get(path.key(cut)) or "none")
"""


def dense() -> dict[str, str]:
    """What a session holds beside words."""
    chance = random.Random(_SEED)
    records = [{"id": n, "name": f"user{n}", "ok": n % 2 == 0, "score": chance.random()} for n in range(60)]
    return {
        "emoji": "".join(chance.choice("😀😂🥺🚀🔥👍🎉🤖🧠💥✅❌") for _ in range(600)),
        "base64": base64.b64encode(chance.randbytes(6_000)).decode(),
        "hex": chance.randbytes(3_000).hex(),
        "uuids": "\n".join(str(uuid.UUID(bytes=chance.randbytes(16))) for _ in range(80)),
        "minified": json.dumps(records, separators=(",", ":")),
        "escaped": json.dumps(json.dumps(records)),
        "code": CODE * 12,
        "log": "\n".join(
            f"2026-11-15 21:40:{n:02} INFO [main] c.e.Worker - job={n} took {n * 7} ms" for n in range(60)
        ),
    }


def corpus() -> dict[str, str]:
    """Everything above, each long enough that rounding does not matter."""
    return {name: text * 10 for name, text in SENTENCES.items()} | dense()


HOSTILE = {
    "spaces": " ",
    "letter": "a",
    "underscores": "_",
    "dashes": "-",
    "emoji": "😀",
    "cjk": "的",
    "newlines": "\n",
    "nul": "\0",
    "special": "<|endoftext|>",
    "surrogates": "\ud800",
    "combining": "e\u0301\u0302",
    "base64": base64.b64encode(random.Random(_SEED).randbytes(24_000)).decode(),
}
"""What each repeats to a megabyte."""


def hostile(name: str, size: int) -> str:
    """A hostile text of about so many UTF-8 bytes."""
    unit = HOSTILE[name]
    return unit * (size // len(unit.encode("utf-8", "surrogatepass")))
