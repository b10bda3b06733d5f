#!/bin/bash
# ctest script.check: script/check in a small copy of the project, with a kvproof that says and exits what each case wants.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
area=$(mktemp -d)
trap 'rm -rf "$area"' EXIT
mkdir -p "$area/script" "$area/golden/deep"
cp "$here/check" "$here/lib.sh" "$area/script/"
touch "$area/golden/one.golden.safetensors" "$area/golden/deep/two.golden.safetensors"

# The stand-in: what it prints and its exit code come from the environment, per backend.
cat >"$area/kvproof" <<'FAKE'
#!/bin/bash
echo "called: $*"
case "$*" in
  "model make"*) shift; while [ "$1" != --out ]; do shift; done; mkdir -p "$2"; echo weights >"$2/model.safetensors"; exit 0 ;;
  check*) echo "$LAWS"; exit "${LAWS_CODE:-0}" ;;
  replay*) echo "$REPLAY"; exit "${REPLAY_CODE:-0}" ;;
  *"--model "*) echo "$REAL"; exit "${REAL_CODE:-0}" ;;
  *engine) echo "$ENGINE"; exit "${ENGINE_CODE:-0}" ;;
  *oracle) echo "$ORACLE"; exit "${ORACLE_CODE:-0}" ;;
esac
FAKE
cat >"$area/script/golden" <<'FAKE'
#!/bin/bash
while [ "$1" != --out ]; do shift; done
mkdir -p "$2" && touch "$2/dynamic.golden.safetensors"
exit "${TRANSFORMERS_CODE:-0}"
FAKE
chmod +x "$area/kvproof" "$area/script/golden"

export ENGINE="PASS engine: 2 files, 812 rows compared, worst 0.262 of the bound (two step 3 row 0)"
export ORACLE="PASS oracle: 2 files, 812 rows compared, worst 0.001 of the bound (one step 1 row 0)"
export LAWS="PASS engine: 45 laws, 4500 traces, 116000 distinct rows compared, worst 0.056 of the bound; seed 1"
export REAL="PASS engine: 3 files, 26 rows compared, worst 0.043 of the bound (step 2)"
export REPLAY="PASS engine: 1 file, 12 rows compared, worst 0.031 of the bound (step 1)"
failures=0
# expect NAME CODE LAST-LINE-PATTERN [SETTING...] [-- ARGUMENTS]
expect() {
  local name=$1 want=$2 pattern=$3 got=0 settings=()
  shift 3
  while [ $# -gt 0 ] && [ "$1" != -- ]; do settings+=("$1"); shift; done
  [ $# -eq 0 ] || shift
  env "${settings[@]}" "$area/script/check" --binary "$area/kvproof" "$@" >"$area/out" 2>"$area/err" || got=$?
  if [ "$got" -ne "$want" ] || ! grep -qE "$pattern" <<<"$(tail -n 1 "$area/out")"; then
    echo "$name: exit $got, expected $want; last line: $(tail -n 1 "$area/out"), expected to match: $pattern"
    cat "$area/err"
    failures=$((failures + 1))
  fi
}

expect both_pass 0 '^kvproof check: PASS - 2 golden files: engine 812 rows \(worst 0.262 of the bound\), oracle 812 rows \(worst 0.001'
expect a_violation_is_1 1 '^kvproof check: FAIL' ENGINE_CODE=1 ENGINE="FAIL engine: 1 of 2 files, 812 rows compared, worst 7.1 of the bound (x)"
expect corrupt_data_outweighs_a_violation 3 'FAIL' ENGINE_CODE=1 ORACLE_CODE=3 ORACLE="FAIL oracle"
expect a_violation_outweighs_no_verdict 1 'FAIL' ENGINE_CODE=2 ENGINE= ORACLE_CODE=1
expect our_fault_outweighs_all 70 'FAIL' ENGINE_CODE=3 ORACLE_CODE=70
expect no_verdict_is_2 2 'NO VERDICT' ENGINE_CODE=2 ENGINE="kvproof: backend did not start"
expect a_signal_is_our_fault 70 'FAIL' ENGINE_CODE=139 ENGINE=
expect a_rejected_call_is_our_fault 70 'FAIL' ORACLE_CODE=64
expect passing_without_comparing_is_no_verdict 2 'NO VERDICT' ENGINE="PASS engine: 2 files, 0 rows compared, worst none of the bound"
expect passing_in_silence_is_our_fault 70 'FAIL' ENGINE=
expect a_file_left_out_is_our_fault 70 'FAIL' ORACLE="PASS oracle: 1 files, 400 rows compared, worst 0.001 of the bound"
expect saying_fail_with_code_0_is_our_fault 70 'FAIL' ENGINE="FAIL engine: 2 files, 812 rows compared, worst 9 of the bound"
expect the_laws_count 0 "laws: 4500 traces, 116000 rows .worst 0.056 of the bound.$|laws: 4500 traces, 116000 rows .worst 0.056 of the bound. "
expect a_broken_law_is_1 1 FAIL LAWS_CODE=1 LAWS="FAIL engine: 45 laws, 4500 traces, 116000 distinct rows compared, worst 8 of the bound"
expect laws_without_verdict_are_2 2 "NO VERDICT" LAWS_CODE=2 LAWS=
expect real_adds_the_true_shape 0 'GPT-2 124M 12 rows \(worst 0.031 of the bound; against Transformers 26 rows, worst 0.043; ' -- --real
expect real_can_differ_from_transformers 1 'FAIL' REAL_CODE=1 REAL="FAIL engine: 1 of 3 files, 26 rows compared, worst 5 of the bound" -- --real
expect real_without_transformers_is_no_verdict 2 '' TRANSFORMERS_CODE=1 -- --real
expect real_can_fail 1 'FAIL' REPLAY_CODE=1 REPLAY="FAIL engine: 12 rows compared, worst 3 of the bound" -- --real
expect an_unknown_option_is_usage 64 '' -- --reel
rm -r "$area/golden"
expect no_golden_files_is_no_verdict 2 ''
mv "$area/kvproof" "$area/gone"
expect no_binary_is_no_verdict 2 ''

[ $failures -eq 0 ] && echo "script/check: 22 cases as expected"
exit $((failures > 0))
