"""The benchmark's results: a summary, the losses, and a short table and a chart for each CPU."""

import csv
import re
import shutil

SUMMARY = {"W2": "query, key and value: float32 [1, 512, 2304]",
           "W5": "planes of an image: uint8 [1080, 1920, 3]",
           "L1": "planes of a cropped image: uint8 [1060, 1900, 3]",
           "W6": "boxes, scores, classes: float32 [100000, 85]",
           "L8u": "planes put back together: uint8 [3, 1080 × 1920]"}
SHOWN = ["W1", "W2", "W3", "W4", "W5", "W6", "W8", "W9", "W11", "W13", "W15"]
PEERS = ["memcpy", "numpy", "cv2", "onnxruntime", "openvino", "torch"]
TITLES = {"numpy": "NumPy", "cv2": "OpenCV"}


def summary(results):
    """Returns the splits of SUMMARY on each CPU, with the peers' times relative to libsplit's."""
    runs = {cpu(file.parent.name): rows(file) for file in sorted(results.rglob("results.csv"))}
    peers = [peer for peer in PEERS[1:] if any(
        peer in measured.get(name, {}) for measured in runs.values() for name in SUMMARY)]
    machines = ["CPU"] if len(runs) > 1 else []
    head = ["Split", *machines, *(TITLES.get(peer, peer) for peer in peers)]
    lines = [f"| {' | '.join(head)} |", "| --- |" + " --- |" * len(machines) + " ---: |" * len(peers)]
    for name, title in SUMMARY.items():
        for machine, measured in runs.items():
            if name in measured:
                cells = [title, *([machine] if machines else []),
                         *(ratio(measured[name], peer) for peer in peers)]
                lines.append(f"| {' | '.join(cells)} |")
                title = ""
    return "\n".join(lines) + "\n"


def tables(results):
    """Returns a table for each CPU whose results are in bench/results."""
    lines = []
    for file in sorted(results.rglob("results.csv")):
        machine = (file.parent / "results.md").read_text().split("\n")[0]
        measured = rows(file)
        lines += [f"### {cpu(file.parent.name)}", "", f"{machine}. {versions(measured)}", "",
                  *table(measured), ""]
    return "\n".join(lines)


def charts(results, out):
    """Copies the chart of each CPU to 'out', and returns the Markdown that shows them."""
    lines = []
    for file in sorted(results.rglob("speed.svg")):
        title = f"Speed on {cpu(file.parent.name)} as a share of a flat copy (further right is faster)"
        picture = "-".join(["speed", *file.parent.relative_to(results).parts]) + ".svg"
        shutil.copy(file, out / picture)
        lines += [f"![{title}](generated/{picture})", ""]
    return "\n".join(lines)


def losses(results):
    """Returns every split for which another library is faster, worst first: its time relative to libsplit's."""
    found, files = [], sorted(results.rglob("results.csv"))
    for file in files:
        for threads in ["1", "2"]:
            aligned, misaligned = (rows(file, threads, offset) for offset in ["0", "16"])
            for name, measured in aligned.items():
                cells = [fastest(measured), fastest(misaligned.get(name))]
                if any(factor < 0.995 for factor, _ in cells):
                    line = [measured["libsplit"]["split"], *([cpu(file.parent.name)] if len(files) > 1 else []),
                            threads, *(cell for _, cell in cells)]
                    found.append((min(cells)[0], f"| {' | '.join(line)} |"))
    machines = ["CPU"] if len(files) > 1 else []
    head = ["Split", *machines, "Threads", "Outputs on lines", "16 bytes off"]
    return "\n".join([f"| {' | '.join(head)} |", "| --- |" + " --- |" * len(machines) + " ---: |" * 3,
                      *(line for _, line in sorted(found, key=lambda loss: loss[0]))]) + "\n"


def fastest(measured):
    """Returns the time of the fastest peer relative to libsplit's, and the cell that shows it if it is below 1."""
    if measured is None:
        return 1, "–"
    own = float(measured["libsplit"]["median_ns"])
    factor, peer = min(((float(row["median_ns"]) / own, peer) for peer, row in measured.items()
                        if peer in PEERS and row["right"] == "True"), default=(1, ""))
    return factor, f"{factor:.2f} {TITLES.get(peer, peer)}" if factor < 0.995 else "none"


def cpu(name):
    """Returns the name that people use, such as "Zen 4" for zen4."""
    return " ".join(re.findall(r"[a-z]+|\d+", name)).title()


def rows(file, threads="1", offset="0"):
    """Returns the results for some threads and an offset of outputs, by workload and then by competitor."""
    found = {}
    with open(file, newline="") as lines:
        for row in csv.DictReader(lines):
            if (row["threads"], row["offset"]) == (threads, offset):
                found.setdefault(row["workload"], {})[row["competitor"]] = row
    return found


def versions(measured):
    """Returns which releases were measured."""
    found = {peer: row["version"] for competitors in measured.values()
             for peer, row in competitors.items()}
    names = [f"{TITLES.get(peer, peer)} {found[peer]}" for peer in PEERS[1:] if peer in found]
    return f"With {', '.join(names)}."


def ratio(measured, peer):
    """Returns a peer's time relative to libsplit's with two digits; "wrong" if its results are wrong."""
    if peer not in measured:
        return "–"
    if measured[peer]["right"] != "True":
        return "wrong"
    factor = float(measured[peer]["median_ns"]) / float(measured["libsplit"]["median_ns"])
    return f"{factor:.0f}" if factor >= 9.95 else f"{factor:.1f}"


def table(measured):
    peers = [peer for peer in PEERS if any(peer in measured.get(name, {}) for name in SHOWN)]
    head = ["split", "MiB", "of a flat copy", *[f"× {TITLES.get(peer, peer)}" for peer in peers]]
    result = ["| " + " | ".join(head) + " |", "| --- |" + " ---: |" * (len(head) - 1)]
    for name in SHOWN:
        if name not in measured:
            continue
        ours = measured[name]["libsplit"]
        mib, of_flat = int(ours["bytes"]) / 2**20, float(ours["of_flat"])
        cells = [ours["split"], f"{mib:.2f}", f"{of_flat:.2f}"]
        cells += [ratio(measured[name], peer) for peer in peers]
        result.append("| " + " | ".join(cells) + " |")
    return result
