// `ropewalk completion bash|zsh`: prints a completion script made from the commands themselves.
#include <algorithm>

#include <fmt/format.h>

#include "apps/cli/commands.h"

namespace ropewalk::cli {
namespace {

std::string words_of(const CLI::App& app) {
  std::string words;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    // Nameless ones are groups of options.
    words += sub->get_name().empty() ? words_of(*sub) + " " : sub->get_name() + " ";
  }
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) words += "--" + name + " ";
  }
  if (!words.empty()) words.pop_back();
  return words;
}

// Values that an option offers, as declared by CLI::IsMember: "{a,b}" in its type name.
std::string choices_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::size_t open = type.find('{');
  const std::size_t close = type.find('}');
  if (open == std::string::npos || close == std::string::npos) return "";
  std::string words = type.substr(open + 1, close - open - 1);
  for (char& c : words) {
    if (c == ',') c = ' ';
  }
  return words;
}

void append_cases(std::string& out, const CLI::App& app, const std::string& path) {
  out += fmt::format("    \"{}\") words=\"{}\" ;;\n", path, words_of(app));
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (sub->get_name().empty()) continue;
    append_cases(out, *sub, path.empty() ? sub->get_name() : path + " " + sub->get_name());
  }
}

void append_choices(std::string& out, const CLI::App& app, const std::string& path) {
  for (const CLI::Option* option : app.get_options()) {
    const std::string words = choices_of(*option);
    if (words.empty()) continue;
    for (const std::string& name : option->get_lnames()) {
      out +=
          fmt::format("    \"{} --{}\") COMPREPLY=($(compgen -W \"{}\" -- \"$cur\")); return ;;\n",
                      path, name, words);
    }
  }
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (sub->get_name().empty()) continue;
    append_choices(out, *sub, path.empty() ? sub->get_name() : path + " " + sub->get_name());
  }
}

// All paths of commands, each quoted as a pattern of `case`; `groups` gets those with subcommands.
void append_paths(std::string& out, std::string& groups, const CLI::App& app,
                  const std::string& path) {
  const auto subs = app.get_subcommands([](const CLI::App*) { return true; });
  const bool is_group =
      std::ranges::any_of(subs, [](const CLI::App* sub) { return !sub->get_name().empty(); });
  if (is_group) groups += fmt::format("{}\"{}\"", groups.empty() ? "" : "|", path);
  for (const CLI::App* sub : subs) {
    if (sub->get_name().empty()) continue;  // a group of options
    const std::string inner = path.empty() ? sub->get_name() : path + " " + sub->get_name();
    out += fmt::format("{}\"{}\"", out.empty() ? "" : "|", inner);
    append_paths(out, groups, *sub, inner);
  }
}

std::string bash_script(const CLI::App& app) {
  std::string cases;
  append_cases(cases, app, "");
  std::string choices;
  append_choices(choices, app, "");
  std::string paths;
  std::string groups;
  append_paths(paths, groups, app, "");
  return fmt::format(R"(_ropewalk() {{
  local cur="${{COMP_WORDS[COMP_CWORD]}}" prev="${{COMP_WORDS[COMP_CWORD-1]}}" path="" words="" i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "${{path:+$path }}${{COMP_WORDS[i]}}" in
      {0}) path="${{path:+$path }}${{COMP_WORDS[i]}}" ;;
      *) break ;;
    esac
  done
  case "$path $prev" in
{2}  esac
  case "$path" in
{1}  esac
  case "$path" in
    {3}) COMPREPLY=($(compgen -W "$words" -- "$cur")); return ;;
  esac
  if [[ "$cur" == -* ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
  else
    COMPREPLY=($(compgen -f -- "$cur"))
  fi
}}
complete -o filenames -o bashdefault -F _ropewalk ropewalk
)",
                     paths, cases, choices, groups);
}

}  // namespace

void add_completion(CLI::App& app, Session& session) {
  auto* command = app.add_subcommand("completion", "Print a completion script for bash or zsh");
  auto shell = std::make_shared<std::string>();
  command->add_option("shell", *shell, "Shell")->required()->check(CLI::IsMember({"bash", "zsh"}));
  set_example(*command,
              "ropewalk completion bash > ~/.local/share/bash-completion/completions/ropewalk");
  command->callback([&app, &session, shell] {
    session.run = [&app, shell] {
      std::string script = bash_script(app);
      if (*shell == "zsh")
        script = "#compdef ropewalk\nautoload -U +X bashcompinit && bashcompinit\n" + script;
      fmt::print("{}", script);
      return kExitDone;
    };
  });
}

}  // namespace ropewalk::cli
