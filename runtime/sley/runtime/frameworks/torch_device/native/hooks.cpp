// What PyTorch asks of a device in C++ alone: generators, streams and events, and which device of several is current.
//
// A module of Python, "sley_torch_hooks", that registers itself with PyTorch when it is imported. State of streams and
// events is Python's: the functions of the module given to install() are called, and raise what they raise.

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/ops/empty_cpu_dispatch.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/Generator.h>
#include <torch/csrc/autograd/python_variable.h>

#include <atomic>
#include <cstring>
#include <vector>

namespace {

using c10::Device;
using c10::DeviceIndex;
using c10::Stream;

constexpr auto kind = c10::DeviceType::PrivateUse1;
constexpr size_t state_bytes = 16;
constexpr int most_devices = 16;

PyObject* functions = nullptr;
std::atomic<int> device_count{1};
thread_local DeviceIndex current = 0;

DeviceIndex checked(DeviceIndex index) {
  if (index < 0) return current;
  TORCH_CHECK(index < device_count, "device sley:", int(index), "; there is sley:0",
              device_count > 1 ? " to sley:" + std::to_string(device_count - 1) : "",
              "; torch.sley.set_engine(url, index) adds one");
  return index;
}

struct Held {  // the interpreter's lock
  PyGILState_STATE state = PyGILState_Ensure();
  ~Held() { PyGILState_Release(state); }
};

// Calls a function of the installed module: a new reference, or what it raised. The caller holds the lock.
template <typename... Values>
PyObject* call(const char* name, const char* format, Values... values) {
  PyObject* result = PyObject_CallMethod(functions, name, format, values...);
  if (!result) {
    python_error error;
    error.persist();
    throw std::move(error);
  }
  return result;
}

template <typename... Values>
double number(const char* name, const char* format, Values... values) {
  Held held;
  PyObject* result = call(name, format, values...);
  double value = PyFloat_AsDouble(result);
  Py_DECREF(result);
  return value;
}

// A seed, and how many calls have drawn since.
struct Counter final : c10::GeneratorImpl {
  uint64_t seed_ = c10::default_rng_seed_val, count_ = 0;

  explicit Counter(DeviceIndex index) : GeneratorImpl({kind, index}, {}) {}  // no key: tensors say who draws

  void set_current_seed(uint64_t seed) override { seed_ = seed, count_ = 0; }
  void set_offset(uint64_t offset) override { count_ = offset; }
  uint64_t get_offset() const override { return count_; }
  uint64_t current_seed() const override { return seed_; }
  uint64_t seed() override {
    set_current_seed(c10::detail::getNonDeterministicRandom());
    return seed_;
  }
  void set_state(const c10::TensorImpl& state) override {
    at::detail::check_rng_state(state);
    TORCH_CHECK(state.numel() == state_bytes, "a random state of ", state.numel(),
                " bytes; those of the device sley have ", state_bytes);
    std::memcpy(&seed_, state.data(), 8);
    std::memcpy(&count_, static_cast<const char*>(state.data()) + 8, 8);
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    auto state = at::cpu::empty({int64_t(state_bytes)}, at::kByte);
    std::memcpy(state.mutable_data_ptr(), &seed_, 8);
    std::memcpy(static_cast<char*>(state.mutable_data_ptr()) + 8, &count_, 8);
    return state.getIntrusivePtr();
  }
  Counter* clone_impl() const override {
    auto* copy = new Counter(device_.index());
    copy->seed_ = seed_, copy->count_ = count_;
    return copy;
  }
};

// Memory is Python's, so a storage comes with a tensor. Without an allocator PyTorch would read address 0.
struct NoAllocator final : c10::Allocator {
  c10::DataPtr allocate(size_t size) override {
    TORCH_CHECK_NOT_IMPLEMENTED(!size, "a storage of ", size, " bytes alone on sley: torch.empty has one");
    return {nullptr, {kind, current}};
  }
  void copy_data(void*, const void*, size_t) const override {
    TORCH_CHECK_NOT_IMPLEMENTED(false, "a copy of a storage alone on sley: clone() the tensor");
  }
};

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(DeviceIndex) const override { return true; }
  c10::Allocator* getPinnedMemoryAllocator() const override { return c10::GetAllocator(c10::kCPU); }  // as it is
  at::Generator getNewGenerator(DeviceIndex index) const override {
    return at::make_generator<Counter>(checked(index));
  }
  const at::Generator& getDefaultGenerator(DeviceIndex index) const override { return defaults[checked(index)]; }

