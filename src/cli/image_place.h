#pragma once

// Where the images of this machine's node are, and who unpacks them.

#include <string>

#include "base/result.h"
#include "cli/node_process.h"
#include "cli/settings.h"
#include "image/reference.h"
#include "isolate/image_import.h"

namespace ringfence::cli {

std::string ImageFolder(const Settings& settings);
Result<isolate::ImagePlace> ImagePlaceOf(const Settings& settings);

}  // namespace ringfence::cli
