#!/bin/sh
# package.sh VERSION COMMIT DIR
# Builds the Debian packages in DIR from a copy of the working tree: all files that git does not ignore, or, without
# git, everything except build output, and the file COMMIT. Needs neither root nor fakeroot.
set -eu
version=$1
commit=$2
dir=$3

changelog=$(dpkg-parsechangelog -S Version)
if [ "$changelog" != "$version" ]; then
	echo "debian/changelog has version $changelog, the Makefile $version: make them agree" >&2
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
cp "$commit" "$tree/commit"

log=$dir/build.log
unset MAKEFLAGS MAKELEVEL MFLAGS # from the make that runs this
export DEB_BUILD_OPTIONS="parallel=$(nproc) ${DEB_BUILD_OPTIONS-}"
if ! (cd "$tree" && dpkg-buildpackage -us -uc) >"$log" 2>&1; then
	tail -n 40 "$log" >&2
	echo "building the packages failed; the whole log is $log" >&2
	exit 1
fi
ls "$dir"/*.deb
