// Goal: a stream that no writer of ours writes is refused, even though it is sealed.
// Method: streams put together by hand, each with one thing wrong; rows of every kind of value, cut
// everywhere; names that lead elsewhere.

#include "backup/walk.h"

#include <gtest/gtest.h>

#include "os/file.h"
#include "os/self.h"
#include "os/staged_file.h"
#include "store/migrations.h"

namespace ringfence::backup {
namespace {

struct Item {
  Kind kind;
  std::string body;
};

class Nothing final : public Visitor {
 public:
  Status Begin(const About&) override { return {}; }
  Status File(std::string_view, const FileHead& head) override {
    seen.push_back(head.path);
    return {};
  }
  Status Piece(ByteView bytes) override {
    seen.push_back(ToText(bytes));
    return {};
  }
  Status Row(const store::TableSpec& table, const std::vector<std::string_view>&,
             const store::Row&) override {
    seen.emplace_back(table.name);
    return {};
  }
  Status Entry(std::uint64_t index, ByteView) override {
    seen.push_back(std::to_string(index));
    return {};
  }
  std::vector<std::string> seen;
};

class WalkTest : public testing::Test {
 protected:
  WalkTest() {
    about_.version = "1";
    about_.schema = store::NewestSchema();
    about_.created = Timestamp(std::chrono::seconds(1));
    about_.origin = "o";
    about_.vkey = "k";
    about_.checkpoint = "c";
  }

  std::vector<Item> Good() const {
    return {{Kind::kAbout, CanonicalJson(AboutToJson(about_))},
            {Kind::kPart, "keys"},
            {Kind::kFile, R"({"mode":384,"path":"log.key"})"},
            {Kind::kPiece, "secret"},
            {Kind::kPart, "policy"},
            {Kind::kPart, "records"},
            {Kind::kTable, R"({"columns":["name","record"],"table":"nodes"})"},
            {Kind::kRow, ToText(EncodeRow({std::string("n"), std::string("{}")}))},
            {Kind::kPart, "entries"},
            {Kind::kEntry, "e0"},
            {Kind::kEntry, "e1"}};
  }

  // With a manifest that fits, unless another is given.
  Result<Manifest> WalkThem(const std::vector<Item>& items, const std::string& manifest = "",
                            const std::string& after = "") {
    const os::UniqueFd fd = os::OpenForWrite(path_, 0600).value();
    auto out = SealedWriter::Create(fd.get(), passphrase_, {.log_n = 4, .r = 1, .p = 1}).value();
    Manifest fits;
    fits.about = about_;
    std::optional<PartMeter> meter;
    const auto put = [&](Kind kind, std::string_view body) {
      EXPECT_TRUE(out.Write(RecordHead(kind, body.size())).has_value());
      EXPECT_TRUE(out.Write(AsBytes(body)).has_value());
    };
    for (const Item& item : items) {
      put(item.kind, item.body);
      if (item.kind == Kind::kPart) {
        if (meter.has_value()) {
          fits.parts.push_back(meter->Finish());
        }
        meter.emplace(item.body);
      } else if (meter.has_value()) {
        meter->Add(RecordHead(item.kind, item.body.size()), AsBytes(item.body));
      }
      fits.entries += item.kind == Kind::kEntry ? 1 : 0;
    }
    if (meter.has_value()) {
      fits.parts.push_back(meter->Finish());
    }
    fitting_ = CanonicalJson(ManifestToJson(fits));
    put(Kind::kManifest, manifest.empty() ? fitting_ : manifest);
    EXPECT_TRUE(out.Write(AsBytes(after)).has_value());
    EXPECT_TRUE(out.Finish().has_value());
    auto reader = SealedReader::Open(path_, passphrase_).value();
    visitor_.seen.clear();
    return Walk(reader, visitor_, nullptr);
  }

