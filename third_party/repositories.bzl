"""What a workspace needs that uses Tokamak's library as an external repository, all from Debian packages: bazel-rules-cc and the like,
libabsl-dev; for rdma_test also libcli11-dev, libdeflate-dev, libisal-dev, nlohmann-json3-dev.

    local_repository(
        name = "tokamak",
        path = "/path/to/tokamak",
    )

    load("@tokamak//third_party:repositories.bzl", "tokamak_repositories")

    tokamak_repositories()

The name has to be `tokamak`. What the workspace has defined before under one of these names is left as it is.
"""

load(":debian_rules_cc.bzl", "debian_rules_cc")
load(":static_libraries.bzl", "static_libraries")
load(":system_libraries.bzl", "system_libraries")

# What Bazel itself loads, from Debian's packages of it.
_DEBIAN_RULES = {
    "bazel_skylib": "/usr/share/bazel/tools/skylib",
    "platforms": "/usr/share/bazel/platforms",
    "rules_java": "/usr/share/bazel/rules/java",
    "rules_proto": "/usr/share/bazel/rules/proto",
}

# pkg-config's names of what we use of Abseil.
ABSEIL = [
    "absl_algorithm_container",
    "absl_cleanup",
    "absl_flat_hash_map",
    "absl_flat_hash_set",
    "absl_function_ref",
    "absl_hash",
    "absl_inlined_vector",
    "absl_span",
    "absl_status",
    "absl_statusor",
    "absl_str_format",
    "absl_strings",
    "absl_time",
]

def bazel_rules():
    """Defines the repositories that Bazel itself loads."""
    if not native.existing_rule("rules_cc"):
        debian_rules_cc(name = "rules_cc")
    for name, path in _DEBIAN_RULES.items():
        if not native.existing_rule(name):
            native.local_repository(name = name, path = path)

def shared_object_parts():
    """Defines what a shared object takes into itself (//lib/verbs/kernel/preload)."""
    static_libraries(
        name = "static_libraries",
        libraries = [
            "libabsl_",
            "libdeflate.",
            "libstdc++.",
        ],
    )

def tokamak_repositories(rdma_test = False):
    """Defines what @tokamak//include/tokamak is built with.

    Args:
      rdma_test: also what @tokamak//lib/verbs/kernel:rdma_test.bzl is built with, which is more.
    """
    bazel_rules()
    libraries = {"absl": ABSEIL}
    if rdma_test:
        libraries.update({
            "cli11": ["CLI11"],
            "isal": ["libisal"],
            "json": ["nlohmann_json"],
        })
        if not native.existing_rule("static_libraries"):
            shared_object_parts()
    if not native.existing_rule("system"):
        system_libraries(name = "system", libraries = libraries)
