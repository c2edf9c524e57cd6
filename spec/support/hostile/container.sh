#!/bin/sh
# Runs a command in a root of its own, as a container does: a tmpfs with the host's directories in it, except
# /tmp, which is a file system of its own with the options of $TMP_OPTIONS, and $HIDDEN, which is empty.
# $LIBRARY is bound there, too, unless it is empty. $PREPARE is evaluated in the new root before it is entered.
# To be run by `unshare -m`.
#
#   container.sh chroot|pivot ROOT COMMAND...
set -e
kind=$1 root=$2
shift 2
mount --make-rprivate /
mount -t tmpfs -o mode=755 container "$root"
for entry in /*; do
  if [ -L "$entry" ]; then
    cp -P "$entry" "$root$entry"
  elif [ -d "$entry" ] && [ "$entry" != /tmp ]; then
    mkdir "$root$entry"
    mount --rbind "$entry" "$root$entry"
  fi
done
mkdir "$root/tmp"
mount -t tmpfs -o "${TMP_OPTIONS:-mode=1777}" container "$root/tmp"
case "$HIDDEN/" in
  /tmp/*) ;; # the new /tmp is empty
  *)
    mkdir -p "$root$HIDDEN"
    mount -t tmpfs container "$root$HIDDEN"
    ;;
esac
if [ -n "$LIBRARY" ]; then
  mkdir -p "$root$LIBRARY"
  mount --bind "$LIBRARY" "$root$LIBRARY"
fi
cd "$root"
eval "$PREPARE"
if [ "$kind" = chroot ]; then
  exec chroot . "$@"
fi
pivot_root . .
umount -l .
cd /
exec "$@"
