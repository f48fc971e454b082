"""headers_of: all headers that a library includes, its own and those of what it depends on."""

def _headers_of_impl(ctx):
    return [DefaultInfo(files = ctx.attr.library[CcInfo].compilation_context.headers)]

headers_of = rule(
    implementation = _headers_of_impl,
    doc = "The headers of `library` and of all that it depends on, in this tree.",
    attrs = {"library": attr.label(providers = [CcInfo])},
)
