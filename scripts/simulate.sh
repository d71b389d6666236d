#!/bin/sh
# Runs the simulation of server, agents and jailers. SEED and LIVES choose the worlds, TRACE=1 says
# everything that happens in them; one seed is one world, always the same.
set -eu
cd "$(dirname "$0")/.."
scripts/build.sh test simulation
seed=${SEED:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}
echo "simulation from seed $seed"
exec build/test/tests/simulation --seed "$seed" --lives "${LIVES:-20000}" ${TRACE:+--trace}
