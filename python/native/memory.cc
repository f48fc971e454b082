#include "python/native/memory.h"

#include <string>

#include "python/native/convert.h"

namespace py = pybind11;

namespace tokamak::python {
namespace {

// The daemon may have to be waited for. Other threads of Python see it empty meanwhile.
template <typename T>
void DropWithoutGil(T& buffer) {
  if (buffer.empty()) return;
  WithoutGil([dropped = std::move(buffer)]() mutable { dropped = T(); });
}

template <typename T>
int GetBuffer(PyObject* self, Py_buffer* view, int flags) {
  T& object = *py::handle(self).cast<T*>();
  static uint8_t nothing;
  const auto bytes = object.bytes();
  if (object.over()) {
    view->obj = nullptr;
    PyErr_SetString(PyExc_BufferError, "this was released, sealed or aborted before: its bytes are not yours any more");
    return -1;
  }
  void* const data = bytes.empty() ? &nothing : const_cast<uint8_t*>(bytes.data());
  if (PyBuffer_FillInfo(view, self, data, static_cast<Py_ssize_t>(bytes.size()), T::kReadOnly, flags) != 0) return -1;
  ++object.views;
  return 0;
}

template <typename T>
void ReleaseBuffer(PyObject* self, Py_buffer*) {
  T& object = *py::handle(self).cast<T*>();
  if (--object.views == 0) object.OnLastView();
}

template <typename T>
py::custom_type_setup ExportsBytes() {
  return py::custom_type_setup([](PyHeapTypeObject* type) {
    type->as_buffer.bf_getbuffer = &GetBuffer<T>;
    type->as_buffer.bf_releasebuffer = &ReleaseBuffer<T>;
    type->ht_type.tp_as_buffer = &type->as_buffer;
  });
}

py::object ViewOf(const py::object& self) {
  return py::reinterpret_steal<py::object>(CheckedNew(PyMemoryView_FromObject(self.ptr())));
}

void RequireBytes(const Object& object) {
  if (object.over()) throw py::value_error("the object was released before: get it again");
}

template <typename T>
std::string Repr(const char* type, T& object) {
  if (object.over()) return std::string("<tokamak.") + type + ", over>";
  return std::string("<tokamak.") + type + " " + object.buffer.id().ToHex() + ", " +
         std::to_string(object.buffer.data().size()) + " bytes>";
}

}  // namespace

void Exporter::RequireNoViews(const char* what) const {
  if (views == 0) return;
  const std::string text = std::string("cannot ") + what + " while " + std::to_string(views) +
                           " views of it live: delete the memoryviews and arrays that were made of it first";
  PyErr_SetString(PyExc_BufferError, text.c_str());
  throw py::error_already_set();
}

Object::~Object() { DropWithoutGil(buffer); }

void Object::Release() {
  RequireNoViews("release an object");
  DropWithoutGil(buffer);
}

Writer::~Writer() { DropWithoutGil(buffer); }

void Writer::Seal() {
  RequireNoViews("seal an object");
  MutableBuffer sealed = std::move(buffer);  // before another thread of Python runs
  Check(WithoutGil([&sealed] { return sealed.Seal(); }));
}

void Writer::Abort() {
  if (views > 0) {
    aborted = true;
    return;
  }
  MutableBuffer dropped = std::move(buffer);
  Check(WithoutGil([&dropped] { return dropped.Abort(); }));
}

void Writer::OnLastView() {
  if (aborted) DropWithoutGil(buffer);
}

void DefineMemory(py::module_& module) {
  py::class_<Object>(module, "Object", ExportsBytes<Object>(),
                     "An object that was got: its bytes in shared memory, pinned while this or a view of it lives.")
      .def_property_readonly(
          "id", [](const Object& self) { return self.buffer.id(); }, "Its ObjectId.")
      .def_property_readonly("data", &ViewOf, "A read-only memoryview of its bytes.")
      .def_property_readonly(
          "metadata",
          [](const Object& self) {
            RequireBytes(self);
            return BytesOf(self.buffer.metadata());
          },
          "A copy of its metadata.")
      .def_property_readonly("released", &Object::over, "Whether it was given back.")
      .def("release", &Object::Release, "Gives it back. BufferError: views of it live.")
      .def("__len__",
           [](const Object& self) {
             RequireBytes(self);
             return self.buffer.data().size();
           })
      .def("__bytes__",
           [](const Object& self) {
             RequireBytes(self);
             return BytesOf(self.buffer.data());
           })
      .def("__enter__", [](py::object self) { return self; })
      .def("__exit__", [](Object& self, const py::args&) { self.Release(); })
      .def("__repr__", [](Object& self) { return Repr("Object", self); });

  py::class_<Writer>(module, "Writer", ExportsBytes<Writer>(),
                     "An object that is being made: its bytes in shared memory, to be filled and sealed.")
      .def_property_readonly(
          "id", [](const Writer& self) { return self.buffer.id(); }, "Its ObjectId.")
      .def_property_readonly("data", &ViewOf, "A writable memoryview of its bytes.")
      .def_property_readonly("done", &Writer::over, "Whether it was sealed or aborted.")
      .def("seal", &Writer::Seal, "Makes it whole, and seen by others. BufferError: views of it live.")
      .def("abort", &Writer::Abort, "Drops it, when the last view of it is gone.")
      .def("__len__", [](Writer& self) { return self.buffer.data().size(); })
      .def("__enter__", [](py::object self) { return self; })
      .def("__exit__",
           [](Writer& self, const py::object& type, const py::object&, const py::object&) {
             if (self.over()) return;
             type.is_none() ? self.Seal() : self.Abort();
           })
      .def("__repr__", [](Writer& self) { return Repr("Writer", self); });
}

}  // namespace tokamak::python
