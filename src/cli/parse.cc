#include "cli/parse.h"

#include <algorithm>

#include "cli/settings.h"
#include "cli/suggest.h"

namespace ringfence::cli {
namespace {

bool IsGroup(const CommandTable& table, std::string_view path) {
  const std::string prefix = std::string(path) + " ";
  return path.empty() || std::any_of(table.begin(), table.end(), [&](const CommandSpec& command) {
           return command.path.starts_with(prefix);
         });
}

std::string Joined(std::string_view path, std::string_view word) {
  return path.empty() ? std::string(word) : std::string(path) + " " + std::string(word);
}

std::string Listed(const std::vector<std::string>& words) {
  std::string all;
  for (const std::string& word : words) {
    all += (all.empty() ? "" : ", ") + word;
  }
  return all;
}

class Parser {
 public:
  Parser(const CommandTable& table, const std::vector<std::string>& words)
      : table_(table), words_(words) {}

  Result<Parsed> Run() {
    if (words_.size() > kWordsMax) {
      return Wrong("more than " + std::to_string(kWordsMax) + " words", "");
    }
    while (at_ < words_.size()) {
      const std::string& word = words_[at_++];
      if (word == "--") {
        parsed_.trailing.assign(words_.begin() + static_cast<std::ptrdiff_t>(at_), words_.end());
        saw_separator_ = true;
        break;
      }
      if (word.starts_with("--")) {
        RINGFENCE_TRY(TakeLong(std::string_view(word).substr(2)));
      } else if (word.size() > 1 && word[0] == '-') {
        RINGFENCE_TRY(TakeLetters(std::string_view(word).substr(1)));
      } else {
        RINGFENCE_TRY(TakeWord(word));
      }
    }
    if (!parsed_.Has("help")) {
      RINGFENCE_TRY(CheckWhole());
    }
    return std::move(parsed_);
  }

 private:
  Error Wrong(std::string message, std::string hint) const {
    return Error{Code::kInvalidArgument, std::move(message), std::move(hint), parsed_.path};
  }

  Status TakeWord(const std::string& word) {
    if (parsed_.command == nullptr) {
      const std::string path = Joined(parsed_.path, word);
      if (const CommandSpec* command = FindCommand(table_, path)) {
        parsed_.command = command;
      } else if (!IsGroup(table_, path)) {
        return UnknownCommand(word);
      }
      parsed_.path = path;
      return {};
    }
    // A command may have commands of its own: `assess` and `assess fleet`.
    if (const std::string path = Joined(parsed_.path, word);
        parsed_.arguments.empty() && FindCommand(table_, path) != nullptr) {
      parsed_.command = FindCommand(table_, path);
      parsed_.path = path;
      return {};
    }
    if (parsed_.command->takes_command && parsed_.command->arguments.empty()) {
      return Wrong("the job's command must come after \"--\", and \"" + word + "\" comes before",
                   "write: ringfence " + parsed_.path + " [OPTIONS] -- " + word + " ...");
    }
    parsed_.arguments.push_back(word);
    return {};
  }

  Error UnknownCommand(const std::string& word) const {
    const std::string where = parsed_.path.empty() ? "" : " of `" + parsed_.path + "`";
    const std::string help = parsed_.path.empty() ? "" : " " + parsed_.path;
    return Wrong("unknown command \"" + word + "\"" + where,
                 DidYouMean(word, NextWords(table_, parsed_.path),
                            "`ringfence" + help + " --help` lists them"));
  }

  Error UnknownOption(const std::string& option) const {
    std::vector<std::string> known;
    for (const OptionSpec& spec : GlobalOptions()) {
      known.push_back("--" + std::string(spec.name));
    }
    if (parsed_.command != nullptr) {
      for (const OptionSpec& spec : parsed_.command->options) {
        known.push_back("--" + std::string(spec.name));
      }
      return Wrong(
          "unknown option " + option,
          DidYouMean(option, known, "`ringfence " + parsed_.path + " --help` lists the options"));
    }
    return Wrong("unknown option " + option + " before the command",
                 DidYouMean(option, known, "options of a command come after its name"));
  }

  Status Add(const OptionSpec& spec, const std::string& shown, std::string value) {
    if (!spec.repeated && !spec.value.empty() && parsed_.Has(spec.name)) {
      return Wrong("option " + shown + " is given twice", "give it once");
    }
    if (spec.completes == Completes::kWords) {
      const std::vector<std::string> words = Words(spec.words);
      if (std::find(words.begin(), words.end(), value) == words.end()) {
        return Wrong("option " + shown + ": \"" + value + "\" is none of " + Listed(words),
                     DidYouMean(value, words, "choose one of them"));
      }
    }
    parsed_.options.emplace_back(spec.name, std::move(value));
    return {};
  }

  Status TakeNext(const OptionSpec& spec, const std::string& shown) {
    if (at_ >= words_.size() || words_[at_] == "--") {
      return Wrong("option " + shown + " needs a value",
                   "write: " + shown + " " + std::string(spec.value));
    }
    return Add(spec, shown, words_[at_++]);
  }

  Status TakeLong(std::string_view text) {
    const std::size_t equals = text.find('=');
    const std::string_view name = text.substr(0, equals);
    const std::string shown = "--" + std::string(name);
    const OptionSpec* spec = FindOption(parsed_.command, name);
    if (spec == nullptr) {
      return UnknownOption(shown);
    }
    if (equals != std::string_view::npos) {
      if (spec->value.empty()) {
        return Wrong("option " + shown + " takes no value", "write: " + shown);
      }
      return Add(*spec, shown, std::string(text.substr(equals + 1)));
    }
    return spec->value.empty() || spec->may_be_bare ? Add(*spec, shown, "")
                                                    : TakeNext(*spec, shown);
  }

