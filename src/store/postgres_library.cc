#include "store/postgres_library.h"

#include <dlfcn.h>

namespace ringfence::store {
namespace {

Result<Libpq> Load() {
  void* const library = ::dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return Error{Code::kFailedPrecondition, "PostgreSQL's client library libpq.so.5 is not here",
                 "install it (Debian: libpq5), or keep the records in an SQLite file"};
  }
  Libpq libpq;
  const char* missing = nullptr;
#define RINGFENCE_LIBPQ_LOAD(name)                                           \
  libpq.name = reinterpret_cast<decltype(&::name)>(::dlsym(library, #name)); \
  missing = libpq.name == nullptr ? #name : missing;
  RINGFENCE_LIBPQ(RINGFENCE_LIBPQ_LOAD)
#undef RINGFENCE_LIBPQ_LOAD
  if (missing != nullptr) {
    return Error{Code::kFailedPrecondition, "libpq.so.5 has no " + std::string(missing),
                 "install the libpq5 of PostgreSQL 14 or newer"};
  }
  return libpq;
}

}  // namespace

Result<const Libpq*> LoadLibpq() {
  static const Result<Libpq> loaded = Load();
  if (!loaded.has_value()) {
    return loaded.error();
  }
  return &*loaded;
}

}  // namespace ringfence::store
