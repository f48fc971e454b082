"""Tests of RDMA programs on machines without RDMA (docs/verbs-for-everyone.md)."""

def rdma_test(name, program, args = [], flags = [], data = [], tags = [], **kwargs):
    """Runs a program below `tok verbs`: its RDMA devices are software NICs, in a network of the test's own.

    Its exit code is the test's, and what it writes for Bazel (GoogleTest's cases, say) is the test's too.

    Args:
      name: of the test.
      program: label of the program, unmodified: a cc_test with the tag `manual`, a cc_binary, a script.
      args: of the program.
      flags: of `tok verbs`, such as ["--devices=2", "--loss=1%", "--seed=7"]. Without any there is a device at 127.0.0.1.
      data: files that the program needs beside its own.
      tags: beside block-network, which gives the test its loopback interface.
      **kwargs: as for any test.
    """
    tok = Label("//lib/cli/verbs:tok_verbs")
    library = Label("//lib/verbs/kernel/preload:libtokamak-verbs.so")
    native.sh_test(
        name = name,
        srcs = [Label("//lib/verbs/kernel:rdma_test.sh")],
        args = ["$(rootpath %s)" % label for label in (tok, library)] +
               (flags or ["--address=127.0.0.1"]) + ["--", "$(rootpath %s)" % program] + args,
        data = data + [tok, library, program],
        tags = tags + ["block-network"],
        **kwargs
    )
