"""The command lines of `inferscope` that documents and hints show to a reader: (place, line) each."""
import json
import pathlib
import re

TOP = pathlib.Path(__file__).resolve().parents[3]
PAGES = [TOP / "README.md", TOP / "NEWS", *sorted((TOP / "docs").glob("*.md")), *sorted((TOP / "contrib/k8s").glob("*.yaml")), TOP / "src/base/error.def"]
# A block that shows a picture or the text of a file is no command.
SHELL_BLOCK = re.compile(r"^```(?:sh)?\n(.*?)^```$", re.M | re.S)
SPAN = re.compile(r"`((?:sudo )?inferscope [^`]+)`")
YAML_LIST = re.compile(r"\[\s*(\"inferscope\".*?)\]", re.S)
YAML_COMMENT = re.compile(r"^#.* -- (inferscope .*)$", re.M)


def quoted(words):
    return " ".join(word if re.fullmatch(r"[\w./:=+-]+", word) else "'%s'" % word for word in words)


def lines_of(text):
    for block in SHELL_BLOCK.findall(text):
        for line in block.splitlines():
            if re.match(r"(sudo )?inferscope ", line):
                yield re.sub(r"\s+#\s.*$", "", line)
    yield from SPAN.findall(text)
    yield from YAML_COMMENT.findall(text)
    for words in YAML_LIST.findall(text):
        yield quoted(json.loads("[%s]" % words))


def command_lines():
    """Each line once, with the first place that has it."""
    seen = {}
    for page in PAGES:
        for line in lines_of(page.read_text()):
            seen.setdefault(line.replace("sudo ", "", 1).strip(), page.relative_to(TOP).as_posix())
    return [(place, line) for line, place in seen.items()]
