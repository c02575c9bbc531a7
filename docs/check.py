"""Compiles and runs every code block of the guide and of the README, and checks their links.

The blocks of a page go into an empty directory, in order: each into the file that a comment in its
first line names, or into a file with a name of its own. C, C++, Rust and Python blocks are then
compiled and run there, and shell blocks are run by bash. Blocks in other languages are only
written, so that a shell block can use them. A `text` block right after a block that was run must be
exactly what it prints.

The README's shell blocks are about the repository itself and are not run.

    check.py                          everything
    check.py docs/recipes/qkv.md      the blocks of these pages
    check.py --site DIRECTORY         the built site: its links, and what its search must find
"""

import argparse
import html.parser
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(os.environ.get("BUILD_DIR", ROOT / "build/release"))
WORK = ROOT / "build/docs"
PREFIX = WORK / "home/.local"
SUFFIX = {"c": ".c", "cpp": ".cpp", "rust": ".rs", "python": ".py", "sh": ".sh", "toml": ".toml",
          "cmake": ".cmake"}
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.S | re.M)
NAMED = re.compile(r"^(?:/\* |// |# )([\w./-]+\.\w+|CMakeLists\.txt)(?: \*/)?\n")
README_LINES, README_CHARACTERS = 185, 10_000
# Stems of words, and a page that a search for each must find.
SEARCHED = {"crop": "recipes/crop", "pitch": "recipes/crop", "roi": "recipes/crop",
            "concat": "recipes/join", "string": "recipes/strings", "unbind": "coming-from",
            "pip": "start-python", "xnnpack": "coming-from-c", "uninstal": "start", "fetchcont": "start",
            "libsplit_plan_init": "generated/api", "try_copi": "generated/cpp_api",
            "from_dlpack": "generated/python_api"}
STRICT = ["-O1", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--site", type=pathlib.Path)
    parser.add_argument("pages", nargs="*", type=pathlib.Path)
    options = parser.parse_args()
    if options.site:
        finish(*check_site(options.site))
    pages = options.pages or [ROOT / "README.md", *sorted(
        page for page in (ROOT / "docs").rglob("*.md") if "generated" not in page.parts)]
    install()
    passed, failed = 0, 0
    for page in pages:
        page = page.resolve()
        text = page.read_text()
        for result in [*check_page(page), *check_links(page, text), *check_length(page, text)]:
            passed, failed = passed + (result is None), failed + (result is not None)
            if result:
                print(result)
    finish(passed, failed)


def finish(passed, failed):
    print(f"docs: {passed} passed, {failed} failed")
    sys.exit(failed > 0)


def install():
    """Installs libsplit as a user would, in a home directory that only the checks use."""
    shutil.rmtree(WORK / "home", ignore_errors=True)
    run(["cmake", "--install", BUILD, "--prefix", PREFIX], ROOT)
    for component, built in ("tool", "cli/bin/libsplit"), ("onnxruntime", "lib/libsplit_onnxruntime.so"):
        if (BUILD / built).exists():  # pages that need what is missing fail
            run(["cmake", "--install", BUILD, "--prefix", PREFIX, "--component", component], ROOT)
    for manifest in BUILD.glob("install_manifest*.txt"):
        manifest.unlink()


def check_page(page):
    """Yields None for each block that is right, and otherwise what is wrong."""
    text = page.read_text()
    name = page.relative_to(ROOT).with_suffix("")
    folder = WORK / "pages" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "libsplit").symlink_to(ROOT)
    blocks = list(BLOCK.finditer(text))
    following = [*blocks[1:], None]
    for number, (block, after) in enumerate(zip(blocks, following)):
        language, code = block.groups()
        if language not in SUFFIX or (language == "sh" and page.parent == ROOT):
            continue
        expected = after[2] if after and after[1] == "text" else None
        line = text.count("\n", 0, block.start()) + 1
        found = NAMED.match(code)
        file = folder / (found[1] if found else f"block{number}{SUFFIX[language]}")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(code)
        wrong = try_block(language, file, folder, expected)
        yield wrong and f"{page.relative_to(ROOT)}:{line}: {wrong}"
    (folder / "libsplit").unlink()  # cargo would follow it


def try_block(language, file, folder, expected):
    command = {"c": c_program, "cpp": c_program, "rust": rust_program,
               "python": lambda file: [[os.environ.get("PYTHON", sys.executable), file.name]],
               "sh": lambda file: [["bash", "-euo", "pipefail", file.name]]}.get(language)
    if command is None:
        return None
    try:
        for step in command(file):
            printed = run(step, folder)
    except subprocess.CalledProcessError as error:
        return f"{' '.join(map(str, error.cmd))}: exit {error.returncode}\n{error.output}"
    except subprocess.TimeoutExpired as error:
        return f"{error.cmd}: did not end"
    if expected is not None and printed != expected:
        return f"prints\n{printed}instead of\n{expected}"
    return None


