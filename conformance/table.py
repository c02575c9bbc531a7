"""What a result is worth, and the page that shows them all."""


def verdict(case, result):
    """One word: same, none, crash, refused, accepted, shape, values, past the end."""
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
        return "same" if found == expected else "shape"
    found = result["shapes"]
    expected = [None if i in case.unwanted else shape for i, shape in enumerate(case.shapes())]
    if found != expected:
        return "past the end" if reads_past(case, result) else "shape"
    if "digests" in result:
        digests = case.digests()
        if any(f is not None and f != d for f, d in zip(result["digests"], digests)):
            return "values"
    return "same"


def reads_past(case, result):
    """Whether pieces with data are longer than the input they were cut from."""
    if case.kind == "shape" or "digests" not in result or not case.input_shape:
        return False
    axis, extent = case.normal_axis, case.input_shape[case.normal_axis]
    lengths = [shape[axis] for shape in result["shapes"]
               if shape is not None and len(shape) == len(case.input_shape)]
    return sum(lengths) > extent


def merged(shapes):
    """One shape for all, with None for what differs; None for no pieces."""
    if not shapes:
        return None
    return [extents[0] if len(set(extents)) == 1 else None for extents in zip(*shapes)]


def tally(verdicts):
    words = list(verdicts.values())
    counts = {word: words.count(word) for word in dict.fromkeys(sorted(words))}
    return ", ".join(f"{count} {word}" for word, count in counts.items())