  std::vector<at::Generator> defaults;
  explicit Hooks(int most) {
    for (int index = 0; index < most; index++) defaults.push_back(at::make_generator<Counter>(index));
  }
};

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kind; }
  DeviceIndex deviceCount() const noexcept override { return DeviceIndex(device_count); }
  Device getDevice() const override { return {kind, current}; }
  void setDevice(Device device) const override { current = checked(device.index()); }
  void uncheckedSetDevice(Device device) const noexcept override { current = device.index(); }
  c10::DeviceCapability getDeviceCapability(Device) const override {
    c10::DeviceCapability found;
    found.capability_data.capability_bits = 0;
    for (auto index : {c10::kIndex_Bool, c10::kIndex_Char, c10::kIndex_Int, c10::kIndex_Long, c10::kIndex_BFloat16,
                       c10::kIndex_Float})
      found.capability_data.capability_bits |= 1ULL << index;
    return found;
  }
  Device exchangeDevice(Device device) const override {
    Device before = getDevice();
    setDevice(device);
    return before;
  }

  // A stream has the number of its device and that of its queue.
  Stream stream(DeviceIndex index, int64_t id) const { return Stream(Stream::UNSAFE, {kind, index}, id); }
  Stream named(const char* name, DeviceIndex index) const { return stream(index, number(name, "i", index)); }
  double of(const char* name, const Stream& s) const { return number(name, "iL", s.device_index(), s.id()); }
  Stream getDefaultStream(Device device) const override { return stream(checked(device.index()), 0); }
  Stream getStream(Device device) const override { return named("current", checked(device.index())); }
  Stream getNewStream(Device device, int) const override { return named("new", checked(device.index())); }
  Stream getStreamFromGlobalPool(Device device, bool) const override { return getNewStream(device, 0); }
  Stream exchangeStream(Stream next) const override {
    return stream(next.device_index(), of("exchange", next));
  }
  bool queryStream(const Stream& stream) const override { return of("idle", stream); }
  void synchronizeStream(const Stream& stream) const override { of("synchronize", stream); }
  void synchronizeDevice(const DeviceIndex index) const override { number("synchronize_all", "i", checked(index)); }

  // An event is a reference to an object of Python.
  void record(void** event, const Stream& stream, const DeviceIndex, const c10::EventFlag) const override {
    Held held;
    auto* made = call("record", "iL", stream.device_index(), stream.id());
    Py_XDECREF(static_cast<PyObject*>(*event));
    *event = made;
  }
  void block(void* event, const Stream& stream) const override {
    number("hold", "iLO", stream.device_index(), stream.id(), event);
  }
  bool queryEvent(void* event) const override { return number("happened", "O", event); }
  void synchronizeEvent(void* event) const override { number("wait", "O", event); }
  void destroyEvent(void* event, const DeviceIndex) const noexcept override {
    if (!event || !Py_IsInitialized()) return;
    Held held;
    Py_DECREF(static_cast<PyObject*>(event));
  }
  double elapsedTime(void* start, void* end, const DeviceIndex) const override {
    return number("milliseconds", "OO", start, end);
  }
};

PyObject* install(PyObject*, PyObject* module) {
  Py_XSETREF(functions, Py_NewRef(module));
  Py_RETURN_NONE;
}

PyObject* set_device_count(PyObject*, PyObject* count) {
  device_count = int(PyLong_AsLong(count));
  Py_RETURN_NONE;
}

PyObject* default_generator(PyObject*, PyObject* index) {
  HANDLE_TH_ERRORS
  return THPGenerator_Wrap(at::detail::getPrivateUse1Hooks().getDefaultGenerator(DeviceIndex(PyLong_AsLong(index))));
  END_HANDLE_TH_ERRORS
}

PyObject* empty_tensor(PyObject*, PyObject* args) {
  HANDLE_TH_ERRORS
  PyObject* dtype = nullptr;
  int index = 0;
  if (!PyArg_ParseTuple(args, "O!i", &THPDtypeType, &dtype, &index)) return nullptr;
  c10::Storage storage(c10::Storage::use_byte_size_t{}, 0, at::DataPtr(nullptr, {kind, DeviceIndex(index)}));
  return THPVariable_Wrap(at::detail::make_tensor<at::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
      c10::scalarTypeToTypeMeta(reinterpret_cast<THPDtype*>(dtype)->scalar_type)));
  END_HANDLE_TH_ERRORS
}

PyMethodDef methods[] = {
    {"install", install, METH_O, "Sets the module whose functions streams and events call."},
    {"set_device_count", set_device_count, METH_O, "How many devices there are."},
    {"default_generator", default_generator, METH_O, "The generator of a device, by its index."},
    {"empty_tensor", empty_tensor, METH_VARARGS, "A tensor without elements of a type, on the device of an index."},
    {}};
PyModuleDef definition = {PyModuleDef_HEAD_INIT, "sley_torch_hooks", nullptr, -1, methods};

}  // namespace

PyMODINIT_FUNC PyInit_sley_torch_hooks() {
  at::RegisterPrivateUse1HooksInterface(new Hooks(most_devices));
  c10::impl::registerDeviceGuard(kind, new Guard);
  c10::SetAllocator(kind, new NoAllocator);
  return PyModule_Create(&definition);
}
