"""What the documents say is true: examples are the tested files, links lead somewhere, README's commands exist."""

import glob
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

    def test_each_folder_of_ours_has_its_place_in_the_architecture(self):
        page = read("docs/architecture.md")
        folders = re.findall(r"^## ((?:lib|sim)\S*)", read("docs/files.md"), re.M)
        self.assertGreater(len(folders), 60)
        for folder in folders:
            top, _, name = folder.rpartition("/")
            # By its path, or by its name in the row of the room that it is in.
            rows = {room: line for line in page.splitlines() if line.startswith("| `") for room in re.findall(r"`(\S+?)`", line.split("|")[1])}
            while top and top not in rows:
                top = os.path.dirname(top)
            row = rows.get(top, "")
            self.assertTrue(f"`{folder}`" in page or f"`{name}`" in row, f"docs/architecture.md has no row for {folder}")

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


def blocks(page):
    """What a page shows between lines of ``` without a language."""
    return [text for language, text in re.findall(r"^```(\w*)\n(.*?)^```$", read(page), re.M | re.S) if not language]


def block_with(words):
    found = [block for block in blocks("README.md") if words in block]
    assert len(found) == 1, f"README.md has {len(found)} blocks with {words!r}"
    return found[0]


class ReadmeTest(unittest.TestCase):
    """Commands of README, run as they are printed; tests/python/docs_test.py runs its Python, tests/cli/demo_test its demo."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir="/tmp")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        os.makedirs(self.folder + "/bin")
        for program in ("lib/cli/tok", "lib/daemon/tokd"):
            os.symlink(os.path.join(ROOT, program), os.path.join(self.folder, "bin", os.path.basename(program)))
        self.environment = {**os.environ,
                            "PATH": f"{self.folder}/bin:{os.environ['PATH']}",
                            "XDG_RUNTIME_DIR": self.folder,
                            "TOKAMAK_VERBS_LIBRARY": os.path.join(ROOT, "lib/verbs/kernel/preload/libtokamak-verbs.so")}

    def shell(self, commands, **options):
        return subprocess.Popen(["bash", "-euo", "pipefail", "-c", commands], env=self.environment, stdout=subprocess.PIPE, text=True,
                                **options)

    def test_by_hand(self):
        commands = block_with("tok up").replace("/tmp/", self.folder + "/")
        shell = self.shell("trap 'tok down || true' ERR\n" + commands)
        output, _ = shell.communicate(timeout=200)
        self.assertEqual(shell.returncode, 0, output)
        self.assertIn("GNU GENERAL PUBLIC LICENSE", output)
        with open("/usr/share/common-licenses/GPL-2", "rb") as here, open(self.folder + "/law/GPL-2", "rb") as there:
            self.assertEqual(here.read(), there.read())

    def test_a_program_of_others_over_a_lossy_network(self):
        first, second = block_with("tok verbs").splitlines()
        server = self.shell("exec stdbuf -oL " + first)
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.kill)
        shown = ""
        while "Waiting for client" not in shown:
            line = server.stdout.readline()
            self.assertTrue(line, shown)
            shown += line
        client = self.shell("exec " + second)
        output, _ = client.communicate(timeout=200)
        self.assertEqual(client.returncode, 0, output)
        self.assertRegex(output, r"65536 +5000 +[0-9.]+ +[0-9.]+")
        self.assertEqual(server.wait(timeout=60), 0)

    def test_the_sweep_shows_what_is_said_of_it(self):
        command = block_with("sweep").splitlines()[-1].split(" -- ", 1)[1].replace("/tmp/victim", self.folder + "/victim").split()
        subprocess.run([os.path.join(ROOT, "sim/scenario/experiment"), *command, "--no-report"], check=True, stdout=subprocess.DEVNULL,
                       timeout=250)
        slowdowns = {}
        for summary in glob.glob(self.folder + "/victim/*/summary.json"):
            with open(summary, encoding="utf-8") as file:
                values = json.load(file)
            slowdowns[os.path.basename(os.path.dirname(summary))] = round(values["groups"]["victim"]["slowdown"]["mean"], 2)
        self.assertEqual(sorted(slowdowns.values()), [1.00, 3.93], slowdowns)
        self.assertIn("3.93 times as long with PFC alone, and 1.00 times with DCQCN", read("README.md"))


class ExampleTest(unittest.TestCase):

    def test_it_moves_an_object_between_two_nodes(self):
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