  Status TakeLetters(std::string_view letters) {
    for (std::size_t i = 0; i < letters.size(); ++i) {
      const std::string shown = std::string("-") + letters[i];
      const OptionSpec* spec = FindOption(parsed_.command, letters[i]);
      if (spec == nullptr) {
        return UnknownOption(shown);
      }
      if (!spec->value.empty()) {
        const std::string_view rest = letters.substr(i + 1);
        return rest.empty() ? TakeNext(*spec, shown) : Add(*spec, shown, std::string(rest));
      }
      RINGFENCE_TRY(Add(*spec, shown, ""));
    }
    return {};
  }

  Status CheckWhole() const {
    const CommandSpec* command = parsed_.command;
    if (command == nullptr) {
      if (!parsed_.path.empty()) {
        return Wrong("`ringfence " + parsed_.path +
                         "` needs one more word: " + Listed(NextWords(table_, parsed_.path)),
                     "`ringfence " + parsed_.path + " --help` says what they do");
      }
      return {};
    }
    if (saw_separator_ && !command->takes_command) {
      return Wrong("`" + parsed_.path + "` takes nothing after \"--\"", "leave it out");
    }
    if (command->takes_command && parsed_.trailing.empty()) {
      return Wrong("the job's command is missing",
                   "write it after \"--\": ringfence " + parsed_.path + " [OPTIONS] -- COMMAND");
    }
    std::size_t needed = 0;
    bool open_ended = false;
    for (const ArgumentSpec& argument : command->arguments) {
      needed += argument.required ? 1U : 0U;
      open_ended = open_ended || argument.repeated;
    }
    if (parsed_.arguments.size() < needed) {
      return Wrong(std::string(command->arguments[parsed_.arguments.size()].name) + " is missing",
                   std::string(command->arguments[parsed_.arguments.size()].help));
    }
    if (!open_ended && parsed_.arguments.size() > command->arguments.size()) {
      const std::string& word = parsed_.arguments[command->arguments.size()];
      return Wrong("\"" + word + "\" is one word too many",
                   DidYouMean(word, NextWords(table_, parsed_.path), "leave it out"));
    }
    return {};
  }

  const CommandTable& table_;
  const std::vector<std::string>& words_;
  std::size_t at_ = 0;
  bool saw_separator_ = false;
  Parsed parsed_;
};

}  // namespace

std::string_view Title(Group group) {
  switch (group) {
    case Group::kJobs:
      return "Jobs";
    case Group::kCluster:
      return "Cluster";
    case Group::kEvidence:
      return "Evidence";
    case Group::kAccess:
      return "Access and policy";
    case Group::kOperate:
      return "Operate";
    case Group::kOther:
      break;
  }
  return "More";
}

bool Parsed::Has(std::string_view option) const {
  return std::any_of(options.begin(), options.end(),
                     [&](const auto& given) { return given.first == option; });
}

std::optional<std::string> Parsed::Value(std::string_view option) const {
  std::optional<std::string> value;
  for (const auto& [name, text] : options) {
    if (name == option) {
      value = text;
    }
  }
  return value;
}

std::vector<std::string> Parsed::Values(std::string_view option) const {
  std::vector<std::string> values;
  for (const auto& [name, text] : options) {
    if (name == option) {
      values.push_back(text);
    }
  }
  return values;
}

std::string Parsed::Argument(std::size_t index) const {
  return index < arguments.size() ? arguments[index] : std::string();
}

Result<Parsed> Parse(const CommandTable& table, const std::vector<std::string>& words) {
  return Parser(table, words).Run();
}

const CommandSpec* FindCommand(const CommandTable& table, std::string_view path) {
  for (const CommandSpec& command : table) {
    if (command.path == path) {
      return &command;
    }
  }
  return nullptr;
}

std::vector<std::string> NextWords(const CommandTable& table, std::string_view path) {
  const std::string prefix = path.empty() ? "" : std::string(path) + " ";
  std::vector<std::string> words;
  for (const CommandSpec& command : table) {
    if (command.hidden || !command.path.starts_with(prefix)) {
      continue;
    }
    const std::string_view rest = command.path.substr(prefix.size());
    const std::string word(rest.substr(0, rest.find(' ')));
    if (std::find(words.begin(), words.end(), word) == words.end()) {
      words.push_back(word);
    }
  }
  return words;
}

const OptionSpec* FindOption(const CommandSpec* command, std::string_view name) {
  for (const OptionSpec& spec : GlobalOptions()) {
    if (spec.name == name) {
      return &spec;
    }
  }
  if (command != nullptr) {
    for (const OptionSpec& spec : command->options) {
      if (spec.name == name) {
        return &spec;
      }
    }
  }
  return nullptr;
}

const OptionSpec* FindOption(const CommandSpec* command, char letter) {
  for (const OptionSpec& spec : GlobalOptions()) {
    if (spec.letter == letter) {
      return &spec;
    }
  }
  if (command != nullptr) {
    for (const OptionSpec& spec : command->options) {
      if (spec.letter == letter) {
        return &spec;
      }
    }
  }
  return nullptr;
}

}  // namespace ringfence::cli
