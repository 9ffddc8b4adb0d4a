#include "ropewalk/base/io/fault.h"

#include <atomic>
#include <memory>
#include <mutex>

namespace ropewalk {
namespace {

using Hook = std::function<Status(std::string_view)>;

std::atomic<bool> g_hooked{false};

struct HookSlot {
  std::mutex mutex;
  std::shared_ptr<const Hook> hook;
};

HookSlot& hook_slot() {
  static auto* slot = new HookSlot;  // never destroyed: other statics may still do I/O at exit
  return *slot;
}

}  // namespace

Status fault_point(std::string_view point) {
  if (!g_hooked.load(std::memory_order_relaxed)) return ok_status();
  std::shared_ptr<const Hook> hook;
  {
    HookSlot& slot = hook_slot();
    const std::scoped_lock lock(slot.mutex);
    hook = slot.hook;
  }
  return hook ? (*hook)(point) : ok_status();
}

void set_fault_hook(Hook hook) {
  HookSlot& slot = hook_slot();
  const std::scoped_lock lock(slot.mutex);
  g_hooked.store(static_cast<bool>(hook), std::memory_order_relaxed);
  slot.hook = hook ? std::make_shared<const Hook>(std::move(hook)) : nullptr;
}

}  // namespace ropewalk
