"""Writes figures and addresses into the documents, from the files that decide them.

    figures.py           writes them
    figures.py --check   fails if a document differs, or has a figure that is not in TEXTS

A table is whatever follows its comment, such as <!-- figures: speed -->. Within a sentence, TEXTS has
the words around the figure.
"""

import argparse
import functools
import json
import pathlib
import re
import sys

from generate import performance

ROOT = pathlib.Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench/results/zen4"

# A file, and the sentences in it that have figures. {name} is a figure of `figures`.
TEXTS = {
    "README.md": [
        "<!-- figures: correctness -->",
        "<!-- figures: speed -->",
        "PREFIX=$HOME/.local` ({minutes_install} minute)",
        "on real input ({minutes_run} minutes)",
        "runs the tests ({minutes_test} minutes)",
        "all {cases} cases",
        "one thread, AMD {cpu}, {date}, commit {commit}.",
        "at most {kilobytes} KB",
        "`git clone {repository}`",
        "[{repository}/issues]({repository}/issues)",
    ],
    "CHANGELOG.md": ["at most {kilobytes} KB", "{cases} cases"],
    "CONTRIBUTING.md": [
        "and nothing else | {minutes_install} minute |",
        "on real input | {minutes_run} minutes |",
        "each change in `src/copy/` | {minutes_check} minute |",
        "before each commit | {minutes_test} minutes |",
        "as CI does | {minutes_test_all} minutes |",
    ],
    "SECURITY.md": ["{repository}/security/advisories"],
    "docs/index.md": ["[{cases} cases](conformance.md)", "{planes_numpy} times as long to split an image"],
    "docs/faq.md": ["At most {kilobytes} KB", "at most {kilobytes_without_avx512} KB"],
    "docs/start.md": [
        "about {minutes_install} minute",
        "at most {kilobytes_without_avx512} KB instead of {kilobytes} KB",
    ],
    "docs/performance.md": [
        "an AMD {cpu}, {date}, commit {commit}",
        "about {nanoseconds_call} ns, or {nanoseconds_plan} ns with a [plan]",
    ],
    "python/pyproject.toml": ['Repository = "{repository}"'],
    "adapters/onnxruntime/python/pyproject.toml": ['Repository = "{repository}"'],
    ".github/ISSUE_TEMPLATE/config.yml": ["url: {repository}/security/advisories"],
}
# Documents in which every figure must be one of TEXTS, or in a table that is written here.
COMPLETE = ["README.md", "CHANGELOG.md", "docs/index.md", "docs/faq.md", "docs/start.md",
            "docs/performance.md"]
FIGURE = re.compile(r"\b\d[\d.,]*(?:–\d[\d.,]*)?\s(?:cases|minutes?|KB|MB|times|ns|µs|%)(?!\w)"
                    r"|(?<![-\w.])\d+\.\d+\.\d+\b")
# What a figure looks like, if it is not one word.
PATTERNS = {"repository": r"(https://[\w.-]+/[\w./-]*\w)", "cpu": r"(\w+ \d)"}

SPEED = [("W2", "query, key and value: float32 [1, 512, 2304]"),
         ("W5", "planes of an image: uint8 [1080, 1920, 3]"),
         ("L1", "planes of a cropped image: uint8 [1060, 1900, 3]"),
         ("W6", "boxes, scores, classes: float32 [100000, 85]"),
         ("L7a", "four planes into pixels: uint8 [4, 1080 × 1920]"),
         ("W10", "three pieces of 16 bytes: float32 [1, 12]")]
SPEED_PEERS = ["numpy", "cv2", "onnxruntime", "openvino", "memcpy"]
NAMES = {"numpy": "NumPy", "cv2": "OpenCV", "onnxruntime": "ONNX Runtime", "openvino": "OpenVINO"}

# A row of README's table of correctness, and the case in docs/conformance.md that it shows.
CORRECTNESS = {
    "lengths -1 and 7 of 6": "Split-18: lengths -1, 7 of 6",
    "2^31 into 2": "Split-18: 2^31 into 2",
    "an unused output": "Split-18: the middle output unused",
    "strings": "Split-18: string",
    "int64 above 2^31": "Split-18: int64 above 2^31",
}
CORRECTNESS_PEERS = ["onnxruntime", "onnx shape inference", "openvino", "torch"]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    wrong = []
    for name in TEXTS:
        before = (ROOT / name).read_text()
        after, problems = filled(name, before)
        wrong += [f"{name}: {problem}" for problem in problems]
        if options.check and after != before:
            wrong.append(f"{name} has other figures: run docs/figures.py and commit what it changes")
        elif after != before:
            (ROOT / name).write_text(after)
            print(f"{name} is changed")
    print("".join(f"{line}\n" for line in wrong), end="")
    print(f"figures: {len(TEXTS) - len({line.split(':')[0] for line in wrong})} documents passed, "
          f"{len(wrong)} mistakes")
    sys.exit(bool(wrong))


