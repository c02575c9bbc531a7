"""The benchmark's results as short tables, one for each CPU it has been run on."""

import csv
import re
import shutil

SHOWN = ["W1", "W2", "W3", "W4", "W5", "W6", "W8", "W9", "W11", "W13", "W15"]
PEERS = ["memcpy", "numpy", "onnxruntime", "openvino", "torch", "cv2"]


def tables(results, out):
    """bench/results holds the files of one run, or a directory for each CPU."""
    lines = []
    for file in sorted(results.rglob("results.csv")):
        machine = (file.parent / "results.md").read_text().split("\n")[0]
        lines += [f"## {cpu(file.parent.name)}", "", f"{machine}.", "", *table(file), ""]
        if (file.parent / "speed.svg").exists():
            picture = "-".join(["speed", *file.parent.relative_to(results).parts]) + ".svg"
            shutil.copy(file.parent / "speed.svg", out / picture)
            lines += [f"![Speed as a share of a flat copy's](generated/{picture})", ""]
    return "\n".join(lines)


def cpu(name):
    """As people write it: "Zen 4" for zen4."""
    return " ".join(re.findall(r"[a-z]+|\d+", name)).title()


def table(file):
    rows = {}
    with open(file, newline="") as lines:
        for row in csv.DictReader(lines):
            if (row["threads"], row["offset"]) == ("1", "0"):
                rows.setdefault(row["workload"], {})[row["competitor"]] = row
    head = ["split", "MiB", "of a flat copy", *[f"× {peer}" for peer in PEERS]]
    result = ["| " + " | ".join(head) + " |", "| --- |" + " ---: |" * (len(head) - 1)]
    for name in SHOWN:
        if name not in rows:
            continue
        ours = rows[name]["libsplit"]
        cells = [ours["split"], f"{int(ours['bytes']) / 2**20:.2f}", f"{float(ours['of_flat']):.2f}"]
        for peer in PEERS:
            theirs = rows[name].get(peer)
            if theirs is None:
                cells.append("–")
                continue
            factor = float(theirs["median_ns"]) / float(ours["median_ns"])
            cells.append(f"{factor:.1f}" if theirs["right"] == "True" else "wrong")
        result.append("| " + " | ".join(cells) + " |")
    return result
