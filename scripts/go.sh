# Sourced by what needs Go: `make peers`, and the benchmarks against Tessera.

GO_LEAST=1.25

need_go() {
  local have
  have=$(go env GOVERSION 2>/dev/null) || have=""
  # From 1.21 on, Go fetches the version that a module asks for by itself.
  if [ -z "$have" ] || [ "$(printf '%s\n' "go1.21" "$have" | sort -V | head -n 1)" != go1.21 ]; then
    die "Go $GO_LEAST or newer is needed for this (found: ${have:-none})" \
      "Debian 12's own Go is too old; take golang-go from bookworm-backports, or go.dev/dl" \
      "modules come from the proxy that \`go env GOPROXY\` names"
  fi
}

# The witness asks for a commit of transparency-dev/merkle that module mirrors need not have: only a
# function for signing subtrees is new in it, which is never called here. So it gets the released
# version with that function refusing.
prepare_merkle() {
  local from to=$ROOT/build/peers/merkle
  [ ! -e "$to/proof/subtree.go" ] || return 0
  from=$(cd "$(mktemp -d)" && go mod init peers >/dev/null 2>&1 &&
    go mod download -json github.com/transparency-dev/merkle@v0.0.2 |
    sed -n 's/^\t"Dir": "\(.*\)",*$/\1/p')
  [ -d "$from" ] || die "the Go module transparency-dev/merkle could not be fetched" \
    "\`go env GOPROXY\` names the proxy that is asked"
  rm -rf "$to"
  mkdir -p "$to"
  cp -r "$from/." "$to/"
  chmod -R u+w "$to"
  cat >"$to/proof/subtree.go" <<'GO'
package proof

import (
	"errors"

	"github.com/transparency-dev/merkle"
)

// VerifySubtreeConsistency is not part of this version.
func VerifySubtreeConsistency(merkle.LogHasher, uint64, uint64, uint64, [][]byte, []byte, []byte) error {
	return errors.New("subtrees are not supported here")
}
GO
}
