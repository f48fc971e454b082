"""A package's tests: one program for all suites that can share it."""

load("//build:cc.bzl", "cc_test")

def unit_test(name, deps = [], size = "small", own_loopback = False, tags = [], **kwargs):
    """A cc_test with what every test of ours uses: GoogleTest's main, //lib/base and Abseil.

    A program takes seconds to link and to start, so suites share one, unless they change the process they run in (a network
    namespace, operator new), run in guests, or have other needs than their neighbours: a suite's name is unique in its program.

    Args:
      name: of the test.
      deps: beside the common ones.
      size: of the test.
      own_loopback: it opens ports, and so gets a loopback interface of its own.
      tags: of the test.
      **kwargs: as for cc_test.
    """
    cc_test(
        name = name,
        size = size,
        tags = tags + (["block-network"] if own_loopback else []),
        deps = deps + [
            "//lib/base",
            "@googletest//:gtest_main",
            "@system//:absl",
        ],
        **kwargs
    )
