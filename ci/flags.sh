# shellcheck shell=bash
# Flags of a script, looked at before anything is installed or built. To be sourced.

# check_flags SCRIPT FLAGS WORD...: says what of the words is no flag of the script, and fails then. FLAGS is a list: "--name" is
# a flag without a value, "--name=" one with, in the same word or in the next. Other words are none of the script's.
check_flags() {
  local script=$1 known=" $2 " word name
  shift 2
  while (( $# > 0 )); do
    word=$1 name=${1%%=*}
    shift
    if [[ $word != -?* ]]; then
      echo "$script: $word is no flag (see $script --help)" >&2
      return 2
    elif [[ $known == *" $name= "* ]]; then
      [[ $word == *=* ]] && continue
      if (( $# == 0 )); then
        echo "$script: $name needs a value (see $script --help)" >&2
        return 2
      fi
      shift
    elif [[ $known != *" $word "* ]]; then
      echo "$script: unknown flag $name (see $script --help)" >&2
      return 2
    fi
  done
}

# check_bazel_options SCRIPT OPTION...: the same of options of `bazel test`, as far as Bazel is there to be asked.
check_bazel_options() {
  local script=$1 said
  shift
  if (( $# == 0 )) || ! command -v bazel >/dev/null; then return 0; fi
  # shellcheck disable=SC2086  # Startup options are a list.
  said=$(bazel ${BAZEL_STARTUP_OPTIONS:-} canonicalize-flags --for_command=test -- "$@" 2>&1 >/dev/null) && return 0
  echo "$script: $(grep '^ERROR' <<<"$said" || tail -n 1 <<<"$said") (see $script --help)" >&2
  return 2
}
