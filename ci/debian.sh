# shellcheck shell=bash
# Which Debian this machine has, of the two that Tokamak is built on, and where such Debians come from. To be sourced.

declare -A debian_codenames=([12]=bookworm [13]=trixie)

# debian_version SCRIPT: says its number; of another system what to do, and fails then.
debian_version() {
  local number
  # shellcheck source=/dev/null
  number=$(. /etc/os-release && echo "${ID:-}${VERSION_ID:-}")
  number=${number#debian}
  if [[ -z "${debian_codenames[$number]:-}" ]]; then
    echo "$1: this system is no Debian 12 or 13: use one of them" >&2
    return 1
  fi
  echo "$number"
}

# debian_sources CODENAME: lines for apt, of a Debian of that name, from where this machine has its own packages. Fails where apt knows
# no such place.
debian_sources() {
  local own
  # shellcheck source=/dev/null
  own=$(. /etc/os-release && echo "$VERSION_CODENAME")
  # shellcheck disable=SC2016  # apt's placeholders, not ours
  apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) main' 'Created-By: Packages' 'Origin: Debian' 'Component: main' \
    | sed -n -E "s/ $own((-updates|-security)? main)$/ $1\1/p" | sort -u | grep .
}
