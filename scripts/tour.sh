#!/usr/bin/env bash
# The five-minute story, played by itself: two tenants, a job each, attacks that the kernel
# refuses, a scrub receipt, a tampered log that is caught. Everything happens in a state folder of
# its own, which is gone afterwards. Fails if any step does not go as told, so tests run it too;
# exits with 77 on a machine that cannot run boxes.
#   RINGFENCE_BUILD_DIR=DIR  take the programs from there (default build/release)
#   TOUR_PAUSE=SECONDS       between scenes (default 3 on a terminal, else 0)
set -uo pipefail
source "$(dirname "$0")/common.sh"

build=${RINGFENCE_BUILD_DIR:-$ROOT/build/release}
[ -x "$build/ringfence" ] || die "$build/ringfence is not built" "\`make tour\` builds it first"
if ! is_root; then
  command -v sudo >/dev/null ||
    die "the tour runs jobs in real boxes, for which a node needs root" "run it as root"
  say "the tour runs jobs in real boxes, for which a node needs root: using sudo"
  exec sudo -- env RINGFENCE_BUILD_DIR="$build" ${TOUR_PAUSE:+TOUR_PAUSE="$TOUR_PAUSE"} \
    ${NO_COLOR:+NO_COLOR=1} ${CI:+CI="$CI"} "$ROOT/scripts/tour.sh"
fi

pause=${TOUR_PAUSE:-0}
bold='' dim='' plain=''
if [ -t 1 ] && [ "${CI:-}" != true ]; then
  pause=${TOUR_PAUSE:-3}
  if [ -z "${NO_COLOR:-}" ]; then
    bold=$'\e[1m' dim=$'\e[2m' plain=$'\e[0m'
  fi
fi

folder=$(mktemp -d "${TMPDIR:-/tmp}/ringfence-tour.XXXXXX") || exit 1
chmod 755 "$folder"  # the server and the agent, which are not root, must get to theirs
# Nothing of the caller's own Ringfence: no state, no server, no token, no file.
for name in "${!RINGFENCE_@}"; do unset "$name"; done
export RINGFENCE_STATE=$folder/state
PATH=$build:$PATH
cd "$folder" || exit 1
begun=$SECONDS
went_well='' cannot=''

leave() {
  [ -n "$went_well" ] || ringfence down >down.log 2>&1
  cd /
  if [ -n "$went_well$cannot" ]; then
    rm -rf "$folder"
    [ -z "$cannot" ] || exit 77
  else
    say "the tour did not go as told; everything it made is still in $folder" >&2
    exit 1
  fi
}
trap leave EXIT
trap 'exit 130' INT TERM

scene() {
  sleep "$pause"
  printf '\n%s%s%s\n' "$bold" "$1" "$plain"
  shift
  [ $# -eq 0 ] || printf '%s\n' "$@"
}

wrong() {
  printf '%s\n' "${output:-}" >&2
  die "$1"
}

# expect STATUS COMMAND...: shows the command, runs it, shows what it says; ends the tour if it
# exits otherwise. With `as TOKEN-VARIABLE` before it, acts with that token.
# What it said stays in $output.
as=''
as() { as=$1; shift; "$@"; as=''; }
expect() {
  local status=$1 got=0
  shift
  show_line "${as:+RINGFENCE_TOKEN=\$$as }$(shown "$@")"
  # Into a file: what `up` leaves running must not keep us waiting for the end of a pipe.
  if [ -n "$as" ]; then
    RINGFENCE_TOKEN=${!as} "$@" >said 2>&1 || got=$?
  else
    "$@" >said 2>&1 || got=$?
  fi
  output=$(<said)
  [ -z "$output" ] || printf '%s\n' "$output" | sed 's/^/  /'
  [ "$got" = "$status" ] || wrong "that should have exited with $status, and did with $got"
  [ "$status" = 0 ] || printf '  %s(exit %s)%s\n' "$dim" "$got" "$plain"
}
show_line() { printf '\n%s$ %s%s\n' "$bold" "$1" "$plain"; }
# A command line for people: scripts are named, not printed.
shown() {
  local word text=''
  for word in "$@"; do
    case "$word" in
      *$'\n'*) text+=' "$SCRIPT"' ;;
      *[\ \;\$\*]*) text+=" '$word'" ;;
      *) text+=" $word" ;;
    esac
  done
  printf '%s' "${text# }"
}
says() { grep -qE -- "$1" <<<"$output" || wrong "that should have said: $1"; }
says_not() { ! grep -qE -- "$1" <<<"$output" || wrong "that should not have said: $1"; }

