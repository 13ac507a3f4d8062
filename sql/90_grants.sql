-- Grants: who may do what. Everything else is refused.
--
-- What:  rights of the runner, the workers, the readers and the sender of alerts.
-- Why:   a schedule runs with the rights of its role. The runner's are two procedures; it cannot
--        read, change or delete a single job in any other way.
-- Who:   applied last, after all objects are there.

-- First nobody may do anything: what somebody granted by hand to a role of ours goes.
REVOKE ALL ON ALL TABLES IN SCHEMA jobwarden
FROM PUBLIC, jobwarden_runner, jobwarden_worker, jobwarden_readonly, jobwarden_alerts;
REVOKE ALL ON ALL ROUTINES IN SCHEMA jobwarden
FROM PUBLIC, jobwarden_runner, jobwarden_worker, jobwarden_readonly, jobwarden_alerts;

-- Our functions act on jobs through the view.
GRANT SELECT, UPDATE, DELETE ON jobwarden.job TO jobwarden_owner;

GRANT USAGE ON SCHEMA jobwarden TO jobwarden_runner, jobwarden_readonly, jobwarden_alerts;
GRANT EXECUTE ON PROCEDURE jobwarden.sweep(int) TO jobwarden_runner;
GRANT EXECUTE ON PROCEDURE jobwarden.cleanup(int, interval) TO jobwarden_runner;
GRANT EXECUTE ON FUNCTION
  jobwarden.now(),
  jobwarden.begin_run(text, timestamptz),
  jobwarden.skip_run(text, timestamptz),
  jobwarden.log_run(bigint, text, bigint, bigint, bigint, text, text),
  jobwarden.start_clocks(),
  jobwarden.sweep_batch(timestamptz, int, timestamptz, uuid),
  jobwarden.cleanup_batch(timestamptz, int, timestamptz, uuid),
  jobwarden.prune(timestamptz),
  jobwarden.prune_log(timestamptz),
  jobwarden.scheduled()
TO jobwarden_runner;

GRANT SELECT ON
  jobwarden.policy, jobwarden.run, jobwarden.event, jobwarden.outage, jobwarden.schedule,
  jobwarden.source, jobwarden.object, jobwarden.alert
TO jobwarden_readonly;
GRANT EXECUTE ON FUNCTION
  jobwarden.now(),
  jobwarden.human(interval),
  jobwarden.ago(interval),
  jobwarden.policy_of(text),
  jobwarden.running_actions(),
  jobwarden.finished_actions(),
  jobwarden.stuck(timestamptz, int, timestamptz, uuid),
  jobwarden.expired(timestamptz, int, timestamptz, uuid),
  jobwarden.running(),
  jobwarden.cron_jobs(),
  jobwarden.cron_runs(),
  jobwarden.launcher(),
  jobwarden.scheduled(),
  jobwarden.health(),
  jobwarden.figures(),
  jobwarden.report(int),
  jobwarden.would_take(jsonb, int)
TO jobwarden_readonly;
GRANT EXECUTE ON FUNCTION
  jobwarden.begin_alerts(),
  jobwarden.new_events(int),
  jobwarden.file_events(text, text, bigint[]),
  jobwarden.claim_alert(interval),
  jobwarden.settle_alert(uuid, int, text, text, interval),
  jobwarden.next_alert()
TO jobwarden_alerts;
-- health() and scheduled() run as the owner, who asks the runner's two functions.
GRANT EXECUTE ON FUNCTION jobwarden.cron_jobs(), jobwarden.cron_runs() TO jobwarden_owner;
