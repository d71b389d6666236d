#include <iostream>

#include "base/time.h"
#include "cli/app.h"
#include "cli/daemons.h"
#include "os/identity.h"
#include "os/self.h"

int main(int argc, char** argv) {
  using namespace ringfence;  // NOLINT(google-build-using-namespace): a program of one function
  os::IgnoreBrokenPipes();
  cli::AppInput input;
  input.words.assign(argv + (argc > 0 ? 1 : 0), argv + argc);
  input.settings.environment = os::AllVariables();
  input.out_is_terminal = os::IsTerminal(1);
  input.err_is_terminal = os::IsTerminal(2);
  if (auto folder = os::CurrentFolder(); folder.has_value()) {
    input.settings.folder = std::move(folder).value();
  }
  input.settings.host_name = os::HostName();
  input.daemons = {cli::RunUp, cli::RunDown, cli::RunServer, cli::RunAgent, cli::RunJailer};
  return cli::RunApp(std::move(input), std::cout, std::cerr, SystemClock());
}
