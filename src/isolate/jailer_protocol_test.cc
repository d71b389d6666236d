// Goal: what one side encodes the other decodes, and nothing else is a message.
// Method: every request and reply once; every cut, and every longer frame, refused; a client
// against a scripted jailer for what happens when the pair ends.

#include "isolate/jailer_protocol.h"

#include <gtest/gtest.h>

#include <thread>

#include "os/memory_file.h"
#include "os/socket_pair.h"

namespace ringfence::isolate {
namespace {

std::vector<Request> AllRequests() {
  return {{1, HelloRequest{}},
          {2, InventoryRequest{}},
          {3, StartRequest{"{\"payload\":\"\"}"}},
          {4, EndRequest{"lease-1"}},
          {5, ScrubRequest{"", {"GPU-1", "GPU-2"}}},
          {6, ListRequest{}},
          {7, ForgetRequest{"lease-1"}},
          {8, IncidentsRequest{}},
          {0xffffffff, AckIncidentsRequest{7}},
          {9, ImagesRequest{}},
          {10, SenseRequest{}}};
}

TEST(JailerProtocol, RequestsRoundTripAndNothingElse) {
  for (const Request& request : AllRequests()) {
    const Bytes frame = EncodeRequest(request);
    const auto decoded = DecodeRequest(frame);
    ASSERT_TRUE(decoded.has_value()) << decoded.error().message;
    EXPECT_EQ(decoded->id, request.id);
    EXPECT_EQ(EncodeRequest(*decoded), frame);
    for (std::size_t cut = 0; cut < frame.size(); ++cut) {
      EXPECT_FALSE(DecodeRequest(ByteView(frame).first(cut)).has_value());
    }
    Bytes longer = frame;
    longer.push_back(std::byte{0});
    EXPECT_FALSE(DecodeRequest(longer).has_value());
  }
}

TEST(JailerProtocol, FieldsHaveLimits) {
  EXPECT_FALSE(DecodeRequest(EncodeRequest({1, EndRequest{"../x"}})).has_value());
  EXPECT_FALSE(DecodeRequest(EncodeRequest({1, EndRequest{""}})).has_value());
  EXPECT_FALSE(DecodeRequest(EncodeRequest({1, EndRequest{std::string(65, 'a')}})).has_value());
  EXPECT_FALSE(DecodeRequest(EncodeRequest({1, ScrubRequest{"", {"gpu0"}}})).has_value());
  EXPECT_FALSE(
      DecodeRequest(EncodeRequest({1, ScrubRequest{"", std::vector<std::string>(65, "GPU-1")}}))
          .has_value());
  EXPECT_FALSE(
      DecodeRequest(EncodeRequest({1, StartRequest{std::string(300 * 1024, 'x')}})).has_value());
}

TEST(JailerProtocol, RepliesRoundTrip) {
  Reply hello;
  hello.id = 9;
  hello.hello = {"1.2", "key", "proof", {"not root"}};
  const auto again = DecodeReply(EncodeReply(hello));
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->hello.missing, hello.hello.missing);
  Reply failed;
  failed.type = RequestType::kStart;
  failed.status = Error{Code::kConflict, "was started before", "hint", "field"};
  const auto error = DecodeReply(EncodeReply(failed));
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->status.error().code, Code::kConflict);
  EXPECT_EQ(error->status.error().hint, "hint");
  const Bytes frame = EncodeReply(failed);
  for (std::size_t cut = 0; cut < frame.size(); ++cut) {
    EXPECT_FALSE(DecodeReply(ByteView(frame).first(cut)).has_value()) << cut;
  }
}

TEST(JailerProtocol, RecordsRoundTrip) {
  const std::vector<BoxRecord> records = {{"lease-1", BoxState::kScrubbed, {"GPU-1"}, "receipt"},
                                          {"lease-2", BoxState::kEnded, {}, ""}};
  const Bytes bytes = EncodeRecords(records);
  const auto again = DecodeRecords(bytes);
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(EncodeRecords(*again), bytes);
  for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
    EXPECT_FALSE(DecodeRecords(ByteView(bytes).first(cut)).has_value());
  }
}

