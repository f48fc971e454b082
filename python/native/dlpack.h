// Arrays as DLPack has them (https://dmlc.github.io/dlpack, versions 0.x and 1.0): in host memory,
// in place, for torch, NumPy, JAX and others that take what has __dlpack__().
//
// Thread rule: with the GIL; whoever takes a capsule may give it back on any thread, without it.
#pragma once

#include <pybind11/pybind11.h>

namespace tokamak::python {

// Enters `dlpack_capsule` into the module.
void DefineDlpack(pybind11::module_& module);

}  // namespace tokamak::python
