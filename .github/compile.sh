#!/bin/sh
# Compiles the library for the Ruby of a container of Docker's ruby image, Debian or Alpine, as it is published.
# To be run as root, in the checkout.
#
#   docker run --rm --volume "$PWD:/memprof" --workdir /memprof ruby:3.4-bookworm sh .github/compile.sh 1.95.0
set -eu
rust=$1

if command -v apk >/dev/null; then
  apk add --no-cache build-base clang-dev curl
  # bindgen loads libclang while it runs, and a program that is linked statically can load nothing.
  export RUSTFLAGS="-C target-feature=-crt-static"
  # musl's loader looks for a library by its name in directories only: it would not find one in memory, from which
  # `memprof` loads its own into the copy of a process that can't see its files.
  task=compile:release
else
  apt-get update -qq
  apt-get install -qq -y --no-install-recommends gcc libc6-dev make curl ca-certificates libclang-dev
  task=compile:shared
fi

curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y --profile minimal --default-toolchain "$rust"
export PATH="$HOME/.cargo/bin:$PATH"
# The checkout belongs to the runner's user.
export CARGO_TARGET_DIR=/tmp/target CI=true
ruby -S rake "$task"
