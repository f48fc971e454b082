#include "python/native/convert.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <string_view>

#include "tokamak/types.h"

namespace py = pybind11;

namespace tokamak::python {
namespace {

// Lives as long as the str.
std::string_view Utf8Of(const py::handle& text) {
  Py_ssize_t length = 0;
  const char* const bytes = PyUnicode_AsUTF8AndSize(text.ptr(), &length);
  if (bytes == nullptr) throw py::error_already_set();  // UnicodeEncodeError, which is a ValueError
  return {bytes, static_cast<size_t>(length)};
}

}  // namespace

py::object ErrorOf(const Status& status) {
  return py::module_::import("tokamak.errors").attr("error_of")(static_cast<int>(status.code()), status.message());
}

void Check(const Status& status) {
  if (status.ok()) return;
  const py::object error = ErrorOf(status);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
  throw py::error_already_set();
}

PyObject* CheckedNew(PyObject* made) {
  if (made == nullptr) throw py::error_already_set();
  return made;
}

ObjectId IdOf(const py::handle& id) {
  if (py::isinstance<ObjectId>(id)) return id.cast<ObjectId>();
  if (py::isinstance<py::str>(id)) return ObjectId::FromName(Utf8Of(id));
  if (!py::isinstance<py::bytes>(id)) throw py::type_error("an id is an ObjectId, 20 bytes, or a str that names one");
  const std::string_view text = py::reinterpret_borrow<py::bytes>(id);
  if (text.size() != ObjectId::kSize) {
    throw py::value_error("an id has 20 bytes, not " + std::to_string(text.size()) + ": give a str to name one");
  }
  std::array<uint8_t, ObjectId::kSize> bytes;
  std::copy(text.begin(), text.end(), bytes.begin());
  return ObjectId(bytes);
}

std::string NameOf(const py::handle& id) {
  const std::string_view name = py::isinstance<py::str>(id) ? Utf8Of(id) : std::string_view();
  return PutOptions::MayBeKept(name) ? std::string(name) : std::string();
}

std::vector<ObjectId> IdsOf(const py::iterable& ids) {
  if (py::isinstance<py::str>(ids) || py::isinstance<py::bytes>(ids)) {
    throw py::type_error("give a list of ids, such as [id]");
  }
  std::vector<ObjectId> found;
  for (const py::handle& id : ids) found.push_back(IdOf(id));
  return found;
}

Timeout TimeoutOf(const py::object& seconds) {
  if (seconds.is_none()) return Timeout::Longest();
  const double number = PyFloat_AsDouble(seconds.ptr());
  if (PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    throw py::type_error("a time-out is a number of seconds, or None, not " + py::repr(seconds).cast<std::string>());
  }
  if (!(number >= 0)) throw py::value_error("a time-out is no less than 0, not " + std::to_string(number));
  return std::chrono::duration<double>(number);
}

py::bytes BytesOf(Span<const uint8_t> bytes) {
  return py::bytes(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

namespace {

// Whether a buffer's format (PEP 3118) has references to objects: an O that is in no field's name.
bool HasReferences(const char* format) {
  bool in_name = false;
  for (; format != nullptr && *format != '\0'; ++format) {
    if (*format == ':') in_name = !in_name;
    if (*format == 'O' && !in_name) return true;
  }
  return false;
}

}  // namespace

ReadableBytes::ReadableBytes(const py::handle& exporter) {
  if (!PyObject_CheckBuffer(exporter.ptr())) {
    throw py::type_error("give what has the buffer protocol, such as bytes, not " +
                         py::repr(py::type::of(exporter)).cast<std::string>() + "; put_object() takes any object");
  }
  // Some say nothing of their format, and some have none that there is a letter for.
  if (PyObject_GetBuffer(exporter.ptr(), &view_, PyBUF_FORMAT | PyBUF_STRIDES) != 0) {
    PyErr_Clear();
    if (PyObject_GetBuffer(exporter.ptr(), &view_, PyBUF_SIMPLE) != 0) throw py::error_already_set();
    return;
  }
  const bool has_references = HasReferences(view_.format);
  const bool in_one_piece = PyBuffer_IsContiguous(&view_, 'C') != 0;
  if (!has_references && in_one_piece) return;
  PyBuffer_Release(&view_);
  if (has_references) throw py::type_error("it holds references to Python objects: use put_object()");
  throw py::value_error("its bytes are not in one piece, in C order: use put_array(), or copy it first");
}

}  // namespace tokamak::python
