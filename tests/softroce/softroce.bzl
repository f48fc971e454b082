"""Tests that run in a guest with software RDMA devices (ci/softroce, docs/softroce-lab.md)."""

def softroce_test(
        name,
        test = None,
        programs = None,
        device = "rxe",
        hosts = 1,
        netem = None,
        mtu = None,
        cpus = 1,
        args = [],
        env = {},
        data = [],
        tags = [],
        size = "medium",
        **kwargs):
    """Runs a program, say that of a cc_test, in a guest of the lab, or in several; or programs one after the other.

    Its exit status is the test's, and the cases that GoogleTest counts there are counted here; with several hosts, those of
    guest N end with @N. The lab ends the guests shortly before Bazel's time-out, so that their consoles are shown. Where QEMU is
    missing, the test is skipped.

    Args:
      name: of the test.
      test: label of the program. Give it the tag `manual`, or make it a testonly cc_binary, if it is of no use outside.
      programs: instead of `test` and `args`, programs that share the guests: a dictionary of labels and their arguments. A
        program that fails or takes more than five minutes is a failure and does not keep the next ones from running, but no
        program may leave a device in another state than it was in.
      device: rxe (Soft-RoCE) or siw (SoftiWARP).
      hosts: 1 guest with two devices, or 2 or 3 with one each; the program runs in each of them.
      netem: what tc-netem(8) does to packets, say "loss 1%".
      mtu: of the network interfaces; 9000 unless given.
      cpus: of each guest; take 2 where two programs poll without a pause.
      args: of the program.
      env: variables of the program's environment, beside those of the lab.
      data: files that the program needs beside its own.
      tags: beside softroce, system (ci/system runs it) and those that leave each guest a processor of its own.
      size: of the test; remember that an emulated CPU is some twenty times slower.
      **kwargs: as for any test.
    """
    lab = ["--device=" + device, "--hosts=%d" % hosts, "--cpus=%d" % cpus]
    if netem:
        lab.append("--netem='%s'" % netem)
    if mtu:
        lab.append("--mtu=%d" % mtu)
    lab += ["--env='%s=%s'" % (key, env[key]) for key in sorted(env)]
    if not programs:
        programs = {test: args}
    commands = []
    for program, arguments in programs.items():
        commands += ["--", "$(rootpath %s)" % program] + ["'%s'" % argument for argument in arguments]
    native.py_test(
        name = name,
        size = size,
        srcs = ["//tests/softroce:run_in_guest.py"],
        args = lab + commands,
        data = programs.keys() + data,
        main = "//tests/softroce:run_in_guest.py",
        # An emulated processor keeps one of this machine's busy: only as many guests at a time as there are. Local: QEMU hands this
        # machine's files to the guest, and the lab's cache is outside of a sandbox.
        tags = tags + ["cpu:%d" % (hosts * cpus), "local", "softroce", "system"],
        deps = ["//ci:lab"],
        **kwargs
    )
