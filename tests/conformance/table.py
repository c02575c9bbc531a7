"""Judges each result, and writes the page that shows them all."""

from cases import digest

HEAD = """\
---
hide-toc: true
---

# Conformance

{count} cases, run on libsplit and on other libraries: ONNX's own cases, a case for each rule of each operator, and bugs
that users have reported in one of the libraries. They are in `tests/cases/`, as JSON that any language can read.

`make conformance` writes this page. It installs the libraries below and runs each case in each of them, in a process that
may crash. What counts is the result: shapes, and every byte. (It does not install torch, which is large, or a second ONNX
Runtime; for those, `--also` of `tests/conformance/run.py` names another Python.)

For libsplit the cases are tests: `make test` fails if a result of its C functions, its Rust API, its Python package or the
execution provider for ONNX Runtime differs from the case.
"""
REPORTED = """\
Cases named after the thread that reported them. Some are fixed in the versions above, as the row then shows. Two were
never wrong, only slow, and are here for their shapes."""
DIFFER = """\
✓: same result as libsplit. –: no such operator, type or question. error: refused. unknown: shape inference leaves open
what could be known. Otherwise, the lengths of the pieces that came out. \\* marks cases that the operator's specification
leaves open or in which it contradicts itself; a different answer is not wrong there."""
AGREE = """\
Every library that has the operator and the type gives this result, or leaves it unknown."""


def verdict(case, result):
    """Returns a verdict: same, none, crash, refused, accepted, shape, less, values, or past the end."""
    if "none" in result:
        return "none"
    if "crash" in result:
        return "crash"
    if "error" in result:
        if case.error is None:
            return "refused"
        status = result.get("status")
        return "same" if status in (None, case.error) else "status"
    if case.error is not None:
        return "past the end" if reads_past(case, result) else "accepted"
    return _compare(case, result)


def _compare(case, result):
    if "element" in result or case.element:
        expected = case.element or merged(case.shapes())
        found = result["element"] if "element" in result else merged(result["shapes"])
        return "same" if found == expected else "less" if less([found], [expected]) else "shape"
    found = result["shapes"]
    expected = [None if i in case.unwanted else shape for i, shape in enumerate(case.shapes())]
    if found != expected:
        return ("past the end" if reads_past(case, result) else
                "less" if less(found, expected) else "shape")
    if "digests" in result:
        digests = case.digests()
        if any(f is not None and f != d for f, d in zip(result["digests"], digests)):
            return "values"
    return "same"


def less(found, expected):
    """Returns whether shapes are right as far as they are known, for inference that leaves some unknown."""
    if len(found) != len(expected):
        return False
    known = [(f, e) for f, e in zip(found, expected) if f is not None]
    return all(e is not None and len(f) == len(e) and
               all(a in (None, b) for a, b in zip(f, e)) for f, e in known)


def reads_past(case, result):
    """Returns whether a piece has bytes that are not in the input."""
    if case.kind == "shape" or "digests" not in result or not case.input_shape:
        return False
    elements, axis = case.elements(), case.normal_axis
    return any(shape and len(shape) == len(case.input_shape) and 0 not in shape
               and not _is_window(case.dtype, elements, axis, shape[axis], found)
               for shape, found in zip(result["shapes"], result["digests"]))


def _is_window(dtype, elements, axis, length, found):
    before = (slice(None),) * axis
    return any(digest(dtype, elements[before + (slice(begin, begin + length),)]) == found
               for begin in range(elements.shape[axis] - length + 1))


def merged(shapes):
    """Returns one shape for all pieces, with None where they differ; None if there are no pieces."""
    if not shapes:
        return None
    return [extents[0] if len(set(extents)) == 1 else None for extents in zip(*shapes)]


def tally(verdicts):
    words = list(verdicts.values())
    counts = {word: words.count(word) for word in dict.fromkeys(sorted(words))}
    return ", ".join(f"{count} {word}" for word, count in counts.items())


WORDS = {"none": "–", "same": "✓", "less": "unknown", "refused": "error", "status": "error"}
THREADS = {"onnxruntime": "microsoft/onnxruntime", "onnx": "onnx/onnx",
           "openvino": "openvinotoolkit/openvino", "tensorflow": "tensorflow/tensorflow",
           "openvino_contrib": "openvinotoolkit/openvino_contrib"}


