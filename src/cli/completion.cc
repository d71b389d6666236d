#include "cli/completion.h"

#include <algorithm>

#include "cli/parse.h"
#include "cli/settings.h"

namespace ringfence::cli {
namespace {

// A command line as far as it is typed, read without complaining.
struct Typed {
  const CommandSpec* command = nullptr;
  std::string path;
  const OptionSpec* pending = nullptr;  // the option whose value comes next
  std::vector<std::pair<std::string, std::string>> options;
  std::size_t arguments = 0;
  bool after_separator = false;
};

void TakeLong(Typed& typed, std::string_view text) {
  const std::size_t equals = text.find('=');
  const OptionSpec* option = FindOption(typed.command, text.substr(0, equals));
  if (option == nullptr) {
    return;
  }
  if (equals != std::string_view::npos) {
    typed.options.emplace_back(option->name, text.substr(equals + 1));
  } else if (option->value.empty() || option->may_be_bare) {
    typed.options.emplace_back(option->name, "");
  } else {
    typed.pending = option;
  }
}

void TakeLetters(Typed& typed, std::string_view letters) {
  for (std::size_t i = 0; i < letters.size(); ++i) {
    const OptionSpec* option = FindOption(typed.command, letters[i]);
    if (option == nullptr) {
      continue;
    }
    if (!option->value.empty()) {
      if (i + 1 < letters.size()) {
        typed.options.emplace_back(option->name, letters.substr(i + 1));
      } else {
        typed.pending = option;
      }
      return;
    }
    typed.options.emplace_back(option->name, "");
  }
}

// `assess` is a command, and `assess fleet` another.
bool MayContinue(const CommandTable& table, const Typed& typed, const std::string& word) {
  const std::vector<std::string> next = NextWords(table, typed.path);
  return typed.arguments == 0 && std::find(next.begin(), next.end(), word) != next.end();
}

Typed Read(const CommandTable& table, const std::vector<std::string>& words, std::size_t count) {
  Typed typed;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string& word = words[i];
    if (typed.pending != nullptr) {
      if (word != "=") {  // bash makes a word of its own of it
        typed.options.emplace_back(typed.pending->name, word);
        typed.pending = nullptr;
      }
    } else if (word == "--") {
      typed.after_separator = true;
      return typed;
    } else if (word.starts_with("--")) {
      TakeLong(typed, std::string_view(word).substr(2));
    } else if (word.size() > 1 && word[0] == '-') {
      TakeLetters(typed, std::string_view(word).substr(1));
    } else if (typed.command != nullptr && !MayContinue(table, typed, word)) {
      ++typed.arguments;
    } else {
      typed.path += (typed.path.empty() ? "" : " ") + word;
      typed.command = FindCommand(table, typed.path);
    }
  }
  return typed;
}

bool IsHarmless(std::string_view word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.' || c == '/' || c == '@' || c == ':';
  });
}

class Completer {
 public:
  Completer(const CommandTable& table, const Lookup& lookup, std::string_view current)
      : table_(table), lookup_(lookup), current_(current) {}

  void Value(Completes completes, std::string_view words, const std::string& before = {}) {
    switch (completes) {
      case Completes::kNothing:
        return;
      case Completes::kFile:
        out_ += ":files\n";
        return;
      case Completes::kFolder:
        out_ += ":folders\n";
        return;
      case Completes::kWords:
        for (const std::string& word : Words(words)) {
          Offer(before + word, "");
        }
        return;
      case Completes::kTenant:
      case Completes::kLease:
      case Completes::kNode:
      case Completes::kGpu:
      case Completes::kToken:
        for (const Candidate& candidate : lookup_(completes)) {
          if (IsHarmless(candidate.word)) {
            Offer(before + candidate.word, candidate.description);
          }
        }
        return;
    }
  }

  void NextCommand(const Typed& typed) {
    for (const std::string& word : NextWords(table_, typed.path)) {
      const std::string path = typed.path.empty() ? word : typed.path + " " + word;
      const CommandSpec* command = FindCommand(table_, path);
      Offer(word, command == nullptr ? "commands about " + word + "s" : command->summary);
    }
  }

  void Arguments(const Typed& typed) {
    if (typed.command == nullptr || typed.command->arguments.empty()) {
      return;
    }
    const auto& arguments = typed.command->arguments;
    const ArgumentSpec& argument = arguments[std::min(typed.arguments, arguments.size() - 1)];
    if (typed.arguments < arguments.size() || argument.repeated) {
      Value(argument.completes, argument.words);
    }
  }

  void OptionNames(const Typed& typed) {
    const auto offer = [&](const OptionSpec& option) {
      const bool used = std::any_of(typed.options.begin(), typed.options.end(),
                                    [&](const auto& given) { return given.first == option.name; });
      if (!used || option.repeated) {
        Offer("--" + std::string(option.name), option.help);
      }
    };
    if (typed.command != nullptr) {
      std::for_each(typed.command->options.begin(), typed.command->options.end(), offer);
    }
    std::for_each(GlobalOptions().begin(), GlobalOptions().end(), offer);
  }

