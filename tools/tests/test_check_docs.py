"""Tests of tools/check_docs.py and tools/check_paths.py on pages made up here."""

import doctest
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import check_docs
import check_paths


class CheckDocs(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.root = Path(self.directory.name)
        self.write("docs/other.md", "# Other page\n\n## A part\n")
        self.write("examples/x.cc", "{\n  // [open]\n  if (a)\n    b();\n  // [/open]\n}\n")
        self.write("src/a_test.cc", "TEST(McapReader, RejectsX) {}\nTEST_F(Fix, Works) {}\n")
        self.write("tests/interop/light/test_h5.py", "def test_reads():\n    pass\n")

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")

    def faults(self, text):
        self.write("docs/page.md", text)
        names = ["src/a_test.cc", "tests/interop/light/test_h5.py"]
        tests = check_docs.defined_tests(self.root, names)
        return check_docs.check_page(self.root, "docs/page.md", text, tests)

    def test_good_page_passes(self):
        text = (
            "# Page\n[o](other.md), [p](other.md#a-part), [q](#page), [w](https://example.org/x)\n"
            "| x | `McapReader.RejectsX` | `Fix.Works` | `test_h5.py::test_reads` |\n"
            "```\n[not a link](nowhere.md)\n```\n`[nor this](nowhere.md)`\n"
        )
        self.assertEqual(self.faults(text), [])

    def test_dead_link_is_named_with_its_line(self):
        found = self.faults("# Page\n\n[o](gone.md)\n")
        self.assertEqual(found, ["docs/page.md:3: link to gone.md: no such file"])

    def test_dead_anchor_is_named(self):
        self.assertIn("no such heading", self.faults("[o](other.md#b-part)\n")[0])
        self.assertIn("no such heading", self.faults("[o](#gone)\n")[0])

    def test_cited_test_that_does_not_exist_is_named(self):
        found = self.faults("| `McapReader.RejectsY` | `test_h5.py::test_gone` |\n")
        self.assertEqual(len(found), 2, found)
        self.assertIn("McapReader.RejectsY", found[0])

    def test_region_equal_to_the_example_passes(self):
        text = "<!-- region: examples/x.cc#open -->\n```cpp\nif (a)\n  b();\n```\n"
        self.assertEqual(self.faults(text), [])

    def test_region_that_differs_is_named_and_update_mends_it(self):
        text = "<!-- region: examples/x.cc#open -->\n```cpp\nold();\n```\n"
        self.assertIn("differs", self.faults(text)[0])
        self.assertEqual(self.faults(check_docs.update_page(self.root, text)), [])

    def test_region_that_does_not_exist_is_named(self):
        found = self.faults("<!-- region: examples/x.cc#gone -->\n```cpp\nx\n```\n")
        self.assertIn("no such region", found[0])


class CheckPaths(unittest.TestCase):
    def test_place_of_one_machine_is_named_with_its_line(self):
        place = "/" + "home/someone/data"
        found = check_paths.check_text("a.md", f"fine\nsee {place}\n")
        self.assertEqual(len(found), 1)
        self.assertTrue(found[0].startswith("a.md:2: "), found)

    def test_relative_paths_and_variables_pass(self):
        for text in ("src/work/x", "${HOME}/work/x", "/usr/bin/python3", "/tmp/x", "~/home/x"):
            self.assertEqual(check_paths.check_text("a.md", text), [], text)


def load_tests(loader, tests, pattern):
    tests.addTests(doctest.DocTestSuite(check_docs))
    tests.addTests(doctest.DocTestSuite(check_paths))
    return tests


if __name__ == "__main__":
    unittest.main()
