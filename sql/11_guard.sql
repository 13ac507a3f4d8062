-- The guard of the jobs table: applied only where `jobs.guard` is on.
--
-- What:  a trigger that refuses any change to the state, error or times of a finished job.
-- Why:   a worker that outlived its rescue must not turn `failed` back into `done`.
-- Who:   fires for every writer of the table; its WHEN is never true on the usual path.

DROP TRIGGER IF EXISTS jobwarden_guard ON {table};
CREATE TRIGGER jobwarden_guard BEFORE UPDATE ON {table} FOR EACH ROW
  WHEN (OLD.{status} IN ({done}, {failed})
        AND (NEW.{status} IS DISTINCT FROM OLD.{status}
             OR NEW.{error} IS DISTINCT FROM OLD.{error}
             OR NEW.{started_at} IS DISTINCT FROM OLD.{started_at}
             OR NEW.{completed_at} IS DISTINCT FROM OLD.{completed_at}))
  EXECUTE FUNCTION jobwarden.guard();
