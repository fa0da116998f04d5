"""Texts that are not made of words: tables of single digits, dumps, notations, art."""

from __future__ import annotations

import base64
import json
import random
import string
import uuid
from collections.abc import Callable

Piece = Callable[[random.Random], str]


def _row(cell: Piece, separator: str, *, columns: int = 12, end: str = "\n") -> Piece:
    """A row of a table: cells with a separator between them."""
    return lambda chance: separator.join(cell(chance) for _ in range(columns)) + end


def _digit(chance: random.Random) -> str:
    return chance.choice(string.digits)


def _letter(chance: random.Random) -> str:
    return chance.choice(string.ascii_lowercase)


def _capital(chance: random.Random) -> str:
    return chance.choice(string.ascii_uppercase)


def _any_of(*choices: str) -> Piece:
    return lambda chance: chance.choice(choices)


def _number(low: int, high: int, layout: str = "d") -> Piece:
    return lambda chance: format(chance.randint(low, high), layout)


def _decimal(low: float, high: float, places: int) -> Piece:
    return lambda chance: f"{chance.uniform(low, high):.{places}f}"


def _letters(alphabet: str, shortest: int, longest: int, end: str = " ") -> Piece:
    return lambda chance: "".join(chance.choices(alphabet, k=chance.randint(shortest, longest))) + end


_two = _number(10, 99)
_name = _letters(string.ascii_lowercase, 3, 8, "")


def _among(*ranges: tuple[int, int]) -> Piece:
    pool = [chr(code) for first, last in ranges for code in range(first, last + 1)]
    return lambda chance: chance.choice(pool)


def _words(text: str, separator: str = " ") -> Piece:
    pool = text.split()
    return lambda chance: chance.choice(pool) + separator


_ROMAN = ("M", "CM", "D", "CD", "C", "XC", "L", "XL", "X", "IX", "V", "IV", "I")


def _roman(chance: random.Random) -> str:
    number, text = chance.randint(1, 3_999), ""
    values = (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1)
    for value, sign in zip(values, _ROMAN, strict=True):
        text += sign * (number // value)
        number %= value
    return text + " "


def _morse(chance: random.Random) -> str:
    return "".join(chance.choices(".-", k=chance.randint(1, 5))) + chance.choice(("  ", " ", " ", " / "))


def _chess_move(chance: random.Random) -> str:
    squares = [chance.choice("abcdefgh") + chance.choice("12345678") for _ in range(2)]
    moves = [chance.choice(("", "N", "B", "R", "Q", "K")) + chance.choice(("", "x")) + square for square in squares]
    return f"{chance.randint(1, 60)}. {moves[0]}{chance.choice(('', '', '+'))} {chance.choice((moves[1], 'O-O'))} "


def _fen(chance: random.Random) -> str:
    ranks = ("".join(chance.choices("rnbqkpRNBQKP12345678", k=chance.randint(1, 8))) for _ in range(8))
    return f"{'/'.join(ranks)} {chance.choice('wb')} KQkq - {chance.randint(0, 50)} {chance.randint(1, 99)}\n"


def _hex_dump(chance: random.Random) -> str:
    data = chance.randbytes(16)
    pairs = " ".join(f"{data[at]:02x}{data[at + 1]:02x}" for at in range(0, 16, 2))
    shown = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in data)
    return f"{chance.randrange(1 << 20) * 16:08x}: {pairs}  {shown}\n"


def _offset_dump(chance: random.Random) -> str:
    return f"{chance.randrange(1 << 12) * 16:08x}  {chance.randbytes(16).hex(' ')}\n"


def _records(chance: random.Random) -> str:
    record = {"id": chance.randint(0, 10**9), "k": "".join(chance.choices(string.ascii_letters[:29], k=8))}
    return json.dumps(record) + ", "


def _box_table(chance: random.Random) -> str:
    rows = [f"│ {_name(chance):8} │ {_two(chance):6} │\n" for _ in range(2)]
    rule = f"├{'─' * 10}┼{'─' * 8}┤\n"
    return f"┌{'─' * 10}┬{'─' * 8}┐\n{rule.join(rows)}└{'─' * 10}┴{'─' * 8}┘\n"


def _minified_json(chance: random.Random) -> str:
    record = {_letter(chance): chance.randint(0, 9), "v": [chance.randint(0, 9) for _ in range(6)], "k": None}
    return json.dumps(record, separators=(",", ":")) + ","


