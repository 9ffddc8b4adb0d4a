"""Tests of tools/check_layers.py on tables and sources made up here, and on the real table."""

import doctest
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import check_layers

PAGE = """
<!-- modules -->
| module | lives there | may include | must not know |
|---|---|---|---|
| `base/core` | a | | x |
| `base/exec` | a | `core` | x |
| `base/io` | a | `core` | x |
| `format/mcap` | a | `base` and nothing else | x |
| `format/video` | a | `base` | x |
| `episode` | a | `base` | x |
| `dataset/lerobot` | a | `base` `video` `episode` | x |
| `stage/publish` | a | `base` `episode` | x |
| `engine` | a | `base` `episode` `lerobot` `publish` | x |
| `apps/cli` | a | `core` `engine` | x |

<!-- dependencies -->
| library | headers | owners | where |
|---|---|---|---|
| fmt | `fmt/*` | `any` | `.cc` |
| FFmpeg | `libavutil/*` | `video` | `.cc` |
| Arrow | `arrow/*` | `episode` | `.cc` |
| Arrow | `arrow/type_fwd.h` | `episode` `lerobot` | public headers too |
| gtest | `gtest/*` | `tests` | tests |
"""


class CheckLayers(unittest.TestCase):
    def setUp(self):
        self.rules = check_layers.read_rules(PAGE)
        self.assertEqual(self.rules.faults, [])

    def faults(self, path, *includes):
        text = "".join(f"#include {header}\n" for header in includes)
        return check_layers.check_text(path, text, self.rules)

    def assert_fault(self, path, include, words):
        found = self.faults(path, include)
        self.assertEqual(len(found), 1, found)
        self.assertIn(words, found[0])

    def test_downward_includes_pass(self):
        self.assertEqual(
            self.faults(
                "src/ropewalk/dataset/lerobot/a.cc",
                '"ropewalk/dataset/lerobot/a.h"',
                '"ropewalk/base/io/store.h"',
                '"ropewalk/format/video/video.h"',
                '"ropewalk/episode/episode.h"',
                "<vector>",
                "<sys/stat.h>",
                "<unistd.h>",
                "<fmt/format.h>",
            ),
            [],
        )

    def test_upward_include_is_named(self):
        self.assert_fault(
            "src/ropewalk/base/core/a.cc",
            '"ropewalk/engine/engine.h"',
            "a.cc:1: core may not include engine",
        )

    def test_sideways_includes_are_named(self):
        self.assert_fault(
            "src/ropewalk/base/io/a.h", '"ropewalk/base/exec/x.h"', "io may not include exec"
        )
        self.assert_fault(
            "src/ropewalk/format/mcap/a.h", '"ropewalk/format/video/x.h"', "may not include video"
        )
        self.assert_fault(
            "src/ropewalk/stage/publish/a.h", '"ropewalk/dataset/lerobot/x.h"', "lerobot"
        )

    def test_place_is_the_line_of_the_include(self):
        text = '#pragma once\n\n// x\n  #  include "ropewalk/engine/engine.h"\n'
        found = check_layers.check_text("src/ropewalk/episode/e.h", text, self.rules)
        self.assertTrue(found[0].startswith("src/ropewalk/episode/e.h:4: "), found)

    def test_third_party_header_outside_its_owner_is_named(self):
        self.assert_fault(
            "src/ropewalk/format/mcap/a.cc", "<libavutil/frame.h>", "belongs to video, not to mcap"
        )
        self.assertEqual(self.faults("src/ropewalk/format/video/a.cc", "<libavutil/frame.h>"), [])

    def test_third_party_header_in_a_public_header_is_named(self):
        self.assert_fault("src/ropewalk/format/video/a.h", "<libavutil/frame.h>", "public header")
        self.assert_fault("src/ropewalk/base/core/a.h", "<fmt/format.h>", "public header")
        self.assertEqual(
            self.faults("src/ropewalk/format/video/a_internal.h", "<libavutil/frame.h>"), []
        )

    def test_arrow_forward_declarations_alone_may_stand_in_headers(self):
        self.assertEqual(self.faults("src/ropewalk/dataset/lerobot/a.h", "<arrow/type_fwd.h>"), [])
        self.assert_fault("src/ropewalk/episode/a.h", "<arrow/api.h>", "public header")
        self.assert_fault("src/ropewalk/base/io/a.cc", "<arrow/type_fwd.h>", "belongs to")

    def test_unknown_header_is_named(self):
        self.assert_fault("src/ropewalk/base/io/a.cc", "<curl/curl.h>", "in no row")
        self.assert_fault("src/ropewalk/base/io/a.cc", '"store.h"', "not written from src")

    def test_private_header_of_another_module_is_named(self):
        self.assert_fault(
            "src/ropewalk/episode/a.cc", '"ropewalk/base/io/fs_internal.h"', "private to io"
        )

    def test_only_tests_include_test_headers(self):
        self.assertEqual(
            self.faults(
                "src/ropewalk/base/io/a_test.cc", "<gtest/gtest.h>", '"tests/support/temp_dir.h"'
            ),
            [],
        )
        self.assert_fault("src/ropewalk/base/io/a.cc", "<gtest/gtest.h>", "belongs to tests")
        self.assert_fault("src/ropewalk/base/io/a.cc", '"tests/support/temp_dir.h"', "tests alone")

    def test_headers_of_an_app_are_its_own(self):
        self.assertEqual(
            self.faults("apps/cli/a.h", '"apps/cli/b.h"', '"ropewalk/engine/e.h"'),
            [],
        )
        self.assert_fault("src/ropewalk/engine/a.cc", '"apps/cli/b.h"', "belongs to an app")
        self.assert_fault("apps/cli/a.cc", '"ropewalk/dataset/lerobot/x.h"', "lerobot")

    def test_file_outside_every_module_is_named(self):
        self.assert_fault("src/ropewalk/util/a.cc", "<vector>", "in no module")

    def test_table_with_a_sideways_or_upward_edge_is_refused(self):
        for row, edge in (
            ("| `format/video` | a | `base` |", "| `format/video` | a | `base` `mcap` |"),
            ("| `stage/publish` | a | `base` ", "| `stage/publish` | a | `base` `lerobot` "),
            ("| `episode` | a | `base` |", "| `episode` | a | `base` `engine` |"),
        ):
            rules = check_layers.read_rules(PAGE.replace(row, edge))
            self.assertEqual(len(rules.faults), 1, edge)
            self.assertIn("not downward", rules.faults[0])

    def test_table_that_names_an_unknown_module_is_refused(self):
        rules = check_layers.read_rules(PAGE.replace("`lerobot` `publish`", "`lerobot` `publihs`"))
        self.assertIn("engine may include publihs: no such module", rules.faults[0])

    def test_missing_table_is_refused(self):
        self.assertNotEqual(check_layers.read_rules("# nothing").faults, [])

    def test_the_real_table_is_sound(self):
        page = (check_layers.ROOT / "ARCHITECTURE.md").read_text("utf-8")
        rules = check_layers.read_rules(page)
        self.assertEqual(rules.faults, [])
        self.assertEqual(rules.may_include["core"], set())
        self.assertEqual(rules.may_include["mcap"], {"core", "exec", "io", "codec"})


def load_tests(loader, tests, pattern):
    tests.addTests(doctest.DocTestSuite(check_layers))
    return tests


if __name__ == "__main__":
    unittest.main()
