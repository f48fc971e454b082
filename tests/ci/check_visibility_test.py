"""The verdict over the probes, with Bazel's answers made up; ci/layering asks Bazel itself."""

import unittest

from ci import check_visibility

PROBES = {
    "//lib/store:layering_probe_0": ("lib/store", "//lib/transport:endpoint"),
    "//lib/store:layering_probe_1": ("lib/store", "//lib/transport:policy"),
    "//lib/node:layering_probe_2": ("lib/node", "//lib/transport:endpoint"),
    "//lib/node:layering_probe_3": ("lib/node", "//lib/transport:policy"),
}
FORBIDDEN = {"//lib/store:layering_probe_0", "//lib/store:layering_probe_1"}


def verdict(refused):
    return {c["name"]: c["status"] for c in check_visibility.judge(PROBES, refused)}


class CheckVisibilityTest(unittest.TestCase):
    STORE = "layering: //lib/store may not depend on //lib/transport"
    NODE = "layering: //lib/node may depend on //lib/transport"

    def test_all_is_well_when_exactly_the_forbidden_arrows_are_refused(self):
        self.assertEqual(verdict(FORBIDDEN), {self.STORE: "passed", self.NODE: "passed"})

    def test_one_open_library_breaks_the_law(self):
        self.assertEqual(verdict({"//lib/store:layering_probe_1"})[self.STORE], "failed")

    def test_nothing_refused_is_never_well(self):
        self.assertEqual(verdict(set())[self.STORE], "failed")

    def test_a_layer_that_its_user_cannot_see_is_a_failure_but_one_private_library_is_not(self):
        self.assertEqual(verdict(FORBIDDEN | {"//lib/node:layering_probe_2"})[self.NODE], "passed")
        self.assertEqual(verdict(set(PROBES))[self.NODE], "failed")

    def test_a_package_belongs_to_the_closest_layer(self):
        self.assertEqual(check_visibility.layer_of("lib/verbs/soft/udp"), "lib/verbs/soft/udp")
        self.assertEqual(check_visibility.layer_of("lib/verbs/soft"), "lib/verbs/soft")
        self.assertEqual(check_visibility.layer_of("tests/verbs/conformance"), "tests")
        self.assertIsNone(check_visibility.layer_of("lib/storefront"))

    def test_the_law_keeps_store_and_transport_apart_and_logic_off_the_system(self):
        for source, target in (
            ("lib/store", "lib/transport"),
            ("lib/transport", "lib/store"),
            ("lib/transport", "lib/os"),
            ("lib/transport", "lib/verbs/soft"),
            ("lib/node", "lib/verbs/ibv"),
            ("lib/node", "sim"),
            ("lib/daemon", "sim"),
            ("lib/daemon", "tests"),
            ("sim", "tests"),
            ("lib/cli", "lib/client"),
            ("examples", "lib/client"),
            ("sim", "lib/client"),
        ):
            self.assertFalse(check_visibility.allowed(source, target), (source, target))

    def test_everybody_may_use_the_public_headers(self):
        for source in ("lib/base", "lib/client", "lib/cli", "examples", "sim"):
            self.assertTrue(check_visibility.allowed(source, "include/tokamak"), source)


if __name__ == "__main__":
    unittest.main()
