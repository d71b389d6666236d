#pragma once

// The command line, from words to an exit status.

#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "base/time.h"
#include "cli/daemons.h"
#include "cli/settings.h"

namespace ringfence::cli {

struct AppInput {
  std::vector<std::string> words;  // without the program's name
  SettingsInput settings;          // its flags are filled in here
  bool out_is_terminal = false;
  bool err_is_terminal = false;
  Daemons daemons;
};

int RunApp(AppInput input, std::ostream& out, std::ostream& err, const Clock& clock);

}  // namespace ringfence::cli
