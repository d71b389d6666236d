#include "isolate/grant_box.h"

#include <set>

#include "image/reference.h"
#include "isolate/names.h"
#include "model/box_request.h"
#include "model/probe_request.h"

namespace ringfence::isolate {
namespace {

constexpr std::size_t kDeviceBytesMax = 32;

Error Bad(std::string field, std::string message) {
  return Error{Code::kInvalidArgument, field + ": " + message, {}, field};
}

Result<std::uint64_t> ReadBytes(JsonReader& reader, std::string_view name) {
  RINGFENCE_ASSIGN(const std::int64_t bytes,
                   reader.IntOr(name, 0, 0, static_cast<std::int64_t>(model::kBoxBytesMax)));
  return static_cast<std::uint64_t>(bytes);
}

Result<Timestamp> ReadTime(JsonReader& reader, std::string_view name) {
  RINGFENCE_ASSIGN(const std::string text, reader.String(name, 64));
  return ParseTime(text);
}

Result<GrantException> ReadException(const Json& json) {
  RINGFENCE_ASSIGN(auto fields, JsonReader::Open(json, "grant.exception"));
  GrantException exception;
  RINGFENCE_ASSIGN(exception.name, fields.String("name", kNameBytesMax));
  RINGFENCE_ASSIGN(exception.host_network, fields.BoolOr("host_network", false));
  RINGFENCE_ASSIGN(exception.host_pid, fields.BoolOr("host_pid", false));
  RINGFENCE_ASSIGN(exception.from, ReadTime(fields, "from"));
  RINGFENCE_ASSIGN(exception.until, ReadTime(fields, "until"));
  RINGFENCE_TRY(fields.Finish());
  if (!IsName(exception.name) || (!exception.host_network && !exception.host_pid)) {
    return Bad("grant.exception", "has no name, or lets nothing: it is not in force");
  }
  if (exception.until <= exception.from || exception.until - exception.from > kGrantExceptionMax) {
    return Bad("grant.exception", "ends before it begins, or holds for more than 30 days");
  }
  return exception;
}

}  // namespace

void AddBox(const GrantBox& box, JsonObject& grant) {
  if (!box.image.empty()) {
    grant["image"] = box.image;
  }
  if (!box.mounts.empty()) {
    JsonArray mounts;
    for (const GrantMount& mount : box.mounts) {
      mounts.push_back(
          JsonObject{{"name", mount.name}, {"path", mount.path}, {"writable", mount.writable}});
    }
    grant["mounts"] = std::move(mounts);
  }
  const auto number = [&grant](const char* name, std::uint64_t bytes) {
    if (bytes != 0) {
      grant[name] = static_cast<std::int64_t>(bytes);
    }
  };
  number("shm_bytes_max", box.shm_bytes_max);
  number("tmp_bytes_max", box.tmp_bytes_max);
  number("huge_bytes_max", box.huge_bytes_max);
  if (!box.devices.empty()) {
    JsonArray devices;
    for (const std::string& device : box.devices) {
      devices.emplace_back(device);
    }
    grant["devices"] = std::move(devices);
  }
  if (box.exception.has_value()) {
    JsonObject exception{{"name", box.exception->name},
                         {"from", FormatTime(box.exception->from)},
                         {"until", FormatTime(box.exception->until)}};
    if (box.exception->host_network) {
      exception["host_network"] = true;
    }
    if (box.exception->host_pid) {
      exception["host_pid"] = true;
    }
    grant["exception"] = std::move(exception);
  }
  if (!box.walls_away.empty()) {
    JsonArray walls;
    for (const std::string& wall : box.walls_away) {
      walls.emplace_back(wall);
    }
    grant["walls_away"] = std::move(walls);
  }
}

Result<GrantBox> ReadBox(JsonReader& reader) {
  GrantBox box;
  RINGFENCE_ASSIGN(box.image, reader.StringOr("image", "", 80));
  if (!box.image.empty() && !image::IsDigest(box.image)) {
    return Bad("grant.image", "is no digest");
  }
  if (reader.Has("mounts")) {
    RINGFENCE_ASSIGN(const auto mounts, reader.Array("mounts", model::kMountsMax));
    std::set<std::string> paths;
    for (const Json* one : mounts) {
      RINGFENCE_ASSIGN(auto fields, JsonReader::Open(*one, "grant.mounts"));
      GrantMount mount;
      RINGFENCE_ASSIGN(mount.name, fields.String("name", model::kMountNameBytesMax));
      RINGFENCE_ASSIGN(mount.path, fields.String("path", model::kMountPathBytesMax));
      RINGFENCE_ASSIGN(mount.writable, fields.Bool("writable"));
      RINGFENCE_TRY(fields.Finish());
      RINGFENCE_TRY(model::CheckMount({mount.name, mount.path, mount.writable}));
      if (!paths.insert(mount.path).second) {
        return Bad("grant.mounts", mount.path + " is there twice");
      }
      box.mounts.push_back(std::move(mount));
    }
  }
  RINGFENCE_ASSIGN(box.shm_bytes_max, ReadBytes(reader, "shm_bytes_max"));
  RINGFENCE_ASSIGN(box.tmp_bytes_max, ReadBytes(reader, "tmp_bytes_max"));
  RINGFENCE_ASSIGN(box.huge_bytes_max, ReadBytes(reader, "huge_bytes_max"));
  if (reader.Has("devices")) {
    RINGFENCE_ASSIGN(box.devices,
                     reader.Strings("devices", std::size(model::kFabricDevices), kDeviceBytesMax));
    for (const std::string& device : box.devices) {
      if (!model::IsFabricDevice(device)) {
        return Bad("grant.devices", "an entry is no device of a fabric");
      }
    }
  }
  if (reader.Has("exception")) {
    RINGFENCE_ASSIGN(const Json* const exception, reader.Any("exception"));
    RINGFENCE_ASSIGN(box.exception, ReadException(*exception));
  }
  if (reader.Has("walls_away")) {
    RINGFENCE_ASSIGN(box.walls_away, reader.Strings("walls_away", model::kWallsMax, 64));
  }
  return box;
}

}  // namespace ringfence::isolate
