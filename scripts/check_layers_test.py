#!/usr/bin/python3
# Goal: the layer check finds every kind of breach, and nothing else.
# Method: one small file for each rule, once where it breaks the rule and once where it does not.

import os
import re
import tempfile
import unittest

import check_layers
from check_layers import Exemption

BROKEN = [  # file, text, words that the complaint must have
    ("src/os/a.cc", '#include "net/http.h"', "os/ is level 1, net/ is 2"),
    ("src/base/a.h", '#include "os/file.h"', "level 0"),
    ("src/lease/a.cc", '#include "server/api.h"', "nobody includes server/"),
    ("src/cli/a.cc", '  #  include "agent/agent.h"', "nobody includes agent/"),
    ("src/net/a.cc", '#include "http.h"', "folder/file.h"),
    ("src/net/a.cc", '#include "../net/http.h"', "folder/file.h"),
    ("src/net/a.cc", '#include "../../sim/cuda.h"', "folder/file.h"),
    ("src/net/a.cc", '#include "sim/cuda.h"', "folder/file.h"),
    ("src/audit/a.cc", "#include <unistd.h>", "only os/ may touch the kernel"),
    ("src/audit/a.cc", "#include <sys/stat.h>", "only os/"),
    ("src/isolate/a.cc", "#include <linux/landlock.h>", "only os/"),
    ("src/agent/a.cc", "#include <seccomp.h>", "only os/"),
    ("src/net/a.cc", "#include <netinet/in.h>", "only os/"),
    ("src/os/a.cc", "#include <dlfcn.h>", "only gpu/"),
    ("src/net/a_fuzz.cc", "#include <unistd.h>", "only os/"),
    ("src/audit/a_test.cc", "#include <openssl/evp.h>", "only crypto and net/"),
    ("src/audit/a_test.cc", '#include "lease/life.h"', "audit/ is level 4"),
    ("src/audit/a.cc", "#include <openssl/evp.h>", "only crypto and net/"),
    ("src/server/a.cc", "#include <boost/asio.hpp>", "only net/"),
    ("src/server/a.cc", "#include <boost/beast/http.hpp>", "only net/"),
    ("src/policy/a.cc", "#include <yaml-cpp/yaml.h>", "only wire/"),
    ("src/lease/a.cc", "#include <sqlite3.h>", "only store/"),
    ("src/isolate/a.cc", "int x = nvmlInit_v2();", "names nvmlInit_v2"),
    ("src/worker/a.cc", 'Find("cuMemAlloc_v2");', "names cuMemAlloc_v2"),
    ("src/server/a.cc", "return NVML_SUCCESS;", "names NVML_SUCCESS"),
    ("src/extra/a.cc", "int x;", "not in a folder of the house"),
    ("src/a.cc", "int x;", "not in a folder of the house"),
    ("src/os/deep/a.cc", "int x;", "not in a folder of the house"),
]
WHOLE = [
    ("src/net/a.cc", '#include "net/http.h"\n#include "os/file.h"\n#include "model/lease.h"'),
    ("src/os/a.cc", "#include <sys/stat.h>\n#include <linux/landlock.h>\n#include <seccomp.h>"),
    ("src/audit/a_test.cc", "#include <sys/stat.h>"),
    ("src/crypto/a.cc", "#include <openssl/evp.h>"),
    ("src/net/a.cc", "#include <openssl/ssl.h>\n#include <boost/asio.hpp>"),
    ("src/gpu/a.cc", "#include <dlfcn.h>\nint x = nvmlInit_v2(); auto y = cuInit(0);"),
    ("src/server/a.cc", '#include "server/api.h"\n#include <vector>\n#include <csignal>'),
    ("src/wire/a.cc", "#include <yaml-cpp/yaml.h>"),
    ("src/store/a.cc", "#include <sqlite3.h>"),
    ("src/base/a.cc", '// #include "server/api.h" and nvmlInit_v2\n/*\n#include <unistd.h>\n*/'),
    ("src/base/a.cc", 'const char* url = "https://x"; int cursor = 1; int currency = cut;'),
]


class LayersTest(unittest.TestCase):
    def breaches(self, files, exemptions=()):
        with tempfile.TemporaryDirectory() as root:
            for name, text in files:
                path = os.path.join(root, name)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text + "\n")
            return check_layers.check(root, list(exemptions))[0]

    def test_each_breach_is_found_with_its_line(self):
        for name, text, words in BROKEN:
            found = self.breaches([(name, "// first line\n" + text)])
            self.assertEqual(len(found), 1, (name, text, found))
            self.assertIn(words, found[0])
            self.assertTrue(re.match(re.escape(name) + r":[12]: ", found[0]), found[0])

    def test_what_is_allowed_is_not_a_breach(self):
        for name, text in WHOLE:
            self.assertEqual(self.breaches([(name, text)]), [], (name, text))

    def test_an_exemption_covers_its_file_and_header_only(self):
        exemption = Exemption("src/isolate/a.cc", r"sys/mount\.h", "a reason")
        file = ("src/isolate/a.cc", "#include <sys/mount.h>")
        self.assertEqual(self.breaches([file], [exemption]), [])
        other = ("src/isolate/b.cc", "#include <sys/mount.h>")
        self.assertEqual(len(self.breaches([file, other], [exemption])), 1)
        more = ("src/isolate/a.cc", "#include <sys/mount.h>\n#include <sys/stat.h>")
        self.assertEqual(len(self.breaches([more], [exemption])), 1)

    def test_an_exemption_that_nothing_needs_is_a_breach(self):
        exemption = Exemption("src/isolate/a.cc", r"sys/mount\.h", "a reason")
        found = self.breaches([("src/isolate/a.cc", "int x;")], [exemption])
        self.assertEqual(len(found), 1)
        self.assertIn("any more", found[0])

    def test_an_empty_tree_does_not_pass(self):
        with tempfile.TemporaryDirectory() as root:
            self.assertEqual(check_layers.main([root]), 1)


if __name__ == "__main__":
    unittest.main()
