"""cc_library, cc_binary and cc_test that compile a target's sources in units of several files where --config=units asks for it.

Parsing headers is what compiling costs here: 14 files of lib/node take 68 seconds of a processor one by one, and 20 as one unit.
So ci/demo and ci/test (--config=tested) build in units. Whoever edits builds file by file, which is the default: then one file is
compiled anew, and each has to include what it uses; `ci/system files` builds everything so.

Files of one target share a translation unit, so names in their anonymous namespaces must differ, and `using` declarations of one
are seen by the next. Where a source cannot live with others (macros, say), name it in `apart`.
"""

_FILES_IN_A_UNIT = 16

_IN_UNITS = "//build:in_units"

def _units(name, srcs, apart):
    """Sources in units: (what to compile where there are units, what these include)."""
    together = [src for src in srcs if src.endswith(".cc") and src not in apart]
    if len(together) < 2:
        return None, None
    count = (len(together) + _FILES_IN_A_UNIT - 1) // _FILES_IN_A_UNIT
    units = []
    for i in range(count):
        unit = "%s_unit%d" % (name, i + 1)
        first, last = len(together) * i // count, len(together) * (i + 1) // count
        native.genrule(
            name = unit,
            srcs = together[first:last],
            outs = [unit + ".cc"],
            cmd = "for file in $(SRCS); do echo \"#include \\\"$$file\\\"\"; done > $@",
            tags = ["manual"],
            visibility = ["//visibility:private"],
        )
        units.append(unit + ".cc")
    return units, together

def _rule(rule, name, srcs, apart, deps, **kwargs):
    units, together = _units(name, srcs, apart)
    if not units:
        rule(name = name, srcs = srcs, deps = deps, **kwargs)
        return
    native.cc_library(
        name = name + "_sources",
        tags = ["manual"],
        textual_hdrs = together,
        visibility = ["//visibility:private"],
    )
    rule(
        name = name,
        srcs = [src for src in srcs if src not in together] + select({
            _IN_UNITS: units,
            "//conditions:default": together,
        }),
        deps = deps + select({
            _IN_UNITS: [":" + name + "_sources"],
            "//conditions:default": [],
        }),
        **kwargs
    )

def cc_library(name, srcs = [], apart = [], deps = [], **kwargs):
    """As Bazel's own, in units.

    Args:
      name: of the library.
      srcs: sources and private headers, a list.
      apart: sources that are compiled one by one all the same.
      deps: as ever.
      **kwargs: as ever.
    """
    _rule(native.cc_library, name, srcs, apart, deps, **kwargs)

def cc_binary(name, srcs = [], apart = [], deps = [], **kwargs):
    """As Bazel's own, in units: see cc_library."""
    _rule(native.cc_binary, name, srcs, apart, deps, **kwargs)

def cc_test(name, srcs = [], apart = [], deps = [], **kwargs):
    """As Bazel's own, in units: see cc_library."""
    _rule(native.cc_test, name, srcs, apart, deps, **kwargs)
