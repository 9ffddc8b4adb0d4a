#include "ropewalk/stage/quality/verdict.h"

#include <algorithm>

namespace ropewalk {
namespace {

bool equals_ignoring_case(std::string_view text, std::string_view lower) {
  return std::ranges::equal(text, lower, [](char a, char b) {
    return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
  });
}

}  // namespace

Decision decide(std::string_view verdict, std::string_view quality) {
  const bool red = equals_ignoring_case(quality, "red");
  if (equals_ignoring_case(verdict, "pass")) return {Outcome::accepted, DecidedBy::pass, red};
  if (equals_ignoring_case(verdict, "fail")) return {Outcome::rejected, DecidedBy::fail, !red};
  if (red) return {Outcome::rejected, DecidedBy::red, false};
  return {Outcome::accepted, DecidedBy::clean, false};
}

std::string_view outcome_name(Outcome outcome) {
  switch (outcome) {
    case Outcome::accepted:
      return "accepted";
    case Outcome::rejected:
      return "rejected";
  }
  return "";
}

std::string_view decided_by_name(DecidedBy by) {
  switch (by) {
    case DecidedBy::pass:
      return "pass";
    case DecidedBy::fail:
      return "fail";
    case DecidedBy::red:
      return "red";
    case DecidedBy::clean:
      return "clean";
  }
  return "";
}

}  // namespace ropewalk
