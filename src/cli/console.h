#pragma once

// Where a command's words go. Results to standard output, in the format that was asked for;
// everything else to standard error.

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace ringfence::cli {

enum class Format { kTable, kJson, kYaml, kCsv };
Format ParseFormat(std::string_view text);  // a checked setting

struct ConsoleOptions {
  Format format = Format::kTable;
  bool colour_out = false;
  bool colour_err = false;
  bool unicode = false;   // the terminal shows more than ASCII
  bool quiet = false;     // errors only
  bool progress = false;  // tell what is going on
};

class Console {
 public:
  Console(std::ostream& out, std::ostream& err, ConsoleOptions options)
      : out_(out), err_(err), options_(options) {}

  const ConsoleOptions& options() const { return options_; }
  Format format() const { return options_.format; }
  bool table() const { return options_.format == Format::kTable; }
  std::ostream& out() { return out_; }
  std::ostream& err() { return err_; }

  // The value as JSON or YAML; not for tables.
  void Show(const Json& value);
  // "ringfence: denied: ...", then the hint.
  void Failure(const Error& error);
  void Warn(std::string_view text);      // unless quiet
  void Note(std::string_view text);      // unless quiet
  void Progress(std::string_view text);  // only when somebody watches

  std::string Bold(std::string_view text) const { return Styled("1", text); }
  std::string Dim(std::string_view text) const { return Styled("2", text); }
  std::string Good(std::string_view text) const { return Styled("32", text); }
  std::string Bad(std::string_view text) const { return Styled("31", text); }
  std::string Doubtful(std::string_view text) const { return Styled("33", text); }
  std::string_view Tick() const { return options_.unicode ? "✓" : "ok"; }
  std::string_view Cross() const { return options_.unicode ? "✗" : "!!"; }

 private:
  std::string Styled(std::string_view code, std::string_view text) const;

  std::ostream& out_;
  std::ostream& err_;
  ConsoleOptions options_;
};

// Rows under a header, columns two blanks apart. Cells are made safe here, and nowhere else.
class Table {
 public:
  explicit Table(std::vector<std::string> header) : header_(std::move(header)) {}
  void Add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  bool empty() const { return rows_.empty(); }
  void Print(Console& console) const;
  void PrintRows(Console& console) const;  // without the header

 private:
  void PrintAll(Console& console, bool with_header) const;
  std::vector<std::string> header_;
  std::vector<std::vector<std::string>> rows_;
};

// "Name:    value" lines, for one thing. An empty value leaves the line out.
class FactList {
 public:
  void Add(std::string name, std::string value);
  void Print(Console& console) const;

 private:
  std::vector<std::pair<std::string, std::string>> facts_;
};

}  // namespace ringfence::cli
