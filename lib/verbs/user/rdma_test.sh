#!/usr/bin/env bash
# rdma_test.sh TOK LIBRARY [flag of tok verbs]... -- PROGRAM [argument]...: what rdma_test (rdma_test.bzl) runs.
set -euo pipefail
exec "$1" verbs --library "$PWD/$2" "${@:3}"
