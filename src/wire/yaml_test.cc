// Goal: only the small strict part of YAML gets in, every refusal says where, no input brings the
// library's exceptions or its size out, and what we write any reader reads as we meant it.
// Method: a table of refusals with their exact words; each limit at its edge; inputs made to blow
// up; text that looks like something else, written and read back.

#include "wire/yaml.h"

#include <gtest/gtest.h>

namespace ringfence::wire {
namespace {

std::string ProblemsOf(std::string_view text) {
  YamlProblems problems;
  const auto documents = ParseYaml(text, "f.yaml", problems);
  EXPECT_TRUE(problems.empty() || documents.empty());
  return problems.Text();
}

TEST(YamlTest, ReadsDocumentsWithLines) {
  YamlProblems problems;
  const auto documents = ParseYaml(
      "# comment\n"
      "a: 1\n"
      "b:\n"
      "  - x\n"
      "  - 'y z'\n"
      "---\n"
      "---\n"
      "c: {d: \"e\"}\n"
      "---\n"
      "# nothing\n",
      "f.yaml", problems);
  EXPECT_EQ(problems.Text(), "");
  ASSERT_EQ(documents.size(), 2U);
  EXPECT_EQ(documents[0].line, 2);
  EXPECT_EQ(documents[0].Find("a")->text, "1");
  EXPECT_TRUE(documents[0].Find("a")->LooksTyped());
  const YamlNode& list = *documents[0].Find("b");
  ASSERT_EQ(list.items.size(), 2U);
  EXPECT_EQ(list.items[1].line, 5);
  EXPECT_TRUE(list.items[1].quoted);
  EXPECT_EQ(documents[1].line, 8);
  EXPECT_EQ(documents[1].Find("c")->Find("d")->text, "e");
  EXPECT_EQ(documents[1].Find("d"), nullptr);
}

TEST(YamlTest, RefusesWithExactWords) {
  const std::string check = " (check indentation, colons and quotes at and above this line)";
  const std::pair<std::string, std::string> cases[] = {
      {"a: 1\na: 2\n", "f.yaml:2: the key \"a\" is there twice (keep one of the two)"},
      {"a: &x 1\n",
       "f.yaml:1: anchors (&) and aliases (*) are not allowed (write the value out, or put text "
       "that begins with & or * in quotes)"},
      {"a: !!int 1\n",
       "f.yaml:1: tags (!) are not allowed (leave the tag out, or put text that begins with ! in "
       "quotes)"},
      {"? [a]\n: b\n", "f.yaml:1: a key must be text (do not use a list or a map as a key)"},
      {"~: b\n", "f.yaml:1: a key must be text (write a name before the colon)"},
      {"x: 1\ny: \"\\x07\"\n", "f.yaml:2: text with a control character (write it without)"},
      {"a: 1\nb\x01\n", "f.yaml:2: a control character (write the file as plain UTF-8 text)"},
      {"a: \xff\n", "f.yaml: not UTF-8 (write the file as plain UTF-8 text)"},
      {"[a] [b]\n",
       "f.yaml:1: text after the end of a document (begin each document but the first with a line "
       "of ---)"},
      {"a: b: c\n", "f.yaml:1: not valid YAML: illegal map value" + check},
      {"a: 'x\nb: y\n", "f.yaml:3: not valid YAML: a quotation has no end" + check},
      {"a: [1, 2\n", "f.yaml:2: not valid YAML: end of sequence flow not found" + check},
  };
  for (const auto& [text, problem] : cases) {
    EXPECT_EQ(ProblemsOf(text), problem) << text;
  }
  for (const char* text :
       {"a: *x\n", "a: &x 1\nb: *x\n", "&x a: 1\n", "- &x [1]\n", "a: !t {}\n", "a: 1\n]\n",
        "a: 'x\n", "\ta: 1\n", "a: 1\n  b: 2\n", "a\rb: 1\n", "%YAML 9.0\n--- a\n",
        "%TAG ! x\n%TAG ! x\n--- a\n", "{a: 1} b\n", "[a]\n---x\n", "--- ]\n", "]\n", "--- }\n",
        "--- ,\n", "a: 1\n--- ]\n"}) {
    EXPECT_NE(ProblemsOf(text), "") << text;
  }
  EXPECT_NE(ProblemsOf(std::string("a: \0b\n", 6)), "");
}

std::string Nested(std::size_t depth) {
  return std::string(depth, '[') + std::string(depth, ']') + "\n";
}

TEST(YamlTest, LimitsAtTheirEdges) {
  EXPECT_EQ(ProblemsOf(Nested(kYamlDepthMax)), "");
  EXPECT_EQ(ProblemsOf(Nested(kYamlDepthMax + 1)), "f.yaml:1: nested deeper than 32");
  std::string many = "[";
  for (std::size_t i = 0; i < kYamlNodesMax - 1; ++i) {  // the list itself is one
    many += "a,";
  }
  EXPECT_EQ(ProblemsOf(many + "]\n"), "");
  EXPECT_EQ(ProblemsOf(many + "a]\n"), "f.yaml:1: more than 262144 values (split the file)");
  EXPECT_EQ(ProblemsOf("# " + std::string(kYamlBytesMax - 3, 'x') + "\n"), "");
  EXPECT_EQ(ProblemsOf("# " + std::string(kYamlBytesMax - 2, 'x') + "\n"),
            "f.yaml: over 1048576 bytes (split the file)");
}

TEST(YamlTest, InputsMadeToBlowUpAreRefused) {
  for (const std::string_view unit : {"[", "{", "- ", "? ", "a: {", "[{", "!", "&a ", "'", "\"",
                                      "|", ">", "- - ? ", "{a: ", "*"}) {
    std::string text;
    while (text.size() + unit.size() < kYamlBytesMax / 4) {
      text += unit;
    }
    EXPECT_NE(ProblemsOf(text), "") << unit;
  }
  EXPECT_NE(ProblemsOf("a: &a [x,x,x]\nb: &b [*a,*a,*a]\nc: [*b,*b,*b]\n"), "");
}

TEST(YamlProblemsTest, SortedBoundedAndPrintable) {
  YamlProblems problems;
  for (std::size_t i = kYamlProblemsMax + 7; i > 0; --i) {
    problems.Add(YamlProblem{"f\x1b.yaml", static_cast<int>(i), "p", "what\n", "hint"});
  }
  const std::string text = problems.Text();
  EXPECT_TRUE(text.starts_with("f?.yaml:8: p: what? (hint)\nf?.yaml:9: ")) << text.substr(0, 80);
  EXPECT_TRUE(text.ends_with("\nand 7 more"));
}

TEST(YamlReaderTest, TypesAreStrictAndUnknownFieldsNamed) {
  YamlProblems problems;
  const auto documents = ParseYaml(
      "text: hello\nnumber: 7\nlist: [a, b]\nquoted: \"7\"\nnegative: -1\nzero: 007\n"
      "large: 18446744073709551616\ntrue: true\nnamed: x\n",
      "f.yaml", problems);
  ASSERT_EQ(documents.size(), 1U);
  YamlReader reader(documents.data(), "spec", YamlText{"f.yaml", 1}, problems);
  EXPECT_EQ(reader.Text("text")->text, "hello");
  EXPECT_EQ(reader.Text("quoted")->text, "7");
  EXPECT_EQ(reader.Number("number", 10), 7U);
  EXPECT_EQ(reader.Texts("list", 1, 2).size(), 2U);
  EXPECT_FALSE(reader.TextIfGiven("absent").has_value());
  EXPECT_EQ(problems.Text(), "");
  EXPECT_FALSE(reader.Text("number").has_value());
  EXPECT_FALSE(reader.Text("true").has_value());
  EXPECT_FALSE(reader.Text("list").has_value());
  EXPECT_FALSE(reader.Text("missing").has_value());
  EXPECT_FALSE(reader.Number("number", 6).has_value());
  EXPECT_FALSE(reader.Number("quoted", 10).has_value());
  EXPECT_FALSE(reader.Number("negative", 10).has_value());
  EXPECT_FALSE(reader.Number("zero", 10).has_value());
  EXPECT_FALSE(reader.Number("large", 10).has_value());
  EXPECT_TRUE(reader.Texts("list", 3, 3).empty());
  EXPECT_TRUE(reader.Texts("text", 0, 3).empty());
  (void)reader.Any("name");
  reader.Finish();
  EXPECT_EQ(problems.Text(),
            "f.yaml:1: spec.missing: missing (give a text)\n"
            "f.yaml:1: spec.text: must be a list, but is a single value (write [a, b], or a \"- \" "
            "line for each)\n"
            "f.yaml:2: spec.number: must be a whole number from 0 to 6\n"
            "f.yaml:2: spec.number: must be text, but 7 reads as another type (put it in quotes)\n"
            "f.yaml:3: spec.list: must be text, but is a list\n"
            "f.yaml:3: spec.list: must have exactly 3 entries, but has 2\n"
            "f.yaml:4: spec.quoted: must be a whole number from 0 to 10 (write it without quotes)\n"
            "f.yaml:5: spec.negative: must be a whole number from 0 to 10\n"
            "f.yaml:6: spec.zero: must be a whole number from 0 to 10\n"
            "f.yaml:7: spec.large: must be a whole number from 0 to 10\n"
            "f.yaml:8: spec.true: must be text, but true reads as another type (put it in quotes)\n"
            "f.yaml:9: spec.named: unknown field (did you mean \"name\"?)");
}

Json Yaml(std::string_view text) {
  auto json = YamlToJson(text, "f.yaml");
  EXPECT_TRUE(json.has_value()) << json.error().message;
  return json.has_value() ? *json : Json("failed");
}

TEST(YamlToJsonTest, CoreSchema) {
  EXPECT_EQ(
      CanonicalJson(Yaml("a: 1\nb: -2\nc: +3\nd: 0x1F\ne: 0o17\nf: true\ng: False\nh: ~\ni:\n"
                         "j: 'null'\nk: no\nl: 1h30m\nm: 1.2.3\nn: [x, {y: z}]\no: '-'\np: e5\n"
                         "q: 127.0.0.1\nr: 0\ns: 0xyz\nt: 2026-11-15\nu: 1e\nv: .\n")),
      R"({"a":1,"b":-2,"c":3,"d":31,"e":15,"f":true,"g":false,"h":null,"i":null,"j":"null",)"
      R"("k":"no","l":"1h30m","m":"1.2.3","n":["x",{"y":"z"}],"o":"-","p":"e5",)"
      R"("q":"127.0.0.1","r":0,"s":"0xyz","t":"2026-11-15","u":"1e","v":"."})");
  EXPECT_EQ(Yaml("a: 1.5\n").at("a").as_double(), 1.5);
  EXPECT_EQ(Yaml("a: 1e3\n").at("a").as_double(), 1000);
  EXPECT_EQ(Yaml("a: .5\n").at("a").as_double(), 0.5);
  EXPECT_TRUE(Yaml("").is_null());
  EXPECT_TRUE(Yaml("# nothing\n").is_null());
  for (const char* text : {"a: 0755\n", "a: 99999999999999999999\n", "a: .inf\n", "a: 1e999\n",
                           "a: 1\n---\nb: 2\n", "a: -01\n"}) {
    EXPECT_FALSE(YamlToJson(text, "f.yaml").has_value()) << text;
  }
  EXPECT_EQ(YamlToJson("x:\n  mode: 0755\n", "f.yaml").error().message,
            "f.yaml:2: x.mode: 0755 is neither plainly a number nor plainly text (put text in "
            "quotes; write numbers without leading zeros)");
}

TEST(JsonToYamlTest, ShapeForPeople) {
  const Json json =
      ParseJson(R"({"name": "gpu 0", "list": [1, {"a": 1, "b": [true, null]}, [[], {}],
      "2026-11-15"], "empty": {}, "text": "line\n\"two\": #3", "deep": {"x": {"w": "z"}}})",
                4096)
          .value();
  EXPECT_EQ(JsonToYaml(json),
            "name: gpu 0\n"
            "list:\n"
            "  - 1\n"
            "  - a: 1\n"
            "    b:\n"
            "      - true\n"
            "      - null\n"
            "  - - []\n"
            "    - {}\n"
            "  - \"2026-11-15\"\n"
            "empty: {}\n"
            "text: \"line\\n\\\"two\\\": #3\"\n"
            "deep:\n"
            "  x:\n"
            "    w: z\n");
  EXPECT_EQ(JsonToYaml(Json(nullptr)), "null\n");
  EXPECT_EQ(JsonToYaml(JsonArray{}), "[]\n");
}

