"""Debian's rules_cc, made to fit Debian's Bazel.

Debian 12 packages rules_cc 0.0.4, which loads use_cpp_toolchain from Bazel's own toolchain_utils.bzl; Bazel 4.2.3 has no such
function. All that it would return is the C++ toolchain's type, so this rule links Debian's tree and writes that in.
"""

_TREE = "/usr/share/bazel/rules/cc"
_RULES = "cc/private/rules_impl"
_MISFITS = ["compiler_flag.bzl", "cc_flags_supplier.bzl"]

def _link_all(repository_ctx, directory, but):
    for entry in repository_ctx.path(_TREE + "/" + directory).readdir():
        if entry.basename not in but:
            repository_ctx.symlink(entry, directory + "/" + entry.basename)

def _debian_rules_cc_impl(repository_ctx):
    if not repository_ctx.path(_TREE).exists:
        fail("%s is missing; run ci/setup, which installs bazel-rules-cc" % _TREE)
    repository_ctx.file("WORKSPACE", "workspace(name = \"rules_cc\")\n")
    repository_ctx.symlink(_TREE + "/BUILD", "BUILD")
    _link_all(repository_ctx, "cc", but = ["private"])
    _link_all(repository_ctx, "cc/private", but = ["rules_impl"])
    _link_all(repository_ctx, _RULES, but = _MISFITS)
    for name in _MISFITS:
        text = repository_ctx.read(_TREE + "/" + _RULES + "/" + name)
        text = text.replace(", \"use_cpp_toolchain\"", "")
        text = text.replace("use_cpp_toolchain()", "[\"@bazel_tools//tools/cpp:toolchain_type\"]")
        repository_ctx.file(_RULES + "/" + name, text, executable = False)

debian_rules_cc = repository_rule(
    implementation = _debian_rules_cc_impl,
    doc = "Links /usr/share/bazel/rules/cc with use_cpp_toolchain() replaced by its value.",
    local = True,
)
