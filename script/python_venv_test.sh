#!/bin/bash
# ctest script.python_venv: python_venv of lib.sh with a stand-in for Python that says what it was asked for.
. "$(dirname "$0")/lib.sh"
build_dir=$(mktemp -d)
trap 'rm -rf "$build_dir"' EXIT

cat >"$build_dir/python" <<'FAKE'
#!/bin/bash
if [ "$1" = -VV ]; then echo "Python 3.0"; exit; fi
echo made >>"$CALLS"
sleep 0.3
mkdir -p "${!#}/bin"
printf '#!/bin/bash\nsleep 0.3\nexit "${PIP_CODE:-0}"\n' >"${!#}/bin/pip"
chmod +x "${!#}/bin/pip"
FAKE
chmod +x "$build_dir/python"
export PYTHON=$build_dir/python CALLS=$build_dir/calls
echo numpy >"$build_dir/requirements.txt"

# made WHAT TIMES: fails unless environments were made that often since the last call.
made() {
  local times
  times=$(wc -l <"$CALLS")
  if [ "$times" -ne "$2" ]; then say "$1: made $times times, expected $2"; exit 1; fi
  : >"$CALLS"
}
: >"$CALLS"

(PIP_CODE=1 python_venv "$build_dir/venv" "$build_dir/requirements.txt") 2>/dev/null && { say "a failed installation passed"; exit 1; }
made "a failed installation" 1
running=()
for _ in 1 2 3; do python_venv "$build_dir/venv" "$build_dir/requirements.txt" 2>/dev/null & running+=($!); done
for each in "${running[@]}"; do wait "$each"; done
made "three at once after that" 1
python_venv "$build_dir/venv" "$build_dir/requirements.txt"
made "a second time" 0
echo scipy >>"$build_dir/requirements.txt"
python_venv "$build_dir/venv" "$build_dir/requirements.txt"
made "with other requirements" 1
say "environments are made once"