  os::TempFolder folder_ = os::TempFolder::Create("ringfence-walk-test").value();
  std::string path_ = folder_.path() + "/file";
  SecretBytes passphrase_{AsBytes("x")};
  About about_;
  Nothing visitor_;
  std::string fitting_;
};

TEST_F(WalkTest, AGoodStreamIsSeenInItsOrder) {
  const auto manifest = WalkThem(Good());
  ASSERT_TRUE(manifest.has_value()) << manifest.error().message;
  EXPECT_EQ(visitor_.seen, (std::vector<std::string>{"log.key", "secret", "nodes", "0", "1"}));
  EXPECT_EQ(manifest->entries, 2U);
}

TEST_F(WalkTest, WhatNoWriterWritesIsRefused) {
  struct Case {
    const char* what;
    std::function<void(std::vector<Item>&)> change;
  };
  const std::vector<Case> cases = {
      {"no about", [](auto& s) { s.erase(s.begin()); }},
      {"about twice", [](auto& s) { s.insert(s.begin(), s[0]); }},
      {"a record before the first part", [](auto& s) { std::swap(s[1], s[2]); }},
      {"a part out of order", [](auto& s) { std::swap(s[4], s[5]); }},
      {"a part missing", [](auto& s) { s.erase(s.begin() + 8, s.end()); }},
      {"a part twice", [](auto& s) { s.push_back({Kind::kPart, "entries"}); }},
      {"a piece without a file", [](auto& s) { s.erase(s.begin() + 2); }},
      {"a piece of nothing", [](auto& s) { s[3].body.clear(); }},
      {"a piece too long", [](auto& s) { s[3].body.assign(kFilePieceBytes + 1, 'x'); }},
      {"a file among records", [](auto& s) { s[7] = s[2]; }},
      {"a row without a table", [](auto& s) { s.erase(s.begin() + 6); }},
      {"an unknown table",
       [](auto& s) { s[6].body = R"({"columns":["name"],"table":"sqlite_master"})"; }},
      {"entries as rows", [](auto& s) { s[6].body = R"({"columns":["seq"],"table":"audit"})"; }},
      {"an unknown column",
       [](auto& s) { s[6].body = R"({"columns":["name","x) --"],"table":"nodes"})"; }},
      {"a column twice",
       [](auto& s) { s[6].body = R"({"columns":["name","name"],"table":"nodes"})"; }},
      {"a row of other columns", [](auto& s) { s[7].body.push_back('\0'); }},
      {"an entry among keys", [](auto& s) { s[3] = s[9]; }},
      {"an unknown kind", [](auto& s) { s[9].kind = static_cast<Kind>('Z'); }},
      {"a way up", [](auto& s) { s[2].body = R"({"mode":384,"path":"../x"})"; }},
      {"a mode that sets the user", [](auto& s) { s[2].body = R"({"mode":2541,"path":"x"})"; }},
  };
  for (const Case& one : cases) {
    std::vector<Item> stream = Good();
    one.change(stream);
    const auto walked = WalkThem(stream);
    EXPECT_FALSE(walked.has_value()) << one.what;
  }
}

TEST_F(WalkTest, TheManifestMustFit) {
  ASSERT_TRUE(WalkThem(Good()).has_value());
  const std::string fitting = fitting_;
  EXPECT_TRUE(WalkThem(Good(), fitting).has_value());
  for (const auto& [from, to] :
       std::vector<std::pair<std::string, std::string>>{{"\"entries\":2", "\"entries\":3"},
                                                        {"\"version\":\"1\"", "\"version\":\"2\""},
                                                        {"\"records\":2", "\"records\":1"},
                                                        {"\"sha256\":\"", "\"sha256\":\"0"}}) {
    std::string changed = fitting;
    const std::size_t at = changed.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    changed.replace(at, from.size(), to);
    EXPECT_FALSE(WalkThem(Good(), changed).has_value()) << to;
  }
  EXPECT_FALSE(WalkThem(Good(), "", "more").has_value()) << "something after the manifest";
}

TEST_F(WalkTest, ALaterSchemaIsRefusedBeforeAnythingIsRead) {
  about_.schema = store::NewestSchema() + 1;
  const auto walked = WalkThem(Good());
  ASSERT_FALSE(walked.has_value());
  EXPECT_EQ(walked.error().code, Code::kFailedPrecondition);
  EXPECT_TRUE(visitor_.seen.empty());
}

TEST(FormatTest, RowsComeBackAsTheyWere) {
  const store::Row row = {std::monostate{},
                          std::int64_t{-1},
                          std::int64_t{1} << 62U,
                          std::string("t\0xt", 4),
                          std::string(),
                          Bytes{std::byte{0}, std::byte{255}},
                          Bytes{}};
  const Bytes bytes = EncodeRow(row);
  EXPECT_EQ(DecodeRow(bytes, row.size()).value(), row);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(DecodeRow(ByteView(bytes).first(size), row.size()).has_value()) << size;
  }
  EXPECT_FALSE(DecodeRow(bytes, row.size() - 1).has_value());
  EXPECT_FALSE(DecodeRow(bytes, row.size() + 1).has_value());
  EXPECT_FALSE(DecodeRow(Bytes{std::byte{9}}, 1).has_value());
}

TEST(FormatTest, OnlyPlainPaths) {
  for (const char* good : {"a", "a/b", "tenants.yaml", "with space/and-ümlaut.yaml"}) {
    EXPECT_TRUE(IsPlainPath(good)) << good;
  }
  for (const std::string& bad :
       {std::string(), std::string("/a"), std::string("a/"), std::string("a//b"), std::string(".."),
        std::string("a/../b"), std::string("./a"), std::string(".hidden"), std::string("a/.git/x"),
        std::string("a\0b", 3), std::string("\xff"), std::string(2000, 'a'),
        std::string(256, 'a')}) {
    EXPECT_FALSE(IsPlainPath(bad)) << bad.substr(0, 40);
  }
}

}  // namespace
}  // namespace ringfence::backup
