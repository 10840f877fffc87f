#!/usr/bin/env bash
# Builds dist-packages: the binaries for six platforms, man pages, completions, and the .deb and .rpm of two. ARCHS names fewer of the
# latter, and PLATFORMS fewer of the former.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

dist=${DIST:-dist-packages}
version=${VERSION:-$(sed -n 's/^const Version = "\(.*\)"$/\1/p' options.go)}
epoch=$(git log -1 --format=%ct 2>/dev/null || date +%s)
[ -n "$version" ] || { echo "build.sh: options.go names no version" >&2; exit 1; }
mkdir -p "$dist/man" "$dist/completions"

for platform in ${PLATFORMS:-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64}; do
  out="$dist/ebb-${platform/\//-}"
  [ "${platform%/*}" = windows ] && out+=.exe
  CGO_ENABLED=0 GOOS=${platform%/*} GOARCH=${platform#*/} go build -trimpath -ldflags "-s -w" -o "$out" ./cmd/ebb
done

go run ./cmd/ebb man "$dist/man"
for shell in bash zsh fish; do go run ./cmd/ebb completion "$shell" >"$dist/completions/ebb.$shell"; done

for arch in ${ARCHS:-amd64 arm64}; do
  for kind in ${KINDS:-deb rpm}; do
    ARCH=$arch VERSION=$version SOURCE_DATE_EPOCH=$epoch DIST=$dist \
      go tool -modfile=deploy/packages/tools.mod nfpm package -f deploy/packages/nfpm.yaml -p "$kind" -t "$dist/"
  done
done
