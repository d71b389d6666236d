// Goal: what a hostile job tries inside its box fails, and fails because of the wall that is meant
// to stop it.
// Method: attacks as shell and Python in real boxes; where a wall could be hidden behind another,
// the same attack is run with only that wall taken away (a bundle changed by the test and run
// with the same runtime), and must then succeed.

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "isolate/box.h"
#include "jailer/harness_test.h"
#include "os/mount.h"
#include "os/privileges.h"

namespace ringfence::jailer {
namespace {

class AttackTest : public JailerTest {
 protected:
  void SetUp() override {
    JailerTest::SetUp();
    if (!IsSkipped() && !HasFatalFailure()) {
      Start();
    }
  }

  // Python prints the errno's name of a failed call, or "done".
  Ran Python(const std::string& body, std::vector<std::string> gpus = {}) {
    return Run(MakeGrant({"python3", "-c",
                          "import ctypes, errno, os, socket, sys\n"
                          "libc = ctypes.CDLL(None, use_errno=True)\n"
                          "def call(*a):\n"
                          "  r = libc.syscall(*a)\n"
                          "  print('done' if r >= 0 else errno.errorcode[ctypes.get_errno()])\n"
                          "def tried(f):\n"
                          "  try:\n"
                          "    f(); print('done')\n"
                          "  except OSError as e:\n"
                          "    print(errno.errorcode[e.errno])\n" +
                              body},
                         std::move(gpus)));
  }
};

TEST_F(AttackTest, OrdinaryProgramsWork) {
  const Ran ran = Python(
      "import threading, subprocess, tempfile, json, hashlib\n"
      "t = threading.Thread(target=lambda: print('thread')); t.start(); t.join()\n"
      "print(subprocess.run(['echo', 'child'], capture_output=True, text=True).stdout.strip())\n"
      "with tempfile.TemporaryFile() as f: f.write(b'x'); print('file')\n");
  EXPECT_EQ(ran.out, "thread\nchild\nfile\n") << ran.err;
  EXPECT_EQ(Shell("bash -c 'for i in 1 2 3; do echo $i | cat; done | wc -l'").out, "3\n");
  EXPECT_EQ(Shell("ls / > /dev/null && cd /tmp && mkdir a && touch a/b && mv a c && rm -r c").exit,
            "exited 0\n");
}

TEST_F(AttackTest, SystemCallsThatReachTheHostAreRefused) {
  const Ran ran = Python(
      "call(165, 0, b'/tmp', b'tmpfs', 0, 0)\n"   // mount
      "call(272, 0x10000000)\n"                   // unshare(CLONE_NEWUSER)
      "call(56, 0x10000000 | 17, 0, 0, 0, 0)\n"   // clone(CLONE_NEWUSER)
      "call(435, 0, 0)\n"                         // clone3
      "call(308, 0, 0)\n"                         // setns
      "call(101, 0, 0, 0, 0)\n"                   // ptrace(TRACEME)
      "call(321, 0, 0, 0)\n"                      // bpf
      "call(250, 0, 0)\n"                         // keyctl
      "call(298, 0, 0, 0, 0, 0)\n"                // perf_event_open
      "call(323, 0)\n"                            // userfaultfd
      "call(425, 8, 0)\n"                         // io_uring_setup
      "call(304, 0, 0, 0)\n"                      // open_by_handle_at
      "call(310, 1, 0, 0, 0, 0, 0)\n"             // process_vm_readv
      "call(175, 0, 0, b'')\n"                    // init_module
      "call(246, 0, 0, 0, 0)\n"                   // kexec_load
      "call(169, 0xfee1dead, 672274793, 0, 0)\n"  // reboot
      "call(135, 0x0040000)\n");                  // personality(ADDR_NO_RANDOMIZE)
  std::string expected;
  for (int i = 0; i < 17; ++i) {
    expected += i == 3 ? "ENOSYS\n" : "EPERM\n";
  }
  EXPECT_EQ(ran.out, expected) << ran.err;
}

TEST_F(AttackTest, NoDeviceNodesNoRawSocketsNoHypervisor) {
  const Ran ran = Python(
      "tried(lambda: os.mknod('/tmp/d', 0o20666, os.makedev(195, 1)))\n"
      "tried(lambda: os.mknod('/tmp/p', 0o10666))\n"
      "tried(lambda: socket.socket(40, socket.SOCK_STREAM))\n"  // AF_VSOCK
      "tried(lambda: socket.socket(17, socket.SOCK_RAW))\n"     // AF_PACKET
      "tried(lambda: socket.socket(38, 5))\n");                 // AF_ALG
  EXPECT_EQ(ran.out, "EPERM\ndone\nEPERM\nEPERM\nEPERM\n") << ran.err;
}

TEST_F(AttackTest, NoNetwork) {
  const Ran ran = Python(
      "tried(lambda: socket.create_connection(('127.0.0.1', 22), 2))\n"
      "tried(lambda: socket.create_connection(('169.254.169.254', 80), 2))\n"
      "print([n for _, n in socket.if_nameindex()])\n");
  EXPECT_EQ(ran.out.find("done"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("['lo']"), std::string::npos) << ran.out << ran.err;
}

TEST_F(AttackTest, NothingOfTheHostIsWritableOrSecret) {
  const Ran ran = Shell(
      "touch /usr/x /etc/x /x /dev/x /proc/sys/kernel/hostname 2>&1 | grep -c cannot;"
      "cat /etc/shadow /etc/gshadow /proc/1/environ /run/ringfence/token 2>/dev/null | wc -c;"
      "ls /home /var; ls /proc | grep -c '^[0-9]'; cat /proc/keys | wc -c");
  EXPECT_EQ(ran.out.substr(0, 4), "5\n0\n") << ran.out << ran.err;
  const Ran caps = Shell("grep -h -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status");
  EXPECT_EQ(caps.out,
            "CapInh:\t0000000000000000\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n"
            "CapBnd:\t0000000000000000\nCapAmb:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n");
}

TEST_F(AttackTest, SetUserIdProgramsGainNothing) {
  // newgrp, su, passwd, mount: whichever of them this host has with the set-user-id bit.
  const Ran ran = Shell(
      "for f in /usr/bin/su /usr/bin/passwd /usr/bin/mount /usr/bin/newgrp; do"
      "  [ -u $f ] && echo set-user-id; done | sort -u;"
      "cp /usr/bin/id /tmp/id; chmod 4755 /tmp/id; /tmp/id -u;"
      "su -c id 2>/dev/null; mount -t tmpfs x /tmp 2>/dev/null; echo after");
  EXPECT_EQ(ran.out, "set-user-id\n1000\nafter\n") << ran.err;
}

TEST_F(AttackTest, InitCannotBeTouched) {
  const Ran ran = Shell(
      "kill -KILL 1; kill -STOP 1; ls /proc/1/fd >/dev/null 2>&1 && echo seen;"
      "cat /proc/1/mem >/dev/null 2>&1 && echo read; echo alive");
  EXPECT_EQ(ran.out, "alive\n") << ran.err;
  EXPECT_EQ(ran.exit, "exited 0\n");
}

TEST_F(AttackTest, OnlyTheLeasedGpuIsThere) {
  const std::vector<std::string> gpus = Gpus();
  ASSERT_TRUE(client_->Scrub("", {gpus[2], gpus[3]}).has_value());
  const Ran ran = Run(MakeGrant({"sh", "-c",
                                 "ls /dev | grep nvidia; ls /run/ringfence/driver/memory;"
                                 "stat -c '%u %a' /dev/nvidia2"},
                                {gpus[2]}));
  EXPECT_EQ(ran.out, "nvidia-uvm\nnvidia2\nnvidiactl\n" + gpus[2] + "\n1000 600\n") << ran.err;
  // The memory is root's again.
  struct stat facts{};
  ASSERT_EQ(stat((driver_root_ + "/memory/" + gpus[2]).c_str(), &facts), 0);
  EXPECT_EQ(facts.st_uid, 0U);
}

TEST_F(AttackTest, WhatAJobLeavesInGpuMemoryIsCountedAndGone) {
  const std::vector<std::string> gpus = Gpus();
  ASSERT_TRUE(client_->Scrub("", {gpus[0]}).has_value());
  const isolate::Grant grant =
      MakeGrant({"sh", "-c",
                 "printf secret | dd of=/run/ringfence/driver/memory/" + gpus[0] +
                     " conv=notrunc bs=1 seek=1048576 2>/dev/null"},
                {gpus[0]});
  EXPECT_EQ(Run(grant).exit, "exited 0\n");
  const auto key =
      crypto::PublicKey::FromRaw(FromBase64(client_->Hello()->public_key).value()).value();
  const auto receipt = isolate::OpenReceipt(key, client_->Scrub(grant.lease, {}).value());
  ASSERT_TRUE(receipt.has_value());
  EXPECT_EQ(receipt->lease, grant.lease);
  EXPECT_EQ(receipt->gpus[0].residue_bytes, 6U);
  EXPECT_EQ(receipt->gpus[0].mismatch_bytes, 0U);
  const Ran next = Run(
      MakeGrant({"sh", "-c", "grep -c secret /run/ringfence/driver/memory/" + gpus[0]}, {gpus[0]}));
  EXPECT_EQ(next.out, "0\n");
}

}  // namespace
}  // namespace ringfence::jailer
