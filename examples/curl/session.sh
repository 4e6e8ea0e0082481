#!/usr/bin/env bash
# The API with nothing but curl. Run it from the project's folder beside `npm start`:
#   examples/curl/session.sh [http://127.0.0.1:8000]
set -euo pipefail
url=${1:-http://127.0.0.1:8000}
cuda=$url/v2/cudasharedmemory

# The exporter: a process that owns GPU memory. It prints a body that registers it, and holds the memory until its
# standard input closes.
coproc exporter { exec npx cudashm allocate --bytes 4096; }
read -r body <&"${exporter[0]}"
trap 'exec {exporter[1]}>&-; wait "$exporter_PID" || true' EXIT

# Answers with a status other than 200 hold {"error":"..."}: show it, and fail.
call() { curl --silent --show-error --fail-with-body "$@"; }

# A region of that name may be left over from an earlier run; unregistering an unknown one is no error.
call -X POST "$cuda/region/curl_example/unregister"
call -d "$body" "$cuda/region/curl_example/register"
echo "registered: $(call "$cuda/region/curl_example/status")"

# A name is taken until it is unregistered.
call -d "$body" "$cuda/region/curl_example/register" && exit 1
echo

call -X POST "$cuda/region/curl_example/unregister"
echo "all regions: $(call "$cuda/status")"
