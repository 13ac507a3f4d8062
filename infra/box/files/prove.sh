#!/bin/sh
# Register a schedule that does nothing, wait until pg_cron has run it, and take it away again. Writes
# down what was proven. Given: VERSION, OWNER, DATA, DATABASE, SQL, PROBE, PROOF, PROOF_FILE and LOG.
# Runs behind common.sh.
lines_before=$(wc -l <"$LOG" 2>/dev/null || echo 0)
talk=$(mktemp)

end() {
  rm -f "$talk"
  echo "SELECT cron.unschedule(j.jobid) FROM cron.job AS j WHERE j.jobname = '$PROBE'" | ask "$DATABASE" >/dev/null 2>&1
}
trap end EXIT

job=$(printf '%s' "$SQL" | ask "$DATABASE" 2>"$talk") || fail "the probe could not be registered: $(cat "$talk")" "deploy again"
ended=$(($(date +%s) + 75))
while [ "$(date +%s)" -lt "$ended" ]; do
  said=$(echo "SELECT d.status || ' ' || COALESCE(d.return_message, '') FROM cron.job_run_details AS d
    WHERE d.jobid = $job AND d.status IN ('succeeded', 'failed') ORDER BY d.runid LIMIT 1" | ask "$DATABASE" 2>/dev/null)
  case $said in
    succeeded*)
      mkdir -p "${PROOF_FILE%/*}"
      printf '%s\n' "$PROOF" | put "$PROOF_FILE" root:root 644 || exit 1
      exit 0
      ;;
    failed*)
      log=$(tail -n "+$((lines_before + 1))" "$LOG" 2>/dev/null | grep -E 'FATAL|DETAIL' | tail -n 3)
      fail "a schedule of jobwarden_runner was started and $said; the server's log: $log" \
        "check pg_hba.conf and pg_ident.conf, then deploy again"
      ;;
  esac
  sleep 0.5
done
fail "no schedule was started within 75 seconds, so nothing would ever fire" \
  "look for \`pg_cron scheduler\` in $LOG; a restart of Postgres brings it back"