def _smiles(chance: random.Random) -> str:
    return "".join(chance.choices(("C", "c1", "O", "N", "(=O)", "[C@@H]", "C(", ")", "=", "#", "n", "Cl"), k=12)) + "\n"


def _sudoku(chance: random.Random) -> str:
    return "|".join("".join(chance.choices("123456789.", k=3)) for _ in range(3)) + "\n"


def _diff_line(chance: random.Random) -> str:
    return chance.choice("+- ") + "\t" * chance.randint(0, 4) + chance.choice(("}", "{", "});", "]", "];", "")) + "\n"


def _cell_address(chance: random.Random) -> str:
    return f"=${_capital(chance)}${chance.randint(1, 99)}+{_capital(chance)}{chance.randint(1, 99)};"


def _mac(chance: random.Random) -> str:
    return ":".join(f"{byte:02x}" for byte in chance.randbytes(6)) + " "


def _ipv6(chance: random.Random) -> str:
    return ":".join(f"{chance.randrange(1 << 16):x}" for _ in range(8)) + "\n"


def _timestamp(chance: random.Random) -> str:
    clock = f"{chance.randint(0, 23):02}:{chance.randint(0, 59):02}:{chance.randint(0, 59):02}"
    return f"20{chance.randint(10, 29)}-{chance.randint(1, 12):02}-{chance.randint(1, 28):02}T{clock}Z\n"


def _svg_path(chance: random.Random) -> str:
    points = " ".join(f"{chance.uniform(-9, 99):.1f},{chance.uniform(-9, 99):.2f}" for _ in range(3))
    return chance.choice("MmLlCcSsQqAaz") + points


def _license_key(chance: random.Random) -> str:
    signs = string.ascii_uppercase + string.digits
    return "-".join("".join(chance.choices(signs, k=5)) for _ in range(5)) + "\n"


def _flags(chance: random.Random) -> str:
    return "".join(chr(0x1F1E6 + chance.randrange(26)) for _ in range(2))


def _zalgo(chance: random.Random) -> str:
    return _letter(chance) + "".join(chr(chance.randint(0x300, 0x36F)) for _ in range(chance.randint(1, 4)))


def _latex(chance: random.Random) -> str:
    term = rf"\frac{{{_letter(chance)}_{{{_digit(chance)}}}}}{{{_letter(chance)}^{{{_digit(chance)}}}}}"
    return term + chance.choice(("+", "-", r"\cdot ", r" \leq ", r"\\ &= "))


