"""One fuzz target: the same function as an ordinary test and as a libFuzzer program."""

def fuzz_target(name, deps, rounds, tags = []):
    """Makes NAME_test and NAME_fuzzer of NAME.cc, which defines LLVMFuzzerTestOneInput.

    Args:
      name: of the source, of the corpus' folder and before the targets' suffixes.
      deps: of the source.
      rounds: how many mutated inputs the test runs: all tests together shall take a few seconds.
      tags: of the test.
    """
    native.cc_library(
        name = name + "_target",
        testonly = True,
        srcs = [name + ".cc"],
        deps = deps + [
            ":input",
            "@system//:absl",
            "//lib/base:log",
        ],
        alwayslink = True,
    )

    # The corpus, replayed and mutated a little.
    native.cc_test(
        name = name + "_test",
        size = "small",
        data = native.glob(["corpus/" + name + "/*"]),
        env = {
            "FUZZ_CORPUS": "tests/fuzz/corpus/" + name,
            "FUZZ_ROUNDS": str(rounds),
        },
        tags = tags,
        deps = [
            ":" + name + "_target",
            ":replay",
            "@googletest//:gtest_main",
        ],
    )

    # Links only as ci/fuzz builds it, with clang.
    native.cc_binary(
        name = name + "_fuzzer",
        testonly = True,
        linkopts = ["-fsanitize=fuzzer"],
        tags = ["manual"],
        deps = [
            ":" + name + "_target",
            ":setup",
        ],
    )