TEST(JailerProtocol, ImagesRoundTrip) {
  const Bytes bytes = EncodeImages({{"sha256:00", {"a:1", "b"}}, {"sha256:11", {}}});
  const auto again = DecodeImages(bytes);
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(EncodeImages(*again), bytes);
  EXPECT_EQ((*again)[0].names[1], "b");
  for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
    EXPECT_FALSE(DecodeImages(ByteView(bytes).first(cut)).has_value());
  }
}

class JailerClientTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto pair = os::MakeSocketPair(kFrameBytesMax);
    ASSERT_TRUE(pair.has_value());
    jailer_ = std::move(pair->first);
    client_ = JailerClient::Attach(std::move(pair->second));
  }
  // The jailer's next request.
  Request Take() {
    auto message = os::ReceiveMessage(jailer_.get(), kFrameBytesMax);
    EXPECT_TRUE(message.has_value());
    return DecodeRequest(message->bytes).value();
  }
  void Greet() {
    Reply reply;
    reply.id = Take().id;
    ASSERT_TRUE(os::SendMessage(jailer_.get(), EncodeReply(reply)).has_value());
  }
  os::UniqueFd jailer_;
  std::unique_ptr<JailerClient> client_;
};

TEST_F(JailerClientTest, AnswersMayComeInAnyOrder) {
  std::thread first([&] { EXPECT_EQ(client_->Scrub("a", {}).value(), "receipt of a"); });
  Greet();
  const Request scrub_a = Take();
  std::thread second([&] { EXPECT_TRUE(client_->End("b").has_value()); });
  const Request end_b = Take();
  Reply end;
  end.id = end_b.id;
  end.type = RequestType::kEnd;
  ASSERT_TRUE(os::SendMessage(jailer_.get(), EncodeReply(end)).has_value());
  second.join();
  Reply scrub;
  scrub.id = scrub_a.id;
  scrub.type = RequestType::kScrub;
  scrub.text = "receipt of a";
  ASSERT_TRUE(os::SendMessage(jailer_.get(), EncodeReply(scrub)).has_value());
  first.join();
}

TEST_F(JailerClientTest, EveryCallFailsOnceThePairHasEnded) {
  std::thread caller([&] { EXPECT_EQ(client_->List().error().code, Code::kUnavailable); });
  Greet();
  (void)Take();
  jailer_.Reset();
  caller.join();
  EXPECT_EQ(client_->End("lease").error().code, Code::kUnavailable);
}

TEST_F(JailerClientTest, WhatTheJailerWouldRefuseIsNotSent) {
  std::thread caller([&] {
    EXPECT_EQ(client_->End("../lease").error().code, Code::kInvalidArgument);
    EXPECT_EQ(client_->Start(std::string(400 * 1024, 'x')).error().code, Code::kInvalidArgument);
  });
  Greet();
  caller.join();
}

TEST_F(JailerClientTest, AnAnswerWithoutItsDescriptorsIsCorrupt) {
  std::thread caller([&] { EXPECT_EQ(client_->Inventory().error().code, Code::kCorrupt); });
  Greet();
  Reply reply;
  reply.id = Take().id;
  reply.type = RequestType::kInventory;
  ASSERT_TRUE(os::SendMessage(jailer_.get(), EncodeReply(reply)).has_value());
  caller.join();
}

TEST(SocketPair, CarriesTheLargestFrame) {
  auto pair = os::MakeSocketPair(kFrameBytesMax);
  ASSERT_TRUE(pair.has_value());
  const Bytes frame(kFrameBytesMax, std::byte{7});
  ASSERT_TRUE(os::SendMessage(pair->first.get(), frame).has_value());
  EXPECT_EQ(os::ReceiveMessage(pair->second.get(), kFrameBytesMax)->bytes, frame);
  ASSERT_TRUE(os::SendMessage(pair->first.get(), frame).has_value());
  EXPECT_EQ(os::ReceiveMessage(pair->second.get(), 100).error().code, Code::kExhausted);
}

}  // namespace
}  // namespace ringfence::isolate
