"""The tool as a whole: its README, completions, manual pages, colours and progress."""

import os
import pty
import re
import subprocess
import sys
import unittest

from common import LIBSPLIT, ROOT, USAGE, ToolTest, write_safetensors

README = (ROOT / "cli/README.md").read_text()


class Readme(ToolTest):
    def test_its_lines_run_in_an_empty_directory_and_print_what_it_says(self):
        blocks = re.findall(r"^```(sh|text)\n(.*?)^```", README, re.M | re.S)
        self.assertTrue(blocks[0][1].startswith("make cli"))
        path = os.pathsep.join([str(LIBSPLIT.parent), os.path.dirname(sys.executable),
                                os.environ["PATH"]])
        printed = ""
        for language, text in blocks[1:]:
            with self.subTest(text=text):
                if language == "text":
                    self.assertEqual(printed, text)
                    continue
                run = subprocess.run(["sh", "-eu"], input=text, cwd=self.dir, text=True,
                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                     env={**os.environ, "PATH": path})
                self.assertEqual(run.returncode, 0, run.stdout)
                printed = run.stdout
        self.assertGreater(len(blocks), 9)

    def test_it_names_every_rule_and_key(self):
        text = (ROOT / "cli/src/plan/text.rs").read_text()
        fields = text.split("struct RawRule {")[1].split("}")[0]
        for key in re.findall(r"^    (\w+):", fields, re.M):
            self.assertIn(f"`{key}`", README)


class Tool(ToolTest):
    def test_completions(self):
        for shell, word in [("bash", "complete -F _libsplit"), ("zsh", "#compdef libsplit"),
                            ("fish", "complete -c libsplit")]:
            run = self.run_tool("completion", shell)
            self.assert_succeeds(run)
            self.assertIn(word, run.stdout)
        script = self.run_tool("completion", "bash").stdout + """
            COMP_WORDS=(libsplit shard --dry) COMP_CWORD=2
            _libsplit libsplit --dry shard; echo "${COMPREPLY[@]}" """
        run = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
        self.assertEqual((run.stdout, run.stderr), ("--dry-run\n", ""))

    def test_manual_pages(self):
        self.assert_succeeds(self.run_tool("man", self.dir / "man1"))
        names = ["", "-npy", "-shard", "-join", "-verify", "-map", "-info", "-completion", "-man"]
        pages = {f"libsplit{name}.1" for name in names}
        self.assertLessEqual(pages, set(os.listdir(self.dir / "man1")))
        page = (self.dir / "man1/libsplit.1").read_text()
        self.assertIn(".TH libsplit 1", page)
        self.assertIn("Exit codes", page)
        self.assertIn("chunk", (self.dir / "man1/libsplit-shard.1").read_text())

    def test_version_and_usage(self):
        version = re.search(r'^version = "(.*)"', (ROOT / "Cargo.toml").read_text(), re.M)[1]
        self.assertEqual(self.run_tool("--version").stdout, f"libsplit {version}\n")
        for command in [[], ["cut"], ["shard", "m"], ["shard", "m", "--tp", "0", "-o", "o"],
                        ["shard", "m", "--tp", "2"], ["join"], ["join", "x"], ["info"],
                        ["shard", "m", "--tp", "2", "-o", "o", "--set", "a"],
                        ["shard", "m", "--tp", "2", "-o", "o", "--chunk", "3"],
                        ["shard", "m", "--tp", "2", "-o", "o", "--json", "--quiet"],
                        ["verify"], ["map", "m"], ["shard", "m", "--tp", "2", "-o", "o"]]:
            run = self.run_tool(*command)
            self.assertEqual((run.returncode, run.stdout), (USAGE, ""), command)

    def on_a_terminal(self, *arguments, **environment):
        """What the tool writes to a terminal as its standard error."""
        ours, theirs = pty.openpty()
        kept = {name: value for name, value in os.environ.items() if name not in ["NO_COLOR", "CI"]}
        environment = {**kept, "TERM": "xterm-256color", **environment}
        command = [str(word) for word in [LIBSPLIT, *arguments]]
        run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=theirs, env=environment)
        os.close(theirs)
        told = b""
        try:
            while part := os.read(ours, 4096):
                told += part
        except OSError:  # the end of a terminal
            pass
        os.close(ours)
        return run.wait(), told.decode()

    def test_colours_on_a_terminal_but_not_with_no_color(self):
        code, told = self.on_a_terminal("info", self.dir / "none")
        self.assertEqual(code, 1)
        self.assertIn("\x1b[", told)
        _, told = self.on_a_terminal("info", self.dir / "none", NO_COLOR="1")
        self.assertNotIn("\x1b[", told)
        self.assertTrue(told.startswith("error: "))
        self.assertNotIn("\x1b[", self.run_tool("info", self.dir / "none").stderr)

    def test_progress_on_a_terminal_only(self):
        model, plan = self.dir / "model.safetensors", self.dir / "plan.toml"
        plan.write_text("[tensors]\nw = 'colwise'\n")
        command = ["shard", model, "--tp", 2, "--plan", plan, "-o", self.out, "--force",
                   "--chunk", 64]  # small chunks take long enough for a bar: half a second
        told, size = "", 2 << 20
        while not told:
            size *= 2
            self.assertLess(size, 1 << 30)
            write_safetensors(model, {"w": ("U8", [size], bytes(size))})
            code, told = self.on_a_terminal(*command)
            self.assertEqual(code, 0)
        self.assertIn("MiB", told)
        self.assert_succeeds(self.run_tool(*command))
        self.assertEqual(self.on_a_terminal(*command, "--quiet"), (0, ""))


if __name__ == "__main__":
    unittest.main()
