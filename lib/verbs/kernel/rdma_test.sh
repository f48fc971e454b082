#!/usr/bin/env bash
# rdma_test.sh TOK LIBRARY [flag of tok verbs]... -- PROGRAM [argument]...: what rdma_test (rdma_test.bzl) runs.
set -euo pipefail
# The runtime of a sanitizer, where the build has one, must come before all other libraries.
LD_PRELOAD=$(ldd "$2" | awk '/lib[at]san/ {print $3}')
export LD_PRELOAD
exec "$1" verbs --library "$PWD/$2" "${@:3}"
