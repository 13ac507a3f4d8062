#!/bin/sh
# One page of every infra diff, for a pull request or a scheduled check. It changes nothing.
#
#   PREVIEW_STACKS="staging production" examples/ci/preview.sh
#
# PREVIEW_STACKS   with PREVIEW_BASE it may be empty: all Pulumi.*.yaml here, but the examples
# PREVIEW_LABELS   labels of the pull request, with commas between them
# PREVIEW_BASE     a git ref: only what changed in the plan since then, without any credential
# PREVIEW_REFRESH  "true": let Pulumi look at the cloud first
# PREVIEW_OUT      folder for page.md, comment.md and code (default: preview)
# JOBWARDEN        the command (default: uv run --no-sync jobwarden)
#
# Exit code: 0 when there is a page, whatever it says; its own exit code is in the file `code`.
set -euf

out=${PREVIEW_OUT:-preview}
here() (
  set +f
  for file in Pulumi.*.yaml; do
    case $file in *.example.yaml) continue ;; esac
    [ ! -f "$file" ] || basename "${file#Pulumi.}" .yaml
  done
)
stacks=${PREVIEW_STACKS:-}
[ -n "$stacks" ] || [ -z "${PREVIEW_BASE:-}" ] || stacks=$(here)
: "${stacks:?PREVIEW_STACKS: names of the stacks, with spaces between them}"
mkdir -p "$out"
rm -f "$out/page.md" "$out/comment.md" "$out/code"

set -- --markdown "$out/page.md" --comment "$out/comment.md"
for stack in $stacks; do set -- "$@" -s "$stack"; done
IFS=,
for label in ${PREVIEW_LABELS:-}; do set -- "$@" --label "$label"; done
unset IFS
[ -z "${PREVIEW_BASE:-}" ] || set -- "$@" --base "$PREVIEW_BASE"
[ "${PREVIEW_REFRESH:-}" != true ] || set -- "$@" --refresh

code=0
# shellcheck disable=SC2086 # the command may be several words
${JOBWARDEN:-uv run --no-sync jobwarden} preview "$@" || code=$?
[ -s "$out/page.md" ] || exit "$code"
[ -z "${GITHUB_STEP_SUMMARY:-}" ] || cat "$out/page.md" >>"$GITHUB_STEP_SUMMARY"
echo "$code" >"$out/code"
