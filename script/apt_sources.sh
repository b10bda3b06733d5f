# Where this machine's apt takes its packages from; sourced by in-debian. Reads both of apt's notations, one line a source that
# has component main: URI SUITE KEYRING, "-" for no keyring of its own.
classic_sources() {
  awk '$1 == "deb" {
    keyring = "-"; i = 2
    if ($i ~ /^\[/) { do { if (match($i, /signed-by=[^] ]+/)) keyring = substr($i, RSTART + 10, RLENGTH - 10) } while ($(i++) !~ /\]$/) }
    for (j = i + 2; j <= NF; j++) if ($j == "main") print $i, $(i + 1), keyring
  }' "$@"
}
deb822_sources() {
  awk -v RS= -F '\n' '{
    types = uris = suites = components = ""; keyring = "-"; enabled = "yes"
    for (i = 1; i <= NF; i++) {
      if ($i ~ /^#/) continue
      if ($i ~ /^[A-Za-z-]+:/) { key = tolower($i); sub(/:.*/, "", key); value = $i; sub(/^[^:]*:[ \t]*/, "", value) } else value = $i
      if (key == "types") types = types " " value
      if (key == "uris") uris = uris " " value
      if (key == "suites") suites = suites " " value
      if (key == "components") components = components " " value
      if (key == "enabled") enabled = value
      if (key == "signed-by" && value ~ /^\//) keyring = value
    }
    if ((types " ") !~ / deb / || (components " ") !~ / main / || enabled == "no") next
    u = split(uris, uri, " "); s = split(suites, suite, " ")
    for (a = 1; a <= u; a++) for (b = 1; b <= s; b++) print uri[a], suite[b], keyring
  }' "$@"
}
# apt_sources FOLDER: the sources in a folder like /etc/apt.
apt_sources() {
  local file
  for file in "$1"/sources.list "$1"/sources.list.d/*; do
    case $file in
      *.list) if [ -f "$file" ]; then classic_sources "$file"; fi ;;
      *.sources) if [ -f "$file" ]; then deb822_sources "$file"; fi ;;
    esac
  done
}

# source_of FOLDER SUITE...: the first line with one of the suites, a URI that ends in /debian or /debian-security before others.
source_of() {
  local folder=$1 suite lines
  shift
  for suite in "$@"; do
    lines=$(apt_sources "$folder" | awk -v suite="$suite" '$2 == suite')
    if [ -n "$lines" ]; then
      { grep -E '^[^ ]*/debian(-security)?/? ' <<<"$lines" || echo "$lines"; } | head -n 1
      return
    fi
  done
}