# A copy of the log between two steps of its writer: one that verifies.
copy_log() {
  for _ in {1..25}; do
    rm -rf "$1"
    cp -r "$RINGFENCE_STATE/server/log" "$1" 2>copy.log
    ! output=$(ringfence audit verify --log "$1" 2>&1) || return 0
    sleep 0.2
  done
  wrong "no copy of the log verifies"
}

scene "1. A control plane, from nothing" \
  "A server, a node and its GPUs, on this machine; the GPUs are simulated where there is no driver."
expect 0 ringfence up --detach --listen 127.0.0.1:0
if ! output=$(ringfence status 2>&1); then
  printf '%s\n\n' "$output" "this machine cannot run boxes, so there is no story to tell"
  cannot=yes
  exit 77
fi
expect 0 ringfence status
expect 0 ringfence gpu list
says 'free'

scene "2. Two tenants who do not trust each other" \
  "Alice of acme and Grace of globex. The administrator gives each a token; both acts are audited."
ALICE=$(ringfence token create --quiet --as alice@acme.example) || wrong "no token for alice"
GRACE=$(ringfence token create --quiet --as grace@globex.example) || wrong "no token for grace"
show_line 'ALICE=$(ringfence token create --quiet --as alice@acme.example)'
show_line 'GRACE=$(ringfence token create --quiet --as grace@globex.example)'
as ALICE expect 0 ringfence whoami
says 'alice@acme.example'

scene "3. Grace's job" \
  "It writes something secret into its GPU's memory, stays a while, and cleans up nothing."
folding=$(cat <<'SCRIPT'
memory=$(grep -o "/run/ringfence/driver/memory/GPU-[^ ]*" /proc/self/mounts)
if [ -n "$memory" ]; then
  printf "the fold of a protein nobody has published" | dd of="$memory" conv=notrunc status=none
fi
echo "folding on $(echo /dev/nvidia[0-9]*)"
sleep 600
SCRIPT
)
as GRACE expect 0 ringfence run --quiet --detach -t globex/genomics/folding -- bash -c "$folding"
grace_lease=$output
for _ in {1..150}; do
  output=$(RINGFENCE_TOKEN=$GRACE ringfence lease logs "$grace_lease" 2>&1)
  ! grep -q '^folding on' <<<"$output" || break
  sleep 0.2
