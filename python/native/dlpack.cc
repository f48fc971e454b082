#include "python/native/dlpack.h"

#include <cstdint>
#include <memory>
#include <vector>

#include "python/native/convert.h"

namespace py = pybind11;

namespace tokamak::python {
namespace {

// The structs of the format, by its names for fields and values.
struct DLDevice {
  int32_t device_type;
  int32_t device_id;
};
constexpr int32_t kDLCPU = 1;

struct DLDataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};

struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;  // in elements
  uint64_t byte_offset;
};

struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor* self);
  static constexpr char kName[] = "dltensor";
  void BeReadOnly() {}  // the format has no word for it before 1.0
};

struct DLManagedTensorVersioned {
  uint32_t major = 1;
  uint32_t minor = 0;
  void* manager_ctx;
  void (*deleter)(DLManagedTensorVersioned* self);
  uint64_t flags = 0;
  DLTensor dl_tensor;
  static constexpr char kName[] = "dltensor_versioned";
  void BeReadOnly() { flags |= 1; }
};

// An array that is exported, and what it lies in: kept until its taker gives it back.
template <typename Managed>
struct Exported {
  Managed managed{};
  Py_buffer view{};
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;

  ~Exported() {
    if (view.obj == nullptr || Py_IsInitialized() == 0) return;  // the interpreter has ended, and its memory with it
    const PyGILState_STATE state = PyGILState_Ensure();
    PyBuffer_Release(&view);
    PyGILState_Release(state);
  }
};

template <typename Managed>
void Delete(Managed* managed) {
  delete static_cast<Exported<Managed>*>(managed->manager_ctx);
}

// A capsule that nobody took; whoever takes one renames it.
template <typename Managed>
void DropCapsule(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, Managed::kName) == 0) return;
  Delete(static_cast<Managed*>(PyCapsule_GetPointer(capsule, Managed::kName)));
}

template <typename Managed>
py::object CapsuleOf(const py::object& array, uint8_t code) {
  auto exported = std::make_unique<Exported<Managed>>();
  Py_buffer& view = exported->view;
  if (PyObject_GetBuffer(array.ptr(), &view, PyBUF_STRIDES | PyBUF_FORMAT) != 0) throw py::error_already_set();
  for (int i = 0; i < view.ndim; ++i) {
    exported->shape.push_back(view.shape[i]);
    exported->strides.push_back(view.strides[i] / view.itemsize);
  }
  Managed& managed = exported->managed;
  managed.manager_ctx = exported.get();
  managed.deleter = &Delete<Managed>;
  managed.dl_tensor = {view.buf,
                       {kDLCPU, 0},
                       view.ndim,
                       {code, static_cast<uint8_t>(view.itemsize * 8), 1},
                       exported->shape.data(),
                       exported->strides.data(),
                       0};
  if (view.readonly != 0) managed.BeReadOnly();
  py::object capsule =
      py::reinterpret_steal<py::object>(CheckedNew(PyCapsule_New(&managed, Managed::kName, &DropCapsule<Managed>)));
  exported.release();  // the capsule's now
  return capsule;
}

}  // namespace

void DefineDlpack(py::module_& module) {
  module.def(
      "dlpack_capsule",
      [](const py::object& array, uint8_t code, bool versioned) {
        return versioned ? CapsuleOf<DLManagedTensorVersioned>(array, code) : CapsuleOf<DLManagedTensor>(array, code);
      },
      py::arg("array"), py::arg("code"), py::arg("versioned"),
      "A DLPack capsule of an array with the buffer protocol, whose elements are of that type code.");
}

}  // namespace tokamak::python
