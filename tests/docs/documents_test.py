"""What the documents say is true: examples are the tested files, links lead somewhere, README's commands exist."""

import json
import os
import re
import subprocess
import tempfile
import unittest

ROOT = os.getcwd()
DOCUMENTS = [os.path.join(folder, name)
             for folder, _, names in os.walk(ROOT, followlinks=True) if "external" not in folder
             for name in names if name.endswith(".md")]


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def prose_of(document):
    """A document without its blocks of code."""
    return re.sub(r"^```.*?^```", "", read(document), flags=re.S | re.M)


def anchors_of(document):
    """Where `document#anchor` may lead: what GitHub makes of each heading, a number behind those that are there twice."""
    anchors = set()
    for heading in re.findall(r"^#+ (.*)", prose_of(document), re.M):
        text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        name = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
        same = sum(1 for anchor in anchors if re.fullmatch(re.escape(name) + r"(-\d+)?", anchor))
        anchors.add(f"{name}-{same}" if same else name)
    return anchors


class DocumentsTest(unittest.TestCase):

    def test_the_readme_shows_the_example_as_it_is(self):
        blocks = re.findall(r"```cpp\n(.*?)```", read("README.md"), re.S)
        self.assertIn(read("examples/put_and_get.cc"), blocks, "copy examples/put_and_get.cc into README.md")

    def test_links_between_documents_lead_somewhere(self):
        self.assertGreater(len(DOCUMENTS), 8)
        for document in DOCUMENTS:
            for link in re.findall(r"\]\(([^)#]+)[^)]*\)", prose_of(document)):
                if not link.endswith(".md"):
                    continue  # sources are not beside this test
                target = os.path.join(os.path.dirname(document), link)
                self.assertTrue(os.path.exists(target), f"{document} links to {link}")

    def test_links_into_documents_lead_to_a_heading(self):
        links = 0
        for document in DOCUMENTS:
            for page, anchor in re.findall(r"\]\(([^)#\s:]*)#([^)]+)\)", prose_of(document)):
                target = os.path.join(os.path.dirname(document), page) if page else document
                if target.endswith(".md"):
                    self.assertIn(anchor, anchors_of(target), f"{document} links to {page}#{anchor}")
                    links += 1
        self.assertGreater(links, 50)

    def test_pages_begin_with_what_is_looked_for(self):
        pages = [page for page in DOCUMENTS if os.sep + "decisions" + os.sep not in page]  # these argue
        self.assertGreater(len(pages), 30)
        for page in pages:
            lines = read(page).splitlines()
            first = next((i for i, line in enumerate(lines, 1) if line.startswith(("```", "|"))), len(lines))
            self.assertLessEqual(first, 30, f"{page}: its first command, table or drawing stands in line {first}")

    def test_the_readme_has_exactly_the_two_commands(self):
        commands = re.findall(r"^\$ (\S+)", read("README.md"), re.M)
        self.assertEqual(commands, ["ci/demo", "ci/test"])
        for command in commands:
            self.assertTrue(os.access(os.path.join(ROOT, command), os.X_OK), command)

    def test_the_configuration_that_is_shown_is_one(self):
        shown = re.search(r"```json\n(.*?)```", read("docs/configuration.md"), re.S).group(1)
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file, tempfile.NamedTemporaryFile("w") as password:
            # The daemon reads it at once, also to print the configuration.
            password.write("secret\n")
            password.flush()
            shown = shown.replace("/etc/tokamak/redis-password", password.name)
            file.write(shown)
            file.flush()
            printed = subprocess.run([os.path.join(ROOT, "lib/daemon/tokd"), "--config", file.name, "--print-config"], check=True,
                                     capture_output=True, text=True, timeout=60).stdout
        for key, value in json.loads(re.sub(r"^ *//.*$", "", shown, flags=re.M)).items():
            self.assertEqual(json.loads(printed)[key], ",".join(value) if isinstance(value, list) else value)

    def test_flags_that_pages_name_exist(self):
        helps = [subprocess.run([os.path.join(ROOT, program)] + flags, check=True, capture_output=True, text=True,
                                timeout=60).stdout
                 for program, flags in (("lib/daemon/tokd", ["--help"]), ("lib/cli/tok", ["doctor", "--help"]))]
        known = set(re.findall(r"--[a-z][a-z-]+", "\n".join(helps)))
        for page, least in (("docs/hardware.md", 10), ("docs/configuration.md", 4)):
            named = set(re.findall(r"--[a-z][a-z-]+", read(page)))
            self.assertGreater(len(named), least)
            self.assertEqual(named - known, set(), page)


class ExampleTest(unittest.TestCase):

    def test_the_readme_example_moves_an_object_between_two_nodes(self):
        with tempfile.TemporaryDirectory(dir="/tmp") as folder:
            tok = [os.path.join(ROOT, "lib/cli/tok"), "--state", folder + "/c"]
            subprocess.run(tok + ["up", "--nodes", "2", "--memory", "16MiB"], check=True, timeout=120)
            example = [os.path.join(ROOT, "examples/put_and_get"), folder + "/c/node1.sock", folder + "/c/node2.sock"]
            try:
                outputs = [subprocess.run(example, check=True, capture_output=True, text=True, timeout=60).stdout
                           for _ in range(2)]
            finally:
                subprocess.run(tok + ["down"], check=True, timeout=60)
            self.assertEqual(outputs, ["hello from the other node\n"] * 2)


if __name__ == "__main__":
    unittest.main()
