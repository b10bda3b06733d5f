#!/bin/bash
# ctest script.in_debian: the package source that script/in-debian finds in apt folders of both notations.
set -euo pipefail
. "$(cd "$(dirname "$0")" && pwd)/apt_sources.sh"
area=$(mktemp -d)
trap 'rm -rf "$area"' EXIT
mkdir -p "$area"/{classic,deb822,both,none}/sources.list.d

cat >"$area/classic/sources.list" <<'LIST'
# deb http://old.example/debian bookworm main
deb-src http://mirror.example/debian bookworm main
deb http://mirror.example/debian bookworm main contrib
deb [arch=amd64 signed-by=/usr/share/keyrings/own.gpg] https://security.example/debian-security bookworm-security main
LIST
cat >"$area/deb822/sources.list.d/debian.sources" <<'SOURCES'
Types: deb deb-src
# a comment inside
URIs: http://mirror.example/debian/
Suites: trixie trixie-updates
Components: main
 contrib
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Enabled: no
Types: deb
URIs: http://off.example/debian
Suites: trixie-security
Components: main

Types: deb
URIs: http://security.example/debian-security
Suites: trixie-security
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 mDMEXXXX: not a field
 -----END PGP PUBLIC KEY BLOCK-----
SOURCES
cat >"$area/both/sources.list.d/a-vendor.list" <<'LIST'
deb https://vendor.example/apt bookworm main
deb https://vendor.example/tool tool-bookworm main
LIST
cp "$area/classic/sources.list" "$area/both/sources.list.d/debian.list"
echo "deb http://off.example/debian bookworm main" >"$area/none/sources.list.d/debian.list.disabled"

failures=0
expect() {
  local want=$1 got
  shift
  got=$(source_of "$@")
  if [ "$got" != "$want" ]; then echo "source_of $*: got '$got', expected '$want'"; failures=$((failures + 1)); fi
}
expect "http://mirror.example/debian bookworm -" "$area/classic" bookworm stable
expect "https://security.example/debian-security bookworm-security /usr/share/keyrings/own.gpg" "$area/classic" bookworm-security
expect "http://mirror.example/debian/ trixie /usr/share/keyrings/debian-archive-keyring.gpg" "$area/deb822" trixie
expect "http://security.example/debian-security trixie-security -" "$area/deb822" trixie-security
expect "http://mirror.example/debian bookworm -" "$area/both" bookworm
expect "http://mirror.example/debian bookworm -" "$area/classic" trixie bookworm
expect "" "$area/none" bookworm stable
expect "" "$area/classic" sid

[ $failures -eq 0 ] && echo "in-debian: 8 package sources as expected"
exit $((failures > 0))