  std::string Take() { return std::move(out_); }

 private:
  void Offer(std::string_view word, std::string_view description) {
    if (!word.starts_with(current_)) {
      return;
    }
    out_ += word;
    out_ += '\t';
    for (const char c : description) {
      out_ += static_cast<unsigned char>(c) < 0x20 || c == '\x7f' ? ' ' : c;
    }
    out_ += '\n';
  }

  const CommandTable& table_;
  const Lookup& lookup_;
  std::string_view current_;
  std::string out_;
};

constexpr std::string_view kBash =
    R"(# bash completion for ringfence. Try it: source <(ringfence completion bash)
# To keep it: ringfence completion bash > /etc/bash_completion.d/ringfence
_ringfence() {
  local current="${COMP_WORDS[COMP_CWORD]}" line
  COMPREPLY=()
  if [[ $current == "=" ]]; then current=""; fi
  while IFS= read -r line; do
    case "$line" in
      :files | :folders)
        local kind=-f
        if [[ $line == :folders ]]; then kind=-d; fi
        compopt -o filenames 2>/dev/null
        while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen "$kind" -- "$current")
        ;;
      ?*) COMPREPLY+=("${line%%$'\t'*}") ;;
    esac
  done < <("${COMP_WORDS[0]}" __complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _ringfence ringfence
)";

constexpr std::string_view kZsh = R"(#compdef ringfence
# zsh completion for ringfence. Try it: source <(ringfence completion zsh)
# To keep it: ringfence completion zsh > "${fpath[1]}/_ringfence"
_ringfence() {
  local line
  local -a lines candidates
  lines=("${(@f)$("${words[1]}" __complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  for line in "${lines[@]}"; do
    case "$line" in
      :files) _files ;;
      :folders) _files -/ ;;
      ?*) candidates+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}") ;;
    esac
  done
  if (( ${#candidates} )); then
    _describe 'ringfence' candidates
  fi
}
if [[ ${funcstack[1]} == _ringfence ]]; then
  _ringfence "$@"
else
  compdef _ringfence ringfence
fi
)";

constexpr std::string_view kFish =
    R"(# fish completion for ringfence. Try it: ringfence completion fish | source
# To keep it: ringfence completion fish > ~/.config/fish/completions/ringfence.fish
function __ringfence_complete
    set -l typed (commandline -opc)
    set -l current (commandline -ct)
    test -n "$current"; or set current ""
    for line in ($typed[1] __complete -- $typed[2..-1] "$current" 2>/dev/null)
        switch $line
            case ':files'
                __fish_complete_path "$current"
            case ':folders'
                __fish_complete_directories "$current"
            case '?*'
                echo $line
        end
    end
end
complete -c ringfence -f -a '(__ringfence_complete)'
)";

}  // namespace

std::string Complete(const CommandTable& table, const std::vector<std::string>& words,
                     const Lookup& lookup) {
  if (words.empty() || words.size() > kWordsMax) {
    return "";
  }
  const Typed typed = Read(table, words, words.size() - 1);
  std::string_view current = words.back();
  if (typed.after_separator) {
    return ":files\n";
  }
  if (typed.pending != nullptr) {
    Completer completer(table, lookup, current == "=" ? "" : current);
    completer.Value(typed.pending->completes, typed.pending->words);
    return completer.Take();
  }
  Completer completer(table, lookup, current);
  const std::size_t equals = current.find('=');
  if (current.starts_with("--") && equals != std::string_view::npos) {
    const OptionSpec* option = FindOption(typed.command, current.substr(2, equals - 2));
    if (option != nullptr) {
      completer.Value(option->completes, option->words, std::string(current.substr(0, equals + 1)));
    }
  } else if (current.starts_with('-')) {
    completer.OptionNames(typed);
  } else {
    if (typed.arguments == 0) {
      completer.NextCommand(typed);
    }
    completer.Arguments(typed);
  }
  return completer.Take();
}

std::vector<std::pair<std::string, std::string>> FlagsSoFar(const CommandTable& table,
                                                            const std::vector<std::string>& words) {
  Typed typed = Read(table, words, words.empty() ? 0 : words.size() - 1);
  std::erase_if(typed.options, [](const auto& given) {
    return FindOption(nullptr, std::string_view(given.first)) == nullptr;
  });
  return std::move(typed.options);
}

std::string CompletionScript(std::string_view shell) {
  return std::string(shell == "bash"   ? kBash
                     : shell == "zsh"  ? kZsh
                     : shell == "fish" ? kFish
                                       : "");
}

}  // namespace ringfence::cli
