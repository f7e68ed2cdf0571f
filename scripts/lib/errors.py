#!/usr/bin/env python3
"""Checks that docs/errors.md has every message to users, and no other.

usage: scripts/lib/errors.py [FILE]

A message is the text of `#[error("...")]`, `anyhow!`, `bail!` and `ensure!`, and of `tracing::warn!` and
`tracing::error!`. A row of the catalogue may also have any other text of the sources, or part of one, such as a hint.
"""

import re
import sys
from difflib import get_close_matches
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
CATALOGUE = Path("docs/errors.md")
SOURCES = ("mempool", "pmd", "pmd/rdma", "pipelines", "pipelines/images", "pipelines/na62", "pipelines/farm", "apps/common/faults", "apps/common/switch", "apps/common/machine", "apps/farm", "apps/image-stream",
           "apps/l0-trigger", "apps/pollux", "apps/pollux-emulator", "apps/common/app", "apps/common/recording", "apps/common/output", "apps/common/kafka", "apps/bindings/embed", "apps/bindings/python", "apps/bindings/c")

# Messages that no user meets, and why.
UNSEEN = {
    ("pmd/src/drivers/vhost_user/ended.rs", "the port is being stopped"): "ends a session without a word",
}

# Comments, strings, characters and lifetimes, which may hold quotes or brackets that are not syntax.
TOKEN = re.compile(r"""//[^\n]*|/\*.*?\*/|\bb?r(?P<hashes>\#*)"(?P<raw>.*?)"(?P=hashes)
                     |b?"(?P<text>(?:\\.|[^"\\])*)"|'(?:\\.[^'\n]*|[^\\\n'])'|'\w+""", re.DOTALL | re.VERBOSE)
TESTS = re.compile(r"#\[cfg\([^\n]*\btest\b[^\n]*\]\s*mod \w+ \{")
SAYS = re.compile(r"#\[error\(|\b(?:anyhow|bail|ensure|tracing::warn|tracing::error)!\(")
ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}
SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")


def unescaped(text):
    """A string as it is in memory. Numbers of characters are in no message."""
    text = re.sub(r"\\\n\s*", "", text)
    return re.sub(r"\\(.)", lambda escape: ESCAPES.get(escape[1], escape[1]), text)


def plain(text):
    """A text as the catalogue has it: `…` for each place that is filled in, no line ends."""
    text = text.replace("{{", "\0").replace("}}", "\1")
    text = re.sub(r"\{[^{}]*\}", "…", text).replace("\0", "{").replace("\1", "}")
    return " ".join(re.sub("…+", "…", text).split())


class Source:
    """A file without its tests: `code` has the same length, with blanks for comments and the contents of strings;
    `texts` are the strings by their start."""

    def __init__(self, path):
        self.path, text = path, (ROOT / path).read_text(encoding="utf-8")
        self.text = text[:tests.start()] if (tests := TESTS.search(text)) else text
        self.texts, parts, end = {}, [], 0
        for token in TOKEN.finditer(self.text):
            parts.append(self.text[end:token.start()])
            end, inside = token.end(), " " * (len(token[0]) - 2)
            if token["raw"] is None and token["text"] is None:
                parts.append(" " + inside + " ")
                continue
            self.texts[token.start()] = plain(token["raw"] or unescaped(token["text"] or ""))
            parts.append('"' + inside + '"')
        self.code = "".join(parts) + self.text[end:]

    def messages(self):
        """What is said: of each macro or attribute the first argument that is a string. Pairs of a place and a text;
        a text without a word of its own says what its parts say."""
        for call in SAYS.finditer(self.code):
            at = self.argument(call.end())
            if at in self.texts and re.search("[A-Za-z]", self.texts[at]):
                yield f"{self.path}:{self.text.count(chr(10), 0, at) + 1}", self.texts[at]

    def argument(self, at):
        """Where the first argument of a call that is a string begins, or else the end of the call."""
        depth, is_first = 0, True
        while depth >= 0:
            character = self.code[at]
            if is_first and character == '"':
                return at
            depth += (character in "([{") - (character in ")]}")
            is_first = character == "," and depth == 0 or is_first and character.isspace()
            at += 1
        return at


def rows(page):
    """Number and cells of the lines of all tables that begin with a message."""
    wanted = False
    for number, line in enumerate(page.splitlines(), 1):
        if not line.startswith("|"):
            wanted = False
            continue
        cells = [cell.strip().replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if cells[0] == "message":
            wanted = True
        elif wanted and not re.fullmatch("[-|: ]+", line):
            yield number, cells


def listed(page, complain):
    """Messages of the catalogue, with the numbers of their lines."""
    found = {}
    for number, cells in rows(page):
        messages = [plain(text) for _, text in SPAN.findall(cells[0])]
        if len(cells) != 3 or not all(cells) or not messages:
            complain(f"{number}: a row is a message in backticks, its cause, and its remedy")
        for message in messages:
            if message in found:
                complain(f"{number}: listed in line {found[message]} already: {message}")
            found[message] = number
    return found


def row(message):
    quote = "`" * (2 if "`" in message else 1)
    # A backtick that begins or ends the message needs a blank next to those that quote it.
    blank = " " if message[0] == "`" or message[-1] == "`" else ""
    text = message.replace("|", r"\|")
    return f"| {quote}{blank}{text}{blank}{quote} | CAUSE | REMEDY |"


def check(page, sources):
    """The errors of a catalogue, and its number of messages."""
    wrong = []
    catalogue = listed(page, lambda what: wrong.append(f"{CATALOGUE}:{what}"))
    said, unseen = {}, set()
    for source in sources:
        for place, message in source.messages():
            key = source.path.as_posix(), message
            if key in UNSEEN:
                unseen.add(key)
            else:
                said.setdefault(message, place)
    lacking = {message: place for message, place in said.items() if message not in catalogue}
    texts = "\n".join(text for source in sources for text in source.texts.values())
    for message, number in catalogue.items():
        if message not in texts:
            now = "".join(f"; perhaps now {lacking[other]}: {other}"
                          for other in get_close_matches(message, lacking, 1))
            wrong.append(f"{CATALOGUE}:{number}: no longer in the sources: {message}{now}")
    wrong += [f"{place}: {CATALOGUE} lacks: {message}\n    {row(message)}" for message, place in lacking.items()]
    wrong += [f"{path}: no longer says, so that UNSEEN need not have it: {message}"
              for path, message in UNSEEN.keys() - unseen]
    return wrong, len(catalogue)


def main(arguments):
    files = (file.relative_to(ROOT) for folder in SOURCES for file in (ROOT / folder / "src").rglob("*.rs"))
    sources = [Source(path) for path in sorted(files) if path.stem != "tests" and "tests" not in path.parts]
    page = Path(*arguments) if arguments else ROOT / CATALOGUE
    wrong, count = check(page.read_text(encoding="utf-8"), sources)
    if wrong:
        print("\n".join(wrong))
        print(f"{len(wrong)} findings: give each message of the sources a row with its cause and remedy, and remove the rows of others")
        return 1
    print(f"{count} messages, all that there are, each with cause and remedy")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
