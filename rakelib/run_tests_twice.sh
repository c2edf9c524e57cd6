#!/bin/sh
# Runs the tests of a crate, as cargo's runner (rust.rake). If one fails, they all run once more, one at a time; if they
# pass then, they are listed in the file FLAKY and do not fail the task, like a failed example (spec.rake).
"$@" && exit
printf '\n==> once more, one test at a time: %s\n' "$1"
RUST_TEST_THREADS=1 "$@" || exit
tests="${1##*/}"
mkdir -p "$(dirname "$FLAKY")" && printf 'Rust: %s, %s\n' "$CARGO_PKG_NAME" "${tests%-*}" >>"$FLAKY"