done
as GRACE expect 0 ringfence lease logs "$grace_lease"
says '^folding on /dev/nvidia[0-9]+$'
grace_minor=${output##*nvidia}
output=$(RINGFENCE_TOKEN=$GRACE ringfence lease show -o json "$grace_lease") ||
  wrong "grace cannot see her own lease"
grace_gpu=$(grep -oE 'GPU-[0-9a-f-]{36}' <<<"$output" | head -n 1)

scene "4. Alice's job, at the same time, on the same node" \
  "Its box sees one GPU, and not Grace's: there is no other device in it."
as ALICE expect 0 ringfence run --quiet -t acme/research/vision -- bash -c 'ls -l /dev/nvidia[0-9]*'
[ "$(grep -c '/dev/nvidia[0-9]' <<<"$output")" = 1 ] || wrong "the box should see exactly one GPU"
says_not "/dev/nvidia$grace_minor\$"
as ALICE expect 7 ringfence run --quiet -t acme/research/vision -- sh -c 'exit 7'

scene "5. Alice attacks" \
  "A job that tries to get at Grace's GPU, the host and the network. The kernel says no, each time."
# Were there no box around it, this would run on the host, perhaps as root. So it looks first where
# it is, and each attack is chosen such that it harms nothing should it get through.
attacks=$(cat <<'SCRIPT'
if [ "$(id -u)" != 1000 ] || [ -z "${RINGFENCE_LEASE:-}" ] || [ "$HOSTNAME" != box ]; then
  echo "not inside a box: nothing is tried"
  exit 99
fi
tried=0 refused=0
attack() {
  local what=$1 words status=0
  tried=$((tried + 1))
  words=$(timeout 5 "${@:2}" 2>&1 </dev/null) || status=$?
  if [ "$status" = 0 ] || [ "$status" = 124 ]; then  # 124: nobody refused, it only took too long
    echo "GOT THROUGH: $what"
  else
    refused=$((refused + 1))
    words=$(tail -n 1 <<<"$words")
    printf "%-40s %s\n" "$what" "${words##*: }"
  fi
}
mkdir -p "$HOME/empty"
attack "make a device node for the other GPU" mknod "$HOME/gpu" c 195 "$MINOR"
attack "open its device" bash -c "exec 3</dev/nvidia$MINOR"
attack "read its memory" head -c 1 "/run/ringfence/driver/memory/$GPU"
attack "mount something" mount -t tmpfs none "$HOME/empty"
attack "become root in a namespace" unshare --user --map-root-user true
attack "open the host's password file" bash -c "exec 3</etc/shadow"
attack "write among the host's programs" mkdir /usr/bin/ringfence-tour-was-here
attack "reach an address outside" bash -c "exec 3<>/dev/tcp/192.0.2.1/80"
echo "$refused of $tried refused"
[ "$refused" = "$tried" ]
SCRIPT
)
as ALICE expect 0 ringfence run --quiet -t acme/research/vision --env MINOR="$grace_minor" \
  --env GPU="$grace_gpu" -- bash -c "$attacks"
says '^8 of 8 refused$'

scene "6. And policy says no before anything runs" \
  "Alice holds no role in globex: she can neither run there nor see what Grace runs."
as ALICE expect 3 ringfence run -t globex/genomics/folding -- true
as ALICE expect 3 ringfence lease logs "$grace_lease"

scene "7. Grace is done: her GPU is scrubbed before anyone else gets it" \
  "A worker counts what was left in the memory, overwrites all of it and reads it back; the jailer" \
  "signs the receipt. Without a receipt the GPU is not leased again."
as GRACE expect 0 ringfence lease end "$grace_lease"
as GRACE expect 0 ringfence lease show --wait "$grace_lease"
says 'closed'
says 'scrubbed .* receipt '
if grep -q 'simulated' <<<"$output"; then
  says 'residue 42 B'
fi

scene "8. What happened can be proven to someone who trusts none of us" \
  "Each step is an entry of a Merkle log. The verifier works offline and shares no code with the writer."
copy_log earlier-copy
as GRACE expect 0 ringfence run --quiet -t globex/genomics/imaging -- true
expect 0 ringfence audit tail -n 5
for _ in {1..50}; do  # a checkpoint follows an entry within a second or so
  ringfence audit checkpoint >checkpoint || wrong "no checkpoint"
  ! cmp -s checkpoint earlier-copy/checkpoint || { sleep 0.2; continue; }
  break
done
expect 0 ringfence audit verify

scene "9. An insider rewrites history in a copy of the log" \
  "The refusal of scene 6 becomes an approval: one word in one entry."
copy_log copy
mapfile -d '' tiles < <(grep -rlZ '"decision":"deny"' copy/tile/entries)
[ ${#tiles[@]} -gt 0 ] || wrong "no denial in the log"
show_line "sed -i '0,/\"decision\":\"deny\"/s//\"decision\":\"okay\"/' ${tiles[*]}"
LC_ALL=C sed -i '0,/"decision":"deny"/s//"decision":"okay"/' "${tiles[@]}"
expect 1 ringfence audit verify --log copy
says 'entry [0-9]+'
entry=$(grep -oE 'entry [0-9]+' <<<"$output" | head -n 1 | tr -dc 0-9)
printf '\nIt names the entry. In the real log that one is:\n'
expect 0 ringfence audit show "$entry"
says 'deny'

scene "10. Or hands out an old copy, as if the rest had never happened" \
  "Anyone who kept a later checkpoint notices."
expect 0 ringfence audit verify --log earlier-copy
expect 1 ringfence audit verify --log earlier-copy --checkpoint checkpoint

scene "11. Down"
expect 0 ringfence down
went_well=yes
scene "That was all of it, in $((SECONDS - begun)) seconds." \
  "Next: make up, and the first ten minutes in README.md."
