"""Writes what libsplit, the tool and the Python packages are made of, by Cargo's metadata and locks, as a CycloneDX document
of version 1.6. Crates that only tests and build scripts need are left out.

usage: sbom.py OUTPUT
"""

import datetime
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PRODUCTS = {"libsplit": "Cargo.toml", "libsplit-cli": "cli/Cargo.toml", "libsplit-python": "python/Cargo.toml",
            "libsplit_onnxruntime": "adapters/onnxruntime/Cargo.toml"}


def metadata(manifest):
    command = ["cargo", "metadata", "--locked", "--format-version=1", "--manifest-path", ROOT / manifest]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def checksums(manifest):
    """By name and version, the SHA-256 of what the registry has."""
    locked = tomllib.loads((ROOT / manifest).with_name("Cargo.lock").read_text("utf-8"))["package"]
    return {(package["name"], package["version"]): package.get("checksum") for package in locked}


def component(package, checksum):
    reference = f"pkg:cargo/{package['name']}@{package['version']}"
    made = {"type": "library", "bom-ref": reference, "name": package["name"], "version": package["version"],
            "purl": reference, "licenses": [{"expression": package["license"].replace("/", " OR ")}]}
    return made | ({"hashes": [{"alg": "SHA-256", "content": checksum}]} if checksum else {})


components, dependencies = {}, {}
for product, manifest in PRODUCTS.items():
    found, sums = metadata(manifest), checksums(manifest)
    packages = {package["id"]: package for package in found["packages"]}
    nodes = {node["id"]: node for node in found["resolve"]["nodes"]}
    wanted = [next(id for id, package in packages.items() if package["name"] == product)]
    for id in wanted:  # which grows
        package = packages[id]
        needed = [dependency["pkg"] for dependency in nodes[id]["deps"]
                  if any(kind["kind"] is None for kind in dependency["dep_kinds"])]
        wanted += [other for other in needed if other not in wanted]
        made = component(package, sums[package["name"], package["version"]])
        components[made["bom-ref"]] = made
        dependencies.setdefault(made["bom-ref"], set()).update(
            f"pkg:cargo/{packages[other]['name']}@{packages[other]['version']}" for other in needed)

version = tomllib.loads((ROOT / "Cargo.toml").read_text("utf-8"))["package"]["version"]
made_at = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)
document = {
    "bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
    "metadata": {"timestamp": made_at.strftime("%Y-%m-%dT%H:%M:%SZ"),
                 "component": {"type": "library", "bom-ref": "release", "name": "libsplit", "version": version}},
    "components": [components[reference] for reference in sorted(components)],
    "dependencies": [{"ref": "release", "dependsOn": [f"pkg:cargo/{name}@{version}" for name in sorted(PRODUCTS)]},
                     *({"ref": reference, "dependsOn": sorted(dependencies[reference])}
                       for reference in sorted(dependencies))],
}
Path(sys.argv[1]).write_text(json.dumps(document, indent=1) + "\n", "utf-8")
print(f"{len(components)} packages of Rust")
