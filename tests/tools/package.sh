#!/bin/sh
# package.sh VERSION DIR
# Builds the Debian packages into DIR, from a copy of the tree there: what git knows or doesn't leave out,
# as it stands; of a tree without git, everything but what was built. Needs neither root nor fakeroot.
set -eu
version=$1
dir=$2

changelog=$(dpkg-parsechangelog -S Version)
if [ "$changelog" != "$version" ]; then
	echo "debian/changelog is of version $changelog, the Makefile of $version: they must agree" >&2
	exit 1
fi
rm -rf "$dir"
tree=$dir/buscapd-$version
mkdir -p "$tree"
if [ -e .git ]; then
	git ls-files -z --cached --others --exclude-standard
else
	find . -type f ! -path './build*' ! -path './demo/*' -print0
fi >"$dir/files"
tar --null --files-from="$dir/files" --ignore-failed-read -cf - 2>/dev/null | tar -C "$tree" -xf -
rm "$dir/files"

log=$dir/build.log
unset MAKEFLAGS MAKELEVEL MFLAGS # of the make that this is run from
export DEB_BUILD_OPTIONS="parallel=$(nproc) ${DEB_BUILD_OPTIONS-}"
if ! (cd "$tree" && dpkg-buildpackage -us -uc) >"$log" 2>&1; then
	tail -n 40 "$log" >&2
	echo "the packages could not be built; all that was said is in $log" >&2
	exit 1
fi
ls "$dir"/*.deb
