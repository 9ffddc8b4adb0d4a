#pragma once
// Result<T>: a value or the Status that says why there is none.
#include <cassert>
#include <optional>
#include <utility>

#include "ropewalk/base/core/status.h"

namespace ropewalk {

template <typename T>
class [[nodiscard]] Result {
 public:
  // Implicit on purpose: `return value;` and `return not_found(...);` both read naturally.
  Result(T value) : value_(std::move(value)) {}         // NOLINT(google-explicit-constructor)
  Result(Status status) : status_(std::move(status)) {  // NOLINT(google-explicit-constructor)
    assert(!status_.ok() && "a Result without a value needs an error");
  }

  bool ok() const { return value_.has_value(); }
  const Status& status() const& { return status_; }
  Status status() && { return std::move(status_); }

  T& value() & {
    assert(ok());
    return *value_;
  }
  const T& value() const& {
    assert(ok());
    return *value_;
  }
  // By value: `for (auto& x : *f())` must not walk through a Result that is gone.
  T value() && {
    assert(ok());
    return std::move(*value_);
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  T value_or(T fallback) const& { return ok() ? *value_ : std::move(fallback); }

 private:
  std::optional<T> value_;
  Status status_;
};

}  // namespace ropewalk

#define ROPEWALK_CONCAT_INNER(a, b) a##b
#define ROPEWALK_CONCAT(a, b) ROPEWALK_CONCAT_INNER(a, b)

/// `ROPEWALK_RETURN_IF_ERROR(f());` returns the error of a Status expression to the caller. The
/// expression may hold a lambda that uses the macro itself: each use has a name of its own.
#define ROPEWALK_RETURN_IF_ERROR(expr) \
  ROPEWALK_RETURN_IF_ERROR_IMPL(ROPEWALK_CONCAT(rw_status_, __COUNTER__), expr)
#define ROPEWALK_RETURN_IF_ERROR_IMPL(status, expr)         \
  do {                                                      \
    if (::ropewalk::Status status = (expr); !status.ok()) { \
      return status;                                        \
    }                                                       \
  } while (false)

/// `ROPEWALK_ASSIGN_OR_RETURN(auto x, f());` binds the value of a Result or returns its error.
#define ROPEWALK_ASSIGN_OR_RETURN(lhs, expr) \
  ROPEWALK_ASSIGN_OR_RETURN_IMPL(ROPEWALK_CONCAT(rw_result_, __LINE__), lhs, expr)
#define ROPEWALK_ASSIGN_OR_RETURN_IMPL(result, lhs, expr) \
  auto result = (expr);                                   \
  if (!result.ok()) return std::move(result).status();    \
  lhs = std::move(result).value()

/// The same with context in front of the message.
#define ROPEWALK_ASSIGN_OR_RETURN_CTX(lhs, expr, context) \
  ROPEWALK_ASSIGN_OR_RETURN_CTX_IMPL(ROPEWALK_CONCAT(rw_result_, __LINE__), lhs, expr, context)
#define ROPEWALK_ASSIGN_OR_RETURN_CTX_IMPL(result, lhs, expr, context)       \
  auto result = (expr);                                                      \
  if (!result.ok()) return std::move(result).status().with_context(context); \
  lhs = std::move(result).value()