def c_program(file):
    flags = run(["pkg-config", "--cflags", "--libs", "libsplit"], ROOT).split()
    cc = ["cc", "-std=c11"] if file.suffix == ".c" else ["c++", "-std=c++17"]
    program = file.with_suffix("")
    yield [*cc, *STRICT, file.name, "-o", program, *flags, f"-Wl,-rpath,{PREFIX}/lib", "-pthread"]
    yield [program]


def rust_program(file):
    """Makes a package that depends on the crate. All of them share one target directory."""
    package = file.parent / f"{file.stem}-package"
    (package / "src").mkdir(parents=True, exist_ok=True)
    code = file.read_text()
    if "fn main" not in code:  # as in doc comments
        code = f"fn main() -> Result<(), Box<dyn std::error::Error>> {{\n{code}Ok(())\n}}\n"
    (package / "src/main.rs").write_text(code)
    (package / "Cargo.toml").write_text(
        f'[package]\nname = "{file.stem}"\nversion = "0.0.0"\nedition = "2021"\n[workspace]\n'
        f'[dependencies]\nlibsplit = {{ path = "{ROOT}" }}\n')
    shutil.copy(ROOT / "Cargo.lock", package)
    yield ["cargo", "run", "--quiet", "--offline", "--manifest-path", package / "Cargo.toml",
           "--target-dir", WORK / "target"]


def run(command, folder):
    """Returns what it prints. On an error, the exception has its error output too."""
    environment = os.environ | {"HOME": str(WORK / "home"), "PREFIX": str(PREFIX),
                                "PKG_CONFIG_PATH": f"{PREFIX}/lib/pkgconfig",
                                "BUILD_DIR": str(BUILD)}
    real_home = pathlib.Path.home()
    environment.setdefault("CARGO_HOME", str(real_home / ".cargo"))
    environment.setdefault("RUSTUP_HOME", str(real_home / ".rustup"))
    done = subprocess.run(command, cwd=folder, env=environment, text=True, timeout=300,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode:
        raise subprocess.CalledProcessError(done.returncode, command, done.stdout + done.stderr)
    return done.stdout


def check_length(page, text):
    """Keeps the first page short."""
    if page == ROOT / "README.md":
        lines, characters = len(text.splitlines()), len(text)
        fits = lines <= README_LINES and characters <= README_CHARACTERS
        yield None if fits else (
            f"README.md has {lines} lines and {characters} characters, at most {README_LINES} and "
            f"{README_CHARACTERS} are allowed: move details to docs/")


LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def check_links(page, text):
    """Checks that a page links to files that exist. Sphinx checks what is within docs/."""
    for target in LINK.findall(re.sub(r"^```.*?^```$|`[^`\n]*`", "", text, flags=re.S | re.M)):
        parts = urllib.parse.urlsplit(target)
        if parts.scheme:
            yield None if parts.scheme == "https" and parts.netloc else f"{page}: {target}"
            continue
        if "generated" in parts.path:
            continue
        exists = not parts.path or (page.parent / parts.path).exists()
        yield None if exists else f"{page.relative_to(ROOT)}: no {target}"


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.links, self.anchors, self.loaded = [], set(), []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("href", "src"):
                self.links.append(value or "")
                if tag in ("link", "script", "img"):
                    self.loaded.append(value or "")
            if name in ("id", "name"):
                self.anchors.add(value)


def check_site(site):
    """Checks every link and anchor, that nothing is loaded from elsewhere, and the search."""
    site = site.resolve()
    pages = {file: Page(file.read_text()) for file in site.rglob("*.html")
             if "rust" not in file.relative_to(site).parts}
    passed, failed = check_search(site)
    for file, page in pages.items():
        elsewhere = [link for link in page.loaded if urllib.parse.urlsplit(link).netloc]
        failed += len(elsewhere)
        print("".join(f"{file.relative_to(site)} loads {link}\n" for link in elsewhere), end="")
        for link in page.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme:
                continue
            target = (file.parent / urllib.parse.unquote(parts.path)).resolve() \
                if parts.path else file
            right = target.exists() and (not parts.fragment or target not in pages
                                         or parts.fragment in pages[target].anchors)
            passed, failed = passed + right, failed + (not right)
            if not right:
                print(f"{file.relative_to(site)}: no {link}")
    return passed, failed


def check_search(site):
    """The site's search finds these words on these pages."""
    index = (site / "searchindex.js").read_text()
    index = json.loads(index[index.index("(") + 1:index.rindex(")")])
    missing = []
    for word, page in SEARCHED.items():
        hits = [index["terms"].get(word, []), index["titleterms"].get(word, [])]
        lists = [each if isinstance(each, list) else [each] for each in hits]
        numbers = {number for each in lists for number in each}
        if page not in {index["docnames"][number] for number in numbers}:
            missing.append(word)
            print(f"the search for {word} does not find {page}")
    return len(SEARCHED) - len(missing), len(missing)


if __name__ == "__main__":
    main()