_SEPARATORS = {"tabs": "\t", "commas": ",", "semicolons": ";", "pipes": "|", "padded pipes": " | ", "spaces": " "}
_CELLS: dict[str, Piece] = {
    "digits": _digit,
    "letters": _letter,
    "capitals": _capital,
    "two digits": _number(10, 99),
    "long numbers": _number(10**5, 10**9),
    "decimals": _decimal(0, 9, 1),
    "signs": _any_of("+", "-", "0", "*"),
    "truth values": _any_of("T", "F", "1", "0"),
    "empty cells": _any_of("", "", "1", "x"),
}
_TABLES = {
    f"{cells} between {name}": _row(cell, separator)
    for cells, cell in _CELLS.items()
    for name, separator in _SEPARATORS.items()
}
_NUMBERS: dict[str, Piece] = {
    "digits on lines": lambda chance: _digit(chance) + "\n",
    "digits on lines of Windows": lambda chance: _digit(chance) + "\r\n",
    "digits between two tabs": _row(_digit, "\t\t"),
    "digits between two spaces": _row(_digit, "  "),
    "digits between three spaces": _row(_digit, "   "),
    "digits after tabs and spaces": _row(_digit, "\t "),
    "quoted digits": _row(lambda chance: f'"{_digit(chance)}"', ","),
    "indented digits": lambda chance: "\t" * chance.randint(1, 6) + _digit(chance) + "\n",
    "a JSON matrix of digits": lambda chance: f"[{_row(_digit, ',', columns=8, end='')(chance)}],",
    "a printed matrix": lambda chance: f"[{_row(_decimal(-9, 9, 8), '  ', columns=4, end='')(chance)}]\n",
    "a sparse matrix": lambda chance: f"{chance.randint(0, 999)} {chance.randint(0, 999)} {_digit(chance)}\n",
    "floats": lambda chance: f"{chance.random()} ",
    "a table of floats": _row(lambda chance: str(round(chance.uniform(0, 100), 4)), ",", columns=8),
    "integers": lambda chance: f"{chance.randint(0, 10**9)} ",
    "JSON with integers": _records,
    "bits": _letters("01", 8, 8),
    "bits without spaces": _letters("01", 64, 64, "\n"),
    "octal": _letters("01234567", 3, 3),
    "scientific numbers": lambda chance: f"{chance.uniform(-9, 9):.6e} ",
    "phone numbers": lambda chance: f"+{_two(chance)} ({_two(chance)}0) {_two(chance)}5-{_two(chance)}{_two(chance)}\n",
    "dates": _timestamp,
    "versions": lambda chance: ".".join(str(chance.randint(0, 20)) for _ in range(4)) + " ",
    "coordinates": lambda chance: f"({chance.uniform(-90, 90):.6f}, {chance.uniform(-180, 180):.6f}) ",
    "degrees": lambda chance: f"{chance.randint(0, 89)}°{chance.randint(0, 59)}′{chance.randint(0, 59)}″N ",
    "fractions": lambda chance: f"{_digit(chance)}/{_digit(chance)} ",
    "a sudoku": _sudoku,
    "dice": lambda chance: f"{chance.randint(1, 9)}d{chance.choice((4, 6, 8, 20))}+{_digit(chance)} ",
    "IPv4 addresses": lambda chance: ".".join(str(byte) for byte in chance.randbytes(4)) + "\n",
    "IPv6 addresses": _ipv6,
    "MAC addresses": _mac,
    "UUIDs": lambda chance: str(uuid.UUID(bytes=chance.randbytes(16))) + "\n",
    "a hex dump": _hex_dump,
    "a hex dump with offsets": _offset_dump,
    "hashes of files": lambda chance: f"{chance.randbytes(20).hex()}  file{chance.randint(0, 99)}.txt\n",
    "hex between tabs": _row(_number(0, 255, "02x"), "\t"),
    "hex between spaces": _row(_number(0, 255, "02X"), " "),
    "colours": lambda chance: f"#{chance.randrange(1 << 24):06x};",
    "escaped bytes": lambda chance: f"\\x{chance.randrange(256):02x}",
    "escaped characters": lambda chance: f"\\u{chance.randrange(1 << 16):04x}",
    "base32": lambda chance: base64.b32encode(chance.randbytes(40)).decode(),
    "lines of base64": lambda chance: base64.b64encode(chance.randbytes(57)).decode() + "\n",
    "license keys": _license_key,
    "minified JSON": _minified_json,
}
_NOTATIONS: dict[str, Piece] = {
    "DNA": _letters("ACGT", 60, 60, "\n"),
    "lowercase DNA": _letters("acgt", 10, 10),
    "codons": _letters("ACGU", 3, 3),
    "proteins": _letters("ACDEFGHIKLMNPQRSTVWY", 60, 60, "\n"),
    "molecules": _smiles,
    "morse": _morse,
    "roman numerals": _roman,
    "chess moves": _chess_move,
    "chess positions": _fen,
    "guitar tabs": lambda chance: (
        chance.choice("EADGBe") + "|" + "".join(chance.choices("--------0235h/7", k=40)) + "|\n"
    ),
    "chords": _words("C Am F G7 Dm Em Bb F#m A/C# Gsus4"),
    "ABC music": lambda chance: chance.choice("abcdefgABCDEFG") + chance.choice(("", "2", "/2", "'", ",", "|", " ")),
    "brainfuck": _any_of(*"+-<>[].,"),
    "regular expressions": _any_of(r"\d{2}", r"[^a-z]", "(?:x|y)*", r"\s+?", "$|^", "[0-9A-F]{4}"),
    "LaTeX": _latex,
    "paths of an SVG": _svg_path,
    "cells of a spreadsheet": _cell_address,
    "lone letters on lines": lambda chance: _letter(chance) + "\n",
    "spelled words": _row(_letter, "-", columns=7, end=" "),
    "initials": _row(_capital, ".", columns=3, end=". "),
    "camel case": lambda chance: _capital(chance) + _letter(chance),
    "alternating case": lambda chance: _letter(chance) + _capital(chance),
    "letters and digits": lambda chance: _letter(chance) + _digit(chance),
    "random letters": _letters(string.ascii_letters, 60, 60, ""),
    "snake case": lambda chance: _letter(chance) + _letter(chance) + "_",
    "consonants": _letters("bcdfghjklmnpqrstvwxz", 3, 9),
    "leet": _letters("4b3d1f9hijklmn0pqr57", 3, 9),
    "email addresses": lambda chance: f"{_name(chance)}@{_name(chance)}.com\n",
    "query strings": lambda chance: f"{_letter(chance)}={chance.randint(0, 99)}&",
}
_LAYOUT: dict[str, Piece] = {
    "empty lines": lambda chance: "\n" * chance.randint(1, 9) + _letter(chance),
    "lines of Windows": lambda _: "\r\n",
    "mixed line ends": _any_of("\n", "\r\n", "\r", "\n\n"),
    "indentation by tabs": lambda chance: "\t" * chance.randint(0, 7) + "}\n",
    "indentation by spaces": lambda chance: " " * chance.randint(0, 24) + "}\n",
    "odd indentation": lambda chance: " " * chance.choice((1, 3, 5, 7, 9, 11, 13)) + _letter(chance) + "\n",
    "deep indentation": lambda chance: " " * chance.randint(0, 40) + "x\n",
    "tabs and spaces": lambda chance: chance.choice("\t ") * chance.randint(1, 3),
    "letters after many spaces": lambda chance: " " * chance.randint(2, 60) + _letter(chance),
    "dotted lines": lambda chance: "." * chance.randint(1, 40) + _digit(chance) + "\n",
    "runs of punctuation": lambda chance: chance.choice(string.punctuation) * chance.randint(1, 12),
    "pairs of punctuation": lambda chance: chance.choice(string.punctuation) + " ",
    "punctuation on lines": lambda chance: chance.choice(string.punctuation) + "\n",
    "punctuation between tabs": lambda chance: chance.choice(string.punctuation) + "\t",
    "a table of pipes": lambda chance: "|" + "|".join(" " * chance.randint(0, 6) for _ in range(8)) + "|\n",
    "a grid": lambda chance: chance.choice(("+---+---+---+\n", "|   | x | o |\n", "+===+===+===+\n")),
    "a maze": lambda chance: "".join(chance.choices("#.", k=30)) + "\n",
    "the game of life": lambda chance: "".join(chance.choices(" *", k=40)) + "\n",
    "ASCII art": lambda chance: "".join(chance.choices("  _/\\|()-'`.,", k=50)) + "\n",
    "a diff of brackets": _diff_line,
    "a tree of files": lambda chance: (
        "│   " * chance.randint(0, 4) + chance.choice(("├── ", "└── ")) + _letter(chance) + "\n"
    ),
    "boxes": lambda chance: chance.choice(
        ("┌──┬──┬──┐\n", "├──┼──┼──┤\n", f"│ {_digit(chance)} │ {_letter(chance)} │  │\n")
    ),
    "box tables": _box_table,
    "blocks": _any_of(*"█▓▒░▀▄▌▐ \n"),
    "sparklines": _any_of(*"▁▂▃▄▅▆▇█"),
    "arrows": _any_of(*"←↑→↓↔⇒⇐⇔⟶↦"),
    "mathematics": _any_of(*"∀∃∈∉⊂∪∩≤≥≠≈∑∏∫√∞∂∇± "),
    "bullets": _any_of("• ", "◦ ", "▪ ", "‣ ", "– ", "✓ ", "✗ "),
    "quotes": _any_of(*"“”‘’«»‹›„‚…—–"),
    "cards": lambda chance: chance.choice("A23456789TJQK") + chance.choice("♠♥♦♣") + " ",
    "chess figures": _any_of(*"♔♕♖♗♘♙♚♛♜♝♞♟ "),
    "ANSI colours": lambda chance: f"\x1b[{chance.randint(30, 47)}m{_letter(chance)}\x1b[0m",
}
_SCRIPTS: dict[str, Piece] = {
    "flags": _flags,
    "emoji": _among((0x1F600, 0x1F64F), (0x1F300, 0x1F5FF), (0x1F900, 0x1F9FF)),
    "emoji between spaces": lambda chance: chr(chance.randint(0x1F600, 0x1F64F)) + " ",
    "skin colours": lambda chance: "👍👋🙏👏✊"[chance.randrange(5)] + chr(chance.randint(0x1F3FB, 0x1F3FF)),
    "keycaps": lambda chance: _digit(chance) + "\ufe0f\u20e3",
    "Zalgo": _zalgo,
    "kana": _words("これは テスト です ファイル を ひらく とき エラー が でます サーバー", ""),
    "halfwidth kana": _among((0xFF66, 0xFF9D)),
    "fullwidth": _among((0xFF01, 0xFF5E)),
    "Thai": _words("การ ทดสอบ โปรแกรม ไม่ ได้ ผล ครับ ข้อมูล ระบบ เปิด ไฟล์", ""),
    "Arabic": _among((0x621, 0x63A), (0x641, 0x64A)),
    "vowel marks of Arabic": lambda chance: chr(chance.randint(0x628, 0x63A)) + chr(chance.randint(0x64B, 0x652)),
    "Hebrew": _among((0x5D0, 0x5EA)),
    "vowel marks of Hebrew": lambda chance: chr(chance.randint(0x5D0, 0x5EA)) + chr(chance.randint(0x5B0, 0x5BC)),
    "Greek": _among((0x391, 0x3A1), (0x3A3, 0x3A9), (0x3B1, 0x3C9)),
    "Devanagari": _words("यह एक परीक्षण है फ़ाइल खोलने में त्रुटि कृपया फिर से देखें"),
    "Tamil": _words("இது ஒரு சோதனை கோப்பு திறக்க முடியவில்லை பிழை மீண்டும்"),
    "Khmer": _words("នេះ ជា ការ សាកល្បង ឯកសារ មិន អាច បើក បាន", ""),
    "Tibetan": _among((0xF40, 0xF47), (0xF49, 0xF6C)),
    "Georgian": _words("ეს არის ტესტი ფაილი ვერ იხსნება შეცდომა კიდევ სცადეთ"),
    "Cherokee": _among((0x13A0, 0x13F4)),
    "Ethiopic": _among((0x1200, 0x1248)),
    "Mongolian": _among((0x1820, 0x1877)),
    "cuneiform": _among((0x12000, 0x12399)),
    "hieroglyphs": _among((0x13000, 0x1342E)),
    "mathematical letters": _among((0x1D400, 0x1D454), (0x1D456, 0x1D49C)),
    "circled letters": _among((0x24B6, 0x24E9)),
    "phonetics": _among((0x250, 0x2AF)),
    "superscripts": _any_of(*"⁰¹²³⁴⁵⁶⁷⁸⁹₀₁₂₃₄₅₆₇₈₉"),
    "Latin with accents": _among((0xC0, 0xD6), (0xD8, 0xF6), (0xF8, 0x17F)),
    "Vietnamese": _words("đây là một bài kiểm tra không mở được tệp lỗi hệ thống xin thử lại"),
    "pinyin": _words("nǐ hǎo mā má mǎ mà zhōng guó xiè nǚ lǜ wǒ"),
    "Han": _among((0x4E00, 0x9FA5)),
    "one Han character per line": lambda chance: chr(chance.randint(0x4E00, 0x9FA5)) + "\n",
    "Han characters and digits": lambda chance: chance.choice("年月日时分秒元第") + _digit(chance),
    "private use": _among((0xE000, 0xF8FF)),
    "invisible characters": _any_of("\u200b", "\u200c", "\u200d", "\ufeff", "\u2060", "a"),
    "replacement characters": _any_of("\ufffd", "\ufffd\ufffd", "a", " "),
    "wrong encoding": lambda chance: "Ã" + chance.choice("¤¶¼Ÿ©¨ª«¢") + _letter(chance),
}
ODD: dict[str, Piece] = {**_TABLES, **_NUMBERS, **_NOTATIONS, **_LAYOUT, **_SCRIPTS}
"""For each kind of text, a function that makes one more piece."""


def odd_text(kind: str, seed: int, size: int) -> str:
    """An odd text of so many characters."""
    chance, pieces, length = random.Random(seed), list[str](), 0
    while length < size:
        pieces.append(ODD[kind](chance))
        length += len(pieces[-1])
    return "".join(pieces)[:size]
