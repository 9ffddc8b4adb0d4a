#include "ropewalk/base/core/status.h"

#include <cerrno>
#include <system_error>
#include <utility>

namespace ropewalk {

std::string_view status_code_name(StatusCode code) {
  switch (code) {
    case StatusCode::ok:
      return "ok";
    case StatusCode::cancelled:
      return "cancelled";
    case StatusCode::invalid_argument:
      return "invalid_argument";
    case StatusCode::not_found:
      return "not_found";
    case StatusCode::already_exists:
      return "already_exists";
    case StatusCode::out_of_range:
      return "out_of_range";
    case StatusCode::data_loss:
      return "data_loss";
    case StatusCode::resource_exhausted:
      return "resource_exhausted";
    case StatusCode::failed_precondition:
      return "failed_precondition";
    case StatusCode::permission_denied:
      return "permission_denied";
    case StatusCode::unimplemented:
      return "unimplemented";
    case StatusCode::unavailable:
      return "unavailable";
    case StatusCode::internal:
      return "internal";
  }
  return "internal";
}

Status::Status(StatusCode code, std::string message) {
  if (code != StatusCode::ok) rep_ = std::make_unique<Rep>(Rep{code, std::move(message), {}});
}

Status::Status(const Status& other)
    : rep_(other.rep_ ? std::make_unique<Rep>(*other.rep_) : nullptr) {}

Status& Status::operator=(const Status& other) {
  if (this != &other) rep_ = other.rep_ ? std::make_unique<Rep>(*other.rep_) : nullptr;
  return *this;
}

std::string Status::to_string() const {
  if (ok()) return "ok";
  return std::string(status_code_name(rep_->code)) + ": " + rep_->message;
}

Status Status::with_context(std::string_view context) const {
  if (ok()) return {};
  Status out(*this);
  const std::string_view said = rep_->message;
  if (said.starts_with(context) && said.substr(context.size()).starts_with(": ")) return out;
  out.rep_->message = std::string(context) + ": " + rep_->message;
  return out;
}

Status Status::with_reason(std::string_view reason) const {
  if (ok()) return {};
  Status out(*this);
  out.rep_->reason = reason;
  return out;
}

Status cancelled(std::string message) { return {StatusCode::cancelled, std::move(message)}; }
Status invalid_argument(std::string message) {
  return {StatusCode::invalid_argument, std::move(message)};
}
Status not_found(std::string message) { return {StatusCode::not_found, std::move(message)}; }
Status already_exists(std::string message) {
  return {StatusCode::already_exists, std::move(message)};
}
Status out_of_range(std::string message) { return {StatusCode::out_of_range, std::move(message)}; }
Status data_loss(std::string message) { return {StatusCode::data_loss, std::move(message)}; }
Status resource_exhausted(std::string message) {
  return {StatusCode::resource_exhausted, std::move(message)};
}
Status failed_precondition(std::string message) {
  return {StatusCode::failed_precondition, std::move(message)};
}
Status permission_denied(std::string message) {
  return {StatusCode::permission_denied, std::move(message)};
}
Status unimplemented(std::string message) {
  return {StatusCode::unimplemented, std::move(message)};
}
Status unavailable(std::string message) { return {StatusCode::unavailable, std::move(message)}; }
Status internal(std::string message) { return {StatusCode::internal, std::move(message)}; }

Status errno_status(int error, std::string_view what) {
  std::string message =
      std::string(what) + ": " + std::error_code(error, std::generic_category()).message();
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return not_found(std::move(message));
    case EEXIST:
    case ENOTEMPTY:
      return already_exists(std::move(message));
    case EACCES:
    case EPERM:
    case EROFS:
      return permission_denied(std::move(message));
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return resource_exhausted(std::move(message));
    default:
      return unavailable(std::move(message));
  }
}

}  // namespace ropewalk