def filled(name, text):
    """Returns the text with today's figures, and what is wrong with it."""
    problems, older = [], ""
    if name == "CHANGELOG.md":  # what a release said stays as it is
        newest = [match.start() for match in re.finditer("^## ", text, re.M)][1:2] or [len(text)]
        text, older = text[:newest[0]], text[newest[0]:]
    for table, make in TABLES.items():
        text = re.sub(rf"(?<=<!-- figures: {table} -->\n\n)(?:\|.*\n)*", lambda _: make(), text)
    for template in TEXTS[name]:
        pattern = compiled(template)
        if not pattern.search(text):
            problems.append(f"no “{template}”")
        text = pattern.sub(lambda found: replaced(found, template), text)
    if name in COMPLETE:
        problems += [f"“{figure}” is not in TEXTS of docs/figures.py" for figure in unknown(name, text)]
    return text + older, problems


def compiled(template):
    """Matches the template with any figures, and with line breaks for spaces."""
    pieces = re.split(r"\{(\w+)\}", template)
    words = [r"\s+".join(map(re.escape, piece.split(" "))) for piece in pieces[::2]]
    values = [PATTERNS.get(figure, r"([\w.,-]*\w)") for figure in pieces[1::2]]
    return re.compile("".join(word + value for word, value in zip(words, [*values, ""])))


def replaced(found, template):
    result, end = "", found.start()
    for group, name in enumerate(re.findall(r"\{(\w+)\}", template), 1):
        result += found.string[end:found.start(group)] + figures()[name]
        end = found.end(group)
    return result + found.string[end:found.end()]


def unknown(name, text):
    """Returns the figures of a document that come from nowhere."""
    plain = re.sub(r"^```.*?^```$", "", text, flags=re.S | re.M)
    plain = re.sub(r"(?<= -->\n\n)(?:\|.*\n)*", "", plain)
    for template in TEXTS[name]:
        plain = compiled(template).sub("", plain)
    found = [match[0].replace("\n", " ") for match in FIGURE.finditer(plain)]
    return [figure for figure in found if figure != figures()["version"]]


@functools.cache
def figures():
    """Returns every figure by its name, as text."""
    cargo = (ROOT / "Cargo.toml").read_text()
    makefile = (ROOT / "Makefile").read_text()
    limits = (ROOT / "c-tests/CMakeLists.txt").read_text()
    measured = performance.rows(RESULTS / "results.csv")
    results = (RESULTS / "results.md").read_text()
    date, commit = re.match(r"Measured (\S+), commit (\S+), on ", results).groups()
    sizes = re.search(r"set\(sizes \$<IF:\S+?,\d+-(\d+)000,\d+-(\d+)000>", limits)
    call = r"\| libsplit +\| {} +\| +3 \| +12 \| +([\d.]+)"
    nanoseconds = {kind: round(float(re.search(call.format(re.escape(title)), results)[1]))
                   for kind, title in [("call", "copy, lengths int64"), ("plan", "plan_copy")]}
    minutes = {target: re.search(rf"^{target}:.*## .*: (\d+) minutes?$", makefile, re.M)[1]
               for target in ["install", "run", "check", "test", "test-all"]}
    return {
        "version": re.search(r'^version = "(.*)"', cargo, re.M)[1],
        "repository": re.search(r'^repository = "(.*)"', cargo, re.M)[1],
        "cases": str(sum(len(json.loads(file.read_text()))
                         for file in (ROOT / "tests/cases").glob("*.json"))),
        "kilobytes": sizes[1],
        "kilobytes_without_avx512": sizes[2],
        "cpu": performance.cpu(RESULTS.name),
        "date": date,
        "commit": commit,
        "planes_numpy": performance.ratio(measured["W5"], "numpy"),
        **{f"minutes_{target.replace('-', '_')}": number for target, number in minutes.items()},
        **{f"nanoseconds_{kind}": str(number) for kind, number in nanoseconds.items()},
    }


def speed():
    measured = performance.rows(RESULTS / "results.csv")
    version = {peer: row["version"] for work in measured.values() for peer, row in work.items()}
    heads = [f"{NAMES[peer]} {'.'.join(version[peer].split('.')[:3])}" if peer in NAMES else peer
             for peer in SPEED_PEERS]
    return table(["Split", *heads], [
        [title, *(performance.ratio(measured[work], peer) for peer in SPEED_PEERS)]
        for work, title in SPEED])


def correctness():
    """The cases of CORRECTNESS as docs/conformance.md has them; of each peer, the newest version."""
    lines = [[cell.strip() for cell in line.strip("|\n").split(" | ")]
             for line in (ROOT / "docs/conformance.md").read_text().splitlines()
             if line.startswith("| ")]
    head = next(cells for cells in lines if cells[0] == "case")
    columns = [max(i for i, title in enumerate(head) if title.startswith(f"{peer} "))
               for peer in CORRECTNESS_PEERS]
    found = {cells[0]: cells for cells in lines}
    return table(["Split", "libsplit", *(head[column] for column in columns)], [
        [title, *(in_words(found[case][column]) for column in [2, *columns])]
        for title, case in CORRECTNESS.items()])


def in_words(cell):
    """A cell of the page, without what is beside the point."""
    return "right" if cell == "✓" else re.sub(r"^(\*\*[\w ]+\*\*).*", r"\1", cell)


def table(head, lines):
    return "".join(f"| {' | '.join(cells)} |\n" for cells in [head, ["---"] * len(head), *lines])


TABLES = {"speed": speed, "correctness": correctness}

if __name__ == "__main__":
    main()