TEST(JsonToYamlTest, EveryTextComesBackAsItself) {
  std::vector<std::string> texts = {"",
                                    "null",
                                    "~",
                                    "true",
                                    "No",
                                    "ON",
                                    "y",
                                    "1",
                                    "-1",
                                    "1e3",
                                    "0x10",
                                    ".inf",
                                    "- a",
                                    "a: b",
                                    "a #b",
                                    " a",
                                    "a ",
                                    "&a",
                                    "*a",
                                    "!a",
                                    "%a",
                                    "@a",
                                    "`a",
                                    "[a",
                                    "{a",
                                    "'a'",
                                    "\"a\"",
                                    "|",
                                    ">",
                                    "---",
                                    "...",
                                    "a\nb",
                                    "a\tb",
                                    "\\",
                                    "<<",
                                    "=",
                                    "?",
                                    "1:30",
                                    "a,b",
                                    "\xc3\xa4",
                                    "\xf0\x9f\x94\x92",
                                    "\xe2\x80\xae txt",
                                    "\xc2\x85",
                                    "\xef\xbb\xbf"
                                    "a",
                                    "a/b@c.d-e"};
  for (char c = ' '; c < 127; ++c) {
    texts.push_back(std::string(1, c));
    texts.push_back("a" + std::string(1, c) + "b");
    texts.push_back(std::string(1, c) + " b");
  }
  for (const std::string& text : texts) {
    const Json json = JsonObject{{"k", text}, {"list", JsonArray{Json(text)}}, {text + "k", 1}};
    const std::string yaml = JsonToYaml(json);
    const auto back = YamlToJson(yaml, "f.yaml");
    ASSERT_TRUE(back.has_value()) << yaml << back.error().message;
    EXPECT_EQ(CanonicalJson(*back), CanonicalJson(json)) << yaml;
    for (const char c : yaml) {  // nothing that moves a terminal's cursor
      EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20);
    }
  }
}

}  // namespace
}  // namespace ringfence::wire