def cell(case, result):
    """Describes a result in as few words as possible."""
    word = verdict(case, result)
    if word in WORDS:
        return WORDS[word]
    if word == "crash":
        return f"**crash** ({result['crash']})"
    if word == "values":
        return "**wrong values**"
    given = lengths(case, result)
    return f"**reads past the input**: {given}" if word == "past the end" else given


def lengths(case, result):
    """Returns the pieces' lengths on the axis, or whole shapes if lengths alone would not show the difference."""
    shapes = [result["element"]] if "element" in result else result["shapes"]
    if shapes == [None]:
        return "no shape"
    rank, axis = len(case.input_shape), case.normal_axis
    if "shapes" in result and all(shape and len(shape) == rank for shape in shapes):
        return listed(shape[axis] for shape in shapes) or "no pieces"
    return "; ".join("none" if shape is None else f"[{listed(shape)}]"
                     for shape in shapes) or "no pieces"


def listed(extents):
    extents = ["?" if extent is None else str(extent) for extent in extents]
    if len(extents) > 8:
        extents = extents[:3] + ["…"] + extents[-1:]
    return ", ".join(extents)


def expected(case):
    if case.error:
        return "error"
    if case.element:
        return f"[{listed(case.element)}]"
    if case.sizes is not None:
        return listed(case.sizes) or "no pieces"
    return lengths(case, {"shapes": case.shapes()})


def name(case):
    """Returns the case's name, with a link to the thread that reported it."""
    if not case.issue:
        return case.name
    project, number = case.issue.split()[:2]
    link = f"[{case.issue}](https://github.com/{THREADS[project]}/issues/{number})"
    return case.name.replace(case.issue, link)


def rows(every, results, names, chosen):
    head = ["case", "what it is about", "libsplit", *names.values()]
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    for case in chosen:
        libsplit = expected(case) + (" \\*" if case.open else "")
        cells = [cell(case, results[n][case.name]) for n in names]
        lines.append("| " + " | ".join([name(case), case.why, libsplit, *cells]) + " |")
    return lines


def page(every, results, versions, libsplit, peers, known):
    ran = {n: f"{title} {versions[n]}" for n, title in peers.items() if results.get(n)}
    differ = [case for case in every.values() if not case.issue and any(
        verdict(case, results[n][case.name]) not in ("same", "none", "less") for n in ran)]
    agree = [case for case in every.values() if not case.issue and case not in differ]
    lines = [HEAD.format(count=len(every))]
    lines += summary(every, results, versions, {n: f"libsplit, {title}" for n, title in libsplit.items()} | peers)
    lines += ["", "The exceptions of the provider for ONNX Runtime:", ""]
    lines += [f"- {name}: {reason}." for name, reason in known.items()]
    lines += ["", "## Bugs that users have reported", "", REPORTED, ""]
    lines += rows(every, results, ran, [case for case in every.values() if case.issue])
    lines += ["", "## Where they differ", "", DIFFER, ""]
    lines += rows(every, results, ran, differ)
    lines += ["", "## Where all agree", "", AGREE, ""]
    lines += [f"- {case.name}: {expected(case)}" for case in agree]
    return "\n".join(lines) + "\n"


def summary(every, results, versions, titles):
    kinds = {"same": "same as libsplit", "refused": "refuses it", "accepted": "accepts what libsplit "
             "refuses", "shape": "other pieces", "less": "leaves extents unknown",
             "values": "wrong values",
             "past the end": "reads past the input", "crash": "crashes", "none": "does not apply"}
    lines = ["| | version | " + " | ".join(kinds.values()) + " |",
             "|" + " --- |" * (2 + len(kinds))]
    for n, title in titles.items():
        if not results.get(n):
            lines.append(f"| {title} | not run |" + " |" * len(kinds))
            continue
        words = [verdict(every[case], result) for case, result in results[n].items()]
        counts = " | ".join(str(words.count(kind)) for kind in kinds)
        lines.append(f"| {title} | {versions[n]} | {counts} |")
    return lines
