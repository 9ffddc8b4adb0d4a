"""Tests of tools/check_tests_listed.py on a tree made up here."""

import doctest
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import check_tests_listed


class CheckTestsListed(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.root = Path(self.directory.name)
        self.names = []
        self.write("src/m/CMakeLists.txt", "m(TESTS a_test.cc\n sub/b_test.cc) # c_test.cc\n")
        self.write("src/m/a_test.cc")
        self.write("src/m/sub/b_test.cc")
        self.write("fuzz/CMakeLists.txt", "function(f name)\n# ropewalk_fuzz_target(y)\n"
                   "ropewalk_fuzz_target(mcap ropewalk::mcap)\n")  # fmt: skip
        self.write("fuzz/mcap_fuzz.cc")
        self.write("fuzz/corpus/mcap/1")
        self.write("tests/interop/light/requirements.txt")
        self.write("tests/interop/light/test_h5.py")

    def write(self, name, text=""):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        self.names.append(name)

    def faults(self):
        return check_tests_listed.check(self.root, self.names)

    def test_tree_with_everything_listed_passes(self):
        self.assertEqual(self.faults(), [])

    def test_test_named_only_in_a_comment_is_a_fault(self):
        self.write("src/m/c_test.cc")
        self.assertEqual(self.faults(), ["src/m/c_test.cc: no CMakeLists.txt names this test"])

    def test_fuzz_source_without_its_line_is_a_fault(self):
        self.write("fuzz/y_fuzz.cc")
        self.assertIn("fuzz/y_fuzz.cc: no ropewalk_fuzz_target", self.faults()[0])

    def test_fuzz_target_without_corpus_is_a_fault(self):
        self.names.remove("fuzz/corpus/mcap/1")
        self.assertEqual(self.faults(), ["fuzz/corpus/mcap: no corpus file"])

    def test_fuzz_line_without_source_is_a_fault(self):
        self.names.remove("fuzz/mcap_fuzz.cc")
        self.assertIn("fuzz/mcap_fuzz.cc is not there", self.faults()[0])

    def test_interop_test_outside_an_environment_is_a_fault(self):
        self.write("tests/interop/test_lost.py")
        self.write("tests/interop/dark/test_lost.py")
        self.assertEqual(len(self.faults()), 2)


def load_tests(loader, tests, pattern):
    tests.addTests(doctest.DocTestSuite(check_tests_listed))
    return tests


if __name__ == "__main__":
    unittest.main()
