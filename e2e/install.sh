#!/usr/bin/env bash
# Brings the packages of the client projects, and of the examples, beside their sources, once; a second run is quick. A runtime that this
# machine lacks is named and left out: the tests then skip that client, or fail under CI.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

trap "rm -f java/.sources" EXIT

missing() { echo "e2e: $1 is not on this machine: $2 will not be tried"; }

# stamp PROJECT FILE COMMAND…: runs the command unless it has run for this very version of the file.
stamp() {
  local mark="$1/$2" file="$1/$3" sum
  shift 3
  sum=$(cksum <"$file")
  [ -f "$mark" ] && [ "$(cat "$mark")" = "$sum" ] && return
  "$@"
  echo "$sum" >"$mark"
}

console_packages() { (cd console && npm ci --ignore-scripts --loglevel=error --no-progress); }

# The console's own packages are there to see whether its bundle is what its sources give; esbuild's program comes in a package of its
# own, so that no script has to run.
bundle_packages() { (cd ../console && npm ci --ignore-scripts --loglevel=error --no-progress); }

# On a fresh machine of continuous integration the browser is brought too. Elsewhere nothing is installed that reaches beyond this folder.
browser() {
  command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null && return
  if [ "${CI:-}" = true ] && command -v apt-get >/dev/null; then
    local root=""
    [ "$(id -u)" = 0 ] || root="sudo -n"
    $root apt-get update -qq && DEBIAN_FRONTEND=noninteractive $root apt-get install -y -qq --no-install-recommends chromium >/dev/null
  fi
}

node_packages() { (cd node && npm ci --ignore-scripts --loglevel=error --no-progress); }

example_packages() { (cd ../examples && npm ci --ignore-scripts --loglevel=error --no-progress); }

python_packages() {
  python3 -m venv python/.venv
  python/.venv/bin/pip install --quiet --disable-pip-version-check --no-input -r python/requirements.txt
}

# The jars that an installation of any day gets are those of java/jars.sha256, as npm's are those of its lock file.
java_packages() {
  (
    cd java
    mvn --quiet --batch-mode --strict-checksums -Dstyle.color=never clean compile dependency:copy-dependencies
    jars >debezium/target/jars.sha256
    diff jars.sha256 debezium/target/jars.sha256 >&2 || {
      echo "e2e: these are not the jars of e2e/java/jars.sha256; if they are meant to be, e2e/java/debezium/target/jars.sha256 is its new content" >&2
      exit 1
    }
  )
}

jars() { export LC_ALL=C; if command -v sha256sum >/dev/null; then sha256sum -- */target/dependency/*.jar; else shasum -a 256 -- */target/dependency/*.jar; fi; }

# Debian's Prometheus, without starting it as a service. It is brought where the machine is there for tests alone.
prometheus_packages() {
  printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d && chmod +x /usr/sbin/policy-rc.d
  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends prometheus >/dev/null
  rm -f /usr/sbin/policy-rc.d
}

if ! command -v promtool >/dev/null && [ "${CI:-}" = true ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  prometheus_packages
fi
command -v promtool >/dev/null || missing prometheus "the alert rules and the dashboard"

if command -v npm >/dev/null && command -v node >/dev/null; then
  stamp node node_modules/.ready package-lock.json node_packages
  stamp ../examples node_modules/.ready package-lock.json example_packages
  stamp console node_modules/.ready package-lock.json console_packages
  stamp ../console node_modules/.ready package-lock.json bundle_packages
  browser || missing Chromium "the console in a browser"
else
  missing node "mongosh, the Node.js driver, mongoose, agenda and the console"
fi
if command -v python3 >/dev/null; then
  stamp python .venv/.ready requirements.txt python_packages
else
  missing python3 pymongo
fi
if command -v mvn >/dev/null && command -v javac >/dev/null; then
  # The sources are compiled here too, so a change of any of them counts.
  find java -name target -prune -o -type f ! -name '.*' -print0 | LC_ALL=C sort -z | xargs -0 cat >java/.sources
  stamp java debezium/target/.ready .sources java_packages
else
  missing "a JDK with Maven" "the Java driver, Spring Data and Debezium"
fi
