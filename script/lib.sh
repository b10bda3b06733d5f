# Shared by the scripts beside it; sourced, never run. Sets root, log and the helpers below.
# Quiet on purpose: what a tool prints goes to a file under build/, a terminal sees one moving line, a failure shows the file's tail.
set -euo pipefail
export LC_ALL=C.UTF-8
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build_dir=$root/build
started=$SECONDS
self=$(basename "$0")

# Exit codes of docs/reports.md.
exit_violation=1 exit_no_verdict=2 exit_bad_data=3 exit_usage=64 exit_our_fault=70

say() { printf 'kvproof: %s\n' "$*" >&2; }
die() { local code=$1; shift; say "$*"; exit "$code"; }
elapsed() { local s=$((SECONDS - started)); printf '%dm%02ds' $((s / 60)) $((s % 60)); }

# The comment block at the top of a script is its help text.
show_help() { awk 'NR == 1 { next } !/^#/ { exit } { sub(/^# ?/, ""); print }' "$0"; }
usage_error() { die $exit_usage "$self: $1 (see script/$self --help)"; }

terminal() { [ -t 2 ] && [ "${TERM:-dumb}" != dumb ]; }
clear_line() { if terminal; then printf '\r\033[K' >&2; fi; }

# follow_log TEXT FILE: repeats the last line of FILE behind TEXT and the seconds gone by, until it is killed.
follow_log() {
  local from=$SECONDS
  while kill -0 $$ 2>/dev/null && sleep 0.5; do  # no longer than the script itself
    printf '\r\033[Kkvproof: %s, %ds  %s' "$1" $((SECONDS - from)) "$(tail -n 1 "$2" 2>/dev/null | tr -d '\r' | cut -c 1-60)" >&2
  done
}

# run_logged TEXT FILE COMMAND...: COMMAND with all its output in FILE; the code is COMMAND's. The follower is what runs in
# the background, so that Ctrl-C reaches COMMAND.
follower=
stop_follower() { if [ -n "$follower" ]; then kill "$follower" 2>/dev/null || true; wait "$follower" 2>/dev/null || true; follower=; clear_line; fi; }
trap stop_follower EXIT
run_logged() {
  local text=$1 file=$2 code=0
  shift 2
  mkdir -p "$(dirname "$file")"
  : >"$file"
  if terminal; then follow_log "$text" "$file" & follower=$!; fi
  "$@" >>"$file" 2>&1 </dev/null || code=$?
  stop_follower
  return "$code"
}

# run_or_die TEXT FILE COMMAND...: as run_logged; on failure the end of FILE, its path, and exit 2: nothing was judged.
run_or_die() {
  run_logged "$@" && return
  tail -n 30 "$2" >&2
  die $exit_no_verdict "$1 failed; all of its output is in ${2#"$root"/}"
}

# in_turn LOCK COMMAND...: one command at a time with that lock; another script that wants it says so and waits. What COMMAND starts
# does not hold the lock: it ends with this script.
in_turn() {
  local lock=$1
  shift
  mkdir -p "$(dirname "$lock")"
  {
    flock -n 9 || { say "waiting for another script: ${lock#"$root"/}" && flock 9; } || die $exit_no_verdict "cannot lock $lock"
    "$@" 9>&-
  } 9>"$lock"
}

configure() { in_turn "$build_dir/$1.lock" run_or_die "configuring $1" "$build_dir/$1.configure.log" cmake --preset "$1" -S "$root"; }

# compile PRESET [TARGET...]: builds with as many jobs as there are cores, or CMAKE_BUILD_PARALLEL_LEVEL.
compile() {
  local preset=$1
  shift
  local targets=()
  if [ $# -gt 0 ]; then targets=(--target "$@"); fi
  in_turn "$build_dir/$preset.lock" run_or_die "building $preset" "$build_dir/$preset.build.log" \
    cmake --build "$build_dir/$preset" --parallel "${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}" "${targets[@]}"
}

# python_venv FOLDER REQUIREMENTS [PROJECT...]: a virtual environment of ${PYTHON:-python3} with these requirements, torch first
# and alone (what comes after then finds it in place, whichever build of it this machine has), and with the projects, folders
# with a pyproject.toml, installed as they lie there. A second call with the same of all that does nothing; one at the same time
# waits for the first.
python_venv() { in_turn "$1.lock" make_python_venv "$@"; }

make_python_venv() {
  local venv=$1 requirements=$2 python=${PYTHON:-python3} wanted project torch
  shift 2
  wanted=$("$python" -VV && cat "$requirements" "${@/%//pyproject.toml}") || die $exit_no_verdict "no $python, or no $requirements"
  if [ "$(cat "$venv/installed.txt" 2>/dev/null)" = "$wanted" ]; then return; fi
  run_or_die "making $(basename "$venv")" "$venv.log" "$python" -m venv --clear "$venv"
  torch=$(grep '^torch==' "$requirements" || true)
  if [ -n "$torch" ]; then run_or_die "installing $torch" "$venv.log" "$venv/bin/pip" install --disable-pip-version-check "$torch"; fi
  run_or_die "installing ${requirements#"$root"/}" "$venv.log" "$venv/bin/pip" install --disable-pip-version-check -r "$requirements"
  for project in "$@"; do
    run_or_die "installing ${project#"$root"/}" "$venv.log" \
      "$venv/bin/pip" install --disable-pip-version-check --no-deps --no-build-isolation -e "$project"
  done
  printf '%s\n' "$wanted" >"$venv/installed.txt"
}
