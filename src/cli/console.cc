#include "cli/console.h"

#include <algorithm>

#include "base/code.h"
#include "cli/text.h"
#include "wire/yaml.h"

namespace ringfence::cli {
namespace {

void PrintRow(std::ostream& out, const std::vector<std::string>& cells,
              const std::vector<std::size_t>& widths, const Console* bold) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    line += bold != nullptr ? bold->Bold(cells[i]) : cells[i];
    if (i + 1 < cells.size()) {
      line.append(widths[i] - Columns(cells[i]) + 2, ' ');
    }
  }
  while (line.ends_with(' ')) {
    line.pop_back();
  }
  out << line << '\n';
}

}  // namespace

Format ParseFormat(std::string_view text) {
  return text == "json"   ? Format::kJson
         : text == "yaml" ? Format::kYaml
         : text == "csv"  ? Format::kCsv
                          : Format::kTable;
}

void Console::Show(const Json& value) {
  if (options_.format == Format::kYaml) {
    out_ << wire::JsonToYaml(value);
  } else {
    out_ << PrettyJson(value) << '\n';
  }
}

void Console::Failure(const Error& error) {
  std::string_view kind;
  switch (error.code) {
    case Code::kUnauthenticated:
      kind = "not signed in: ";
      break;
    case Code::kPermissionDenied:
      kind = "denied: ";
      break;
    case Code::kInternal:
      kind = "internal error: ";
      break;
    case Code::kCorrupt:
      kind = "damaged: ";
      break;
    case Code::kInvalidArgument:
    case Code::kNotFound:
    case Code::kConflict:
    case Code::kFailedPrecondition:
    case Code::kExhausted:
    case Code::kUnavailable:
      break;
  }
  const bool red = options_.colour_err;
  err_ << (red ? "\x1b[31m" : "") << "ringfence:" << (red ? "\x1b[0m" : "") << ' ' << kind
       << SafeLines(error.message) << '\n';
  if (!error.hint.empty()) {
    err_ << "  hint: " << SafeLines(error.hint) << '\n';
  }
  err_.flush();
}

void Console::Warn(std::string_view text) {
  if (!options_.quiet) {
    err_ << "ringfence: " << SafeLines(text) << '\n' << std::flush;
  }
}

void Console::Note(std::string_view text) {
  if (!options_.quiet) {
    err_ << SafeLines(text) << '\n' << std::flush;
  }
}

void Console::Progress(std::string_view text) {
  if (options_.progress && !options_.quiet) {
    const bool dim = options_.colour_err;
    err_ << (dim ? "\x1b[2m" : "") << SafeLines(text) << (dim ? "\x1b[0m" : "") << '\n'
         << std::flush;
  }
}

std::string Console::Styled(std::string_view code, std::string_view text) const {
  if (!options_.colour_out || text.empty()) {
    return std::string(text);
  }
  return "\x1b[" + std::string(code) + "m" + std::string(text) + "\x1b[0m";
}

void Table::Print(Console& console) const { PrintAll(console, true); }
void Table::PrintRows(Console& console) const { PrintAll(console, false); }

void Table::PrintAll(Console& console, bool with_header) const {
  std::vector<std::vector<std::string>> safe;
  safe.reserve(rows_.size());
  std::vector<std::size_t> widths;
  for (const std::string& name : header_) {
    widths.push_back(Columns(name));
  }
  for (const auto& row : rows_) {
    auto& cells = safe.emplace_back();
    for (std::size_t i = 0; i < header_.size(); ++i) {
      const std::string cell = i < row.size() ? Safe(row[i]) : "";
      cells.push_back(cell.empty() ? "-" : cell);
      widths[i] = std::max(widths[i], Columns(cells.back()));
    }
  }
  if (with_header) {
    PrintRow(console.out(), header_, widths, &console);
  }
  for (const auto& cells : safe) {
    PrintRow(console.out(), cells, widths, nullptr);
  }
}

void FactList::Add(std::string name, std::string value) {
  if (!value.empty()) {
    facts_.emplace_back(std::move(name), std::move(value));
  }
}

void FactList::Print(Console& console) const {
  std::size_t width = 0;
  for (const auto& [name, value] : facts_) {
    width = std::max(width, Columns(name));
  }
  for (const auto& [name, value] : facts_) {
    console.out() << console.Bold(name + ":") << std::string(width - Columns(name) + 2, ' ')
                  << Safe(value) << '\n';
  }
}

}  // namespace ringfence::cli
