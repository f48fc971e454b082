// tokamak._native: the C++ client for Python. The package's Python files (python/tokamak) are what
// programs import; _native.pyi says what is here.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "python/native/convert.h"
#include "python/native/dlpack.h"
#include "python/native/gil.h"
#include "python/native/memory.h"
#include "tokamak/client.h"
#include "tokamak/gets.h"
#include "tokamak/interrupt.h"
#include "tokamak/version.h"

namespace py = pybind11;

namespace tokamak::python {
namespace {

using py::arg;
using py::kw_only;

std::unique_ptr<Object> Pinned(Buffer&& buffer) { return std::make_unique<Object>(std::move(buffer)); }

PutOptions OptionsOf(const py::object& timeout, bool confirmed) {
  PutOptions options;
  options.timeout = TimeoutOf(timeout);
  options.confirmed = confirmed;
  return options;
}

// An object to be put, and what keeps its bytes.
struct Putting {
  ObjectId id;
  ReadableBytes data;
  ReadableBytes metadata;
  std::string name;  // to be kept with it
  Putting(const py::handle& id_in, const py::handle& data_in, const py::handle& metadata_in, bool named)
      : id(IdOf(id_in)), data(data_in), metadata(metadata_in), name(named ? NameOf(id_in) : "") {}
  // While this lives, where it is.
  PutObject object() const { return {id, data.bytes(), metadata.bytes(), name}; }
};

Client Connect(const std::string& socket, const py::object& call_timeout, bool read_only, const std::string& name) {
  ClientOptions options;
  options.call_timeout = TimeoutOf(call_timeout);
  options.access = read_only ? Access::kRead : Access::kReadAndCreate;
  options.name = name;
  return Value(WithoutGil([&] { return Client::Connect(socket, options); }));
}

void Put(Client& client, const py::handle& id, const py::handle& data, const py::handle& metadata,
         const py::object& timeout, bool confirmed, bool named, const Interrupt* interrupt) {
  const Putting putting(id, data, metadata, named);
  const PutObject object = putting.object();
  PutOptions options = OptionsOf(timeout, confirmed);
  options.name = putting.name;
  Check(WaitWithoutGil(interrupt, [&](const Interrupt* by) {
    options.interrupt = by;
    return client.Put(object.id, object.data, object.metadata, options);
  }));
}

// None for each that went well.
py::list ErrorsOf(const std::vector<Status>& statuses) {
  HandleSignals();
  py::list errors;
  for (const Status& status : statuses) errors.append(status.ok() ? py::none() : ErrorOf(status));
  return errors;
}

py::list PutMany(Client& client, const py::iterable& objects, const py::object& timeout, bool confirmed, bool named) {
  std::vector<Putting> putting;
  for (const py::handle& object : objects) {
    const auto parts = py::reinterpret_borrow<py::object>(object).cast<py::tuple>();
    if (parts.size() != 2 && parts.size() != 3) throw py::type_error("give (id, data) or (id, data, metadata) of each");
    putting.emplace_back(parts[0], parts[1], parts.size() == 3 ? py::object(parts[2]) : py::bytes(), named);
  }
  std::vector<PutObject> given;
  for (const Putting& one : putting) given.push_back(one.object());
  const PutOptions options = OptionsOf(timeout, confirmed);
  return ErrorsOf(WithoutGil([&] { return client.Put(given, options); }));
}

// Prefetch or Pin.
template <auto kMethod>
py::list Bring(Client& client, const py::iterable& ids, const py::object& timeout) {
  const std::vector<ObjectId> named = IdsOf(ids);
  const Timeout wait = TimeoutOf(timeout);
  return ErrorsOf(WithoutGil([&] { return (client.*kMethod)(named, wait); }));
}

py::list Push(Client& client, const py::iterable& ids, const std::string& node, const py::object& timeout) {
  const std::vector<ObjectId> named = IdsOf(ids);
  const Timeout wait = TimeoutOf(timeout);
  return ErrorsOf(WithoutGil([&] { return client.Push(named, node, wait); }));
}

std::unique_ptr<Writer> Create(Client& client, const py::handle& id, uint64_t size, const py::handle& metadata,
                               const py::object& timeout, bool confirmed, bool claim, bool named,
                               const Interrupt* interrupt) {
  const ReadableBytes tail(metadata);
  const ObjectId object = IdOf(id);
  PutOptions options = OptionsOf(timeout, confirmed);
  options.claim = claim;
  if (named) options.name = NameOf(id);
  return std::make_unique<Writer>(Value(WaitWithoutGil(interrupt, [&](const Interrupt* by) {
    options.interrupt = by;
    return client.Create(object, size, tail.bytes(), options);
  })));
}

std::unique_ptr<Object> Get(Client& client, const py::handle& id, const py::object& timeout,
                            const Interrupt* interrupt) {
  const ObjectId named = IdOf(id);
  const Timeout wait = TimeoutOf(timeout);
  return Pinned(Value(WaitWithoutGil(interrupt, [&](const Interrupt* by) {
    GetOptions options;
    options.interrupt = by;
    return client.Get(named, wait, options);
  })));
}

// Objects that did not come are None.
py::list GetMany(Client& client, const py::iterable& ids, const py::object& timeout, const Interrupt* interrupt) {
  const std::vector<ObjectId> named = IdsOf(ids);
  const Timeout wait = TimeoutOf(timeout);
  std::vector<Result<Buffer>> buffers = WaitWithoutGil(interrupt, [&](const Interrupt* by) {
    GetOptions options;
    options.interrupt = by;
    return client.Get(Span<const ObjectId>(named), wait, options);
  });
  py::list objects;
  for (Result<Buffer>& buffer : buffers) {
    const StatusCode code = buffer.status().code();
    if (code == StatusCode::kNotFound || code == StatusCode::kDeadlineExceeded) {
      objects.append(py::none());
    } else {
      objects.append(py::cast(Pinned(Value(std::move(buffer)))));
    }
  }
  return objects;
}

std::vector<bool> Wait(Client& client, const py::iterable& ids, const std::optional<size_t>& count,
                       const py::object& timeout, bool anywhere, const Interrupt* interrupt) {
  const std::vector<ObjectId> named = IdsOf(ids);
  const Timeout wait = TimeoutOf(timeout);
  return Value(WaitWithoutGil(interrupt, [&](const Interrupt* by) {
    WaitOptions options;
    options.scope = anywhere ? Scope::kAnywhere : Scope::kLocal;
    options.interrupt = by;
    return client.Wait(named, count.value_or(named.size()), wait, options);
  }));
}

std::vector<ObjectInfo> List(Client& client, const std::optional<size_t>& limit, const py::object& after) {
  const std::optional<ObjectId> begin = after.is_none() ? std::nullopt : std::make_optional(IdOf(after));
  return Value(WithoutGil([&] { return client.List(limit.value_or(SIZE_MAX), begin); }));
}

py::dict NumbersOf(const std::vector<NodeNumber>& numbers) {
  py::dict by_name;
  for (const NodeNumber& number : numbers) by_name[py::str(number.name)] = number.value;
  return by_name;
}

// A call about one object that answers soon.
template <auto kMethod>
auto About(Client& client, const py::handle& id) {
  const ObjectId named = IdOf(id);
  auto answer = WithoutGil([&] { return (client.*kMethod)(named); });
  if constexpr (std::is_same_v<decltype(answer), Status>) {
    Check(answer);
  } else {
    return Value(std::move(answer));
  }
}

// None: none has ended in time, or none is pending.
py::object NextOf(Gets& gets, const py::object& timeout) {
  const Timeout wait = TimeoutOf(timeout);
  Result<Gets::Answer> next = WaitWithoutGil(nullptr, [&](const Interrupt* by) { return gets.Next(wait, by); });
  const StatusCode code = next.status().code();
  if (code == StatusCode::kDeadlineExceeded || code == StatusCode::kFailedPrecondition) return py::none();
  Gets::Answer answer = Value(std::move(next));
  if (!answer.buffer.ok()) return py::make_tuple(answer.number, ErrorOf(answer.buffer.status()));
  return py::make_tuple(answer.number, py::cast(Pinned(*std::move(answer.buffer))));
}

Events NextEvents(Subscription& subscription, const py::object& timeout) {
  const Timeout wait = TimeoutOf(timeout);
  return Value(WaitWithoutGil(nullptr, [&](const Interrupt* by) { return subscription.Next(wait, by); }));
}

double Seconds(std::chrono::microseconds duration) { return std::chrono::duration<double>(duration).count(); }

void DefineValues(py::module_& m) {
  py::class_<ObjectId>(m, "ObjectId", "20 bytes that name an object.")
      .def(py::init([](const py::bytes& bytes) { return IdOf(bytes); }), arg("bytes"))
      .def_static(
          "from_name", [](const std::string& name) { return ObjectId::FromName(name); }, arg("name"),
          "The id that a str stands for.")
      .def_static(
          "from_hex",
          [](const std::string& hex) {
            const std::optional<ObjectId> id = ObjectId::FromHex(hex);
            if (!id.has_value()) throw py::value_error("an id is 40 hexadecimal digits, not " + hex);
            return *id;
          },
          arg("hex"), "From 40 hexadecimal digits.")
      .def("hex", &ObjectId::ToHex, "40 hexadecimal digits.")
      .def("__bytes__",
           [](const ObjectId& id) {
             return BytesOf({id.data(), ObjectId::kSize});
           })
      .def("__hash__", [](const ObjectId& id) { return std::hash<ObjectId>()(id); })
      .def("__eq__",
           [](const ObjectId& id, const py::object& other) {
             return py::isinstance<ObjectId>(other) && id == other.cast<ObjectId>();
           })
      .def("__lt__", [](const ObjectId& id, const ObjectId& other) { return id < other; })
      .def("__repr__", [](const ObjectId& id) { return "ObjectId.from_hex('" + id.ToHex() + "')"; })
      .def(py::pickle(
          [](const ObjectId& id) {
            return BytesOf({id.data(), ObjectId::kSize});
          },
          [](const py::bytes& bytes) { return IdOf(bytes); }));

  py::enum_<ObjectState>(m, "ObjectState")
      .value("CREATED", ObjectState::kCreated)
      .value("SEALED", ObjectState::kSealed)
      .value("EVICTED", ObjectState::kEvicted)
      .value("DELETED", ObjectState::kDeleted)
      .value("ABORTED", ObjectState::kAborted);
  py::enum_<Origin>(m, "Origin").value("CREATED_HERE", Origin::kCreatedHere).value("PULLED", Origin::kPulled);
  py::enum_<EventKind>(m, "EventKind")
      .value("SEALED", EventKind::kSealed)
      .value("DELETED", EventKind::kDeleted)
      .value("EVICTED", EventKind::kEvicted)
      .value("REFUSED", EventKind::kRefused);

  py::enum_<NodeState>(m, "NodeState")
      .value("ALIVE", NodeState::kAlive)
      .value("SUSPECTED", NodeState::kSuspected)
      .value("SILENT", NodeState::kSilent);

  py::class_<ObjectInfo>(m, "ObjectInfo")
      .def_readonly("id", &ObjectInfo::id)
      .def_readonly("data_size", &ObjectInfo::data_size)
      .def_readonly("metadata_size", &ObjectInfo::metadata_size)
      .def_readonly("pins", &ObjectInfo::pins)
      .def_property_readonly("age", [](const ObjectInfo& info) { return Seconds(info.age); })
      .def_readonly("state", &ObjectInfo::state)
      .def_readonly("origin", &ObjectInfo::origin)
      .def_readonly("name", &ObjectInfo::name);
  py::class_<PullProgress>(m, "PullProgress")
      .def_readonly("moved", &PullProgress::moved)
      .def_readonly("total", &PullProgress::total);

  py::class_<ObjectStat>(m, "ObjectStat")
      .def_readonly("here", &ObjectStat::here)
      .def_readonly("located", &ObjectStat::located)
      .def_readonly("object", &ObjectStat::object)
      .def_readonly("holders", &ObjectStat::holders);
  py::class_<Evicted>(m, "Evicted").def_readonly("objects", &Evicted::objects).def_readonly("bytes", &Evicted::bytes);
  py::class_<NodeInfo>(m, "NodeInfo")
      .def_readonly("name", &NodeInfo::name)
      .def_readonly("address", &NodeInfo::address)
      .def_readonly("device", &NodeInfo::device)
      .def_readonly("incarnation", &NodeInfo::incarnation)
      .def_readonly("capacity", &NodeInfo::capacity)
      .def_readonly("is_this", &NodeInfo::is_this);
  py::class_<ViewedNode>(m, "ViewedNode")
      .def_readonly("info", &ViewedNode::info)
      .def_readonly("state", &ViewedNode::state)
      .def_property_readonly("unheard_for", [](const ViewedNode& node) { return Seconds(node.unheard_for); })
      .def_readonly("page", &ViewedNode::page)
      .def_property_readonly("numbers", [](const ViewedNode& node) { return NumbersOf(node.numbers); });
  py::class_<ClusterView>(m, "ClusterView")
      .def_readonly("located", &ClusterView::located)
      .def_readonly("nodes", &ClusterView::nodes);
  py::class_<Event>(m, "Event")
      .def_readonly("kind", &Event::kind)
      .def_readonly("origin", &Event::origin)
      .def_readonly("id", &Event::id)
      .def_readonly("data_size", &Event::data_size)
      .def_readonly("metadata_size", &Event::metadata_size)
      .def_readonly("name", &Event::name);
  py::class_<Events>(m, "Events").def_readonly("dropped", &Events::dropped).def_readonly("events", &Events::events);
}

void DefineClient(py::module_& m) {
  const py::object ten = py::float_(10.0), five = py::float_(5.0), nothing = py::bytes();

  py::class_<Interrupt>(m, "Interrupt",
                        "Ends a call of another thread: give it to the call, which then raises Cancelled.")
      .def(py::init([] { return Value(Interrupt::Make()); }))
      .def("fire", &Interrupt::Fire, "Ends the calls that have it, and those that are given it until reset().")
      .def("reset", &Interrupt::Reset, "From now on it ends nothing.")
      .def("fired", &Interrupt::fired, "Whether fire() was called, and not reset() since.");

  py::class_<Client>(m, "Client")
      .def(py::init(&Connect), arg("socket"), kw_only(), arg("call_timeout") = ten, arg("read_only") = false,
           arg("name") = "python")
      .def("put", &Put, arg("id"), arg("data"), arg("metadata") = nothing, kw_only(), arg("timeout") = five,
           arg("confirmed") = false, arg("named") = true, arg("interrupt") = py::none())
      .def("put_many", &PutMany, arg("objects"), kw_only(), arg("timeout") = five, arg("confirmed") = false,
           arg("named") = true)
      .def("create", &Create, arg("id"), arg("size"), arg("metadata") = nothing, kw_only(), arg("timeout") = five,
           arg("confirmed") = false, arg("claim") = true, arg("named") = true, arg("interrupt") = py::none())
      .def("get", &Get, arg("id"), arg("timeout") = ten, kw_only(), arg("interrupt") = py::none())
      .def("get_many", &GetMany, arg("ids"), arg("timeout") = ten, kw_only(), arg("interrupt") = py::none())
      .def("wait", &Wait, arg("ids"), arg("count") = py::none(), arg("timeout") = ten, kw_only(),
           arg("anywhere") = true, arg("interrupt") = py::none())
      .def("prefetch", &Bring<&Client::Prefetch>, arg("ids"), arg("timeout") = ten)
      .def("pin", &Bring<&Client::Pin>, arg("ids"), arg("timeout") = ten)
      .def("unpin", &About<&Client::Unpin>, arg("id"))
      .def("push", &Push, arg("ids"), arg("node"), arg("timeout") = ten)
      .def("contains", &About<&Client::Contains>, arg("id"))
      .def("list", &List, arg("limit") = py::none(), arg("after") = py::none())
      .def("stat", &About<&Client::Stat>, arg("id"))
      .def("progress", &About<&Client::Progress>, arg("id"))
      .def("hash", &About<&Client::Hash>, arg("id"))
      .def("delete", &About<&Client::Delete>, arg("id"))
      .def("touch", &About<&Client::Touch>, arg("id"))
      .def(
          "evict",
          [](Client& client, uint64_t bytes) { return Value(WithoutGil([&] { return client.Evict(bytes); })); },
          arg("bytes"))
      .def("subscribe", [](Client& client) { return Value(WithoutGil([&] { return client.Subscribe(); })); })
      .def("nodes", [](Client& client) { return Value(WithoutGil([&] { return client.Nodes(); })); })
      .def("node_stats",
           [](Client& client) { return NumbersOf(Value(WithoutGil([&] { return client.NodeStats(); })).numbers); })
      .def("cluster", [](Client& client) { return Value(WithoutGil([&] { return client.Cluster(); })); })
      .def("check", [](const Client& client) { Check(client.status()); })
      .def_property_readonly("connected", [](const Client& client) { return client.status().ok(); })
      .def_property_readonly("node", &Client::node)
      .def_property_readonly("capacity", &Client::capacity);

  py::class_<Gets>(m, "Gets")
      .def(py::init<const Client&>(), arg("client"))
      .def(
          "begin",
          [](Gets& gets, const py::handle& id, const py::object& timeout) {
            const ObjectId named = IdOf(id);
            const Timeout wait = TimeoutOf(timeout);
            return Value(WithoutGil([&] { return gets.Begin(named, wait); }));
          },
          arg("id"), arg("timeout") = ten)
      .def("next", &NextOf, arg("timeout") = ten)
      .def(
          "cancel", [](Gets& gets, uint64_t number) { WithoutGil([&] { gets.Cancel(number); }); }, arg("number"))
      .def("fileno", [](Gets& gets) { return Value(gets.descriptor()); })
      .def("__len__", &Gets::pending);

  py::class_<Subscription>(m, "Subscription", "What happens to objects of this node, as it comes.")
      .def("next", &NextEvents, arg("timeout") = ten,
           "What came since; waits for something. DeadlineExceeded: nothing did.")
      .def("fileno", &Subscription::descriptor, "A descriptor that is readable when there is something.");
}

}  // namespace
}  // namespace tokamak::python

PYBIND11_MODULE(_native, m) {
  m.doc() = "The C++ client of Tokamak for Python; programs import tokamak.";
  m.attr("__version__") = tokamak::Version();
  tokamak::python::ReleasedGil::ForgetOthersAfterFork();
  py::module_::import("atexit").attr("register")(py::cpp_function(&tokamak::python::ReleasedGil::KeepOthersAway));
  tokamak::python::DefineValues(m);
  tokamak::python::DefineMemory(m);
  tokamak::python::DefineDlpack(m);
  tokamak::python::DefineClient(m);
}
