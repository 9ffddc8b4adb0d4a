#pragma once
// Status: the outcome of an operation. One pointer, null when OK.
// A message says what, where, expected and found, and what to do next when there is one thing to
// do. Context is added while unwinding: `return s.with_context("episode 12")`.
#include <memory>
#include <string>
#include <string_view>

namespace ropewalk {

/// The closed set of error codes. Every shell maps them in one switch; docs/errors.md is the table.
enum class StatusCode {
  ok = 0,
  cancelled,
  invalid_argument,
  not_found,
  already_exists,
  out_of_range,
  data_loss,
  resource_exhausted,
  failed_precondition,
  permission_denied,
  unimplemented,
  unavailable,
  internal,
};

/// Returns the name used in JSON, logs and messages, for example "data_loss".
std::string_view status_code_name(StatusCode code);

/// Threads: immutable after construction; copies share nothing.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message);
  Status(const Status& other);
  Status& operator=(const Status& other);
  Status(Status&&) noexcept = default;
  Status& operator=(Status&&) noexcept = default;

  bool ok() const { return rep_ == nullptr; }
  StatusCode code() const { return rep_ ? rep_->code : StatusCode::ok; }
  /// Returns the message without the code; empty when OK.
  std::string_view message() const { return rep_ ? std::string_view(rep_->message) : ""; }
  /// Returns the short stable reason such as `SOURCE_CHANGED`; empty when there is none.
  std::string_view reason() const { return rep_ ? std::string_view(rep_->reason) : ""; }
  /// Returns "data_loss: message" or "ok".
  std::string to_string() const;

  /// Returns the same error with `context: ` in front of its message; OK stays OK. A message that
  /// begins with it stays as it is: callee and caller may both name the episode.
  Status with_context(std::string_view context) const;
  /// Returns the same error carrying a stable reason that programs may test.
  Status with_reason(std::string_view reason) const;

 private:
  struct Rep {
    StatusCode code;
    std::string message;
    std::string reason;
  };
  std::unique_ptr<Rep> rep_;
};

inline Status ok_status() { return {}; }
Status cancelled(std::string message = "stopped on request");
Status invalid_argument(std::string message);
Status not_found(std::string message);
Status already_exists(std::string message);
Status out_of_range(std::string message);
Status data_loss(std::string message);
Status resource_exhausted(std::string message);
Status failed_precondition(std::string message);
Status permission_denied(std::string message);
Status unimplemented(std::string message);
Status unavailable(std::string message);
Status internal(std::string message);

/// Returns the status for a failed system call: "`what`: strerror", with the code that `error`
/// means (ENOENT not_found, EEXIST already_exists, EACCES/EPERM/EROFS permission_denied,
/// ENOSPC/EDQUOT/EMFILE/ENOMEM resource_exhausted, everything else unavailable).
Status errno_status(int error, std::string_view what);

}  // namespace ropewalk
