-- views.sql - what a run took, ready to select from. The views are temporary: the file stays as hplan wrote it.
--   sqlite3 -readonly -init views.sql run.db

-- The newest run on devices, and the simulated one beside it.
CREATE TEMP VIEW newest AS
  SELECT kind, max(id) AS run FROM run GROUP BY kind;

-- What each rank did, task by task: kind sim (predicted) or exec (measured), seconds from the run's first span.
CREATE TEMP VIEW spans AS
  SELECT n.kind, s.rank, s.iter AS step, t.phase, t.op, t.label, t.layer, t.micro, t.bytes, s.role, s.task,
         (s.t0_ns - (SELECT min(t0_ns) FROM span WHERE run = n.run)) * 1e-9 AS start_s,
         (s.t1_ns - s.t0_ns) * 1e-9 AS seconds
  FROM newest n JOIN span s ON s.run = n.run
       JOIN task t ON t.run = s.run AND t.role = s.role AND t.task = s.task
  WHERE s.iter >= 0;

-- Time of each rank in each phase of each step.
CREATE TEMP VIEW phases AS
  SELECT kind, rank, step, phase, sum(seconds) AS seconds FROM spans GROUP BY kind, rank, step, phase;

-- Each task: the median of its spans as predicted and as measured; error is relative to what was measured.
CREATE TEMP VIEW tasks AS
  SELECT role, task, phase, op, label, layer, micro,
         avg(CASE kind WHEN 'sim' THEN seconds END) AS predicted_s,
         avg(CASE kind WHEN 'exec' THEN seconds END) AS measured_s,
         avg(CASE kind WHEN 'sim' THEN seconds END) / avg(CASE kind WHEN 'exec' THEN seconds END) - 1 AS error
  FROM (SELECT *, row_number() OVER (PARTITION BY kind, role, task ORDER BY seconds) AS place,
               count(*) OVER (PARTITION BY kind, role, task) AS n
        FROM spans)
  WHERE place IN ((n + 1) / 2, n / 2 + 1)
  GROUP BY role, task;

-- Steps on devices: the slowest rank's time, the loss, and images per second.
CREATE TEMP VIEW steps AS
  SELECT step, step_s, loss, (SELECT value FROM meta WHERE key = 'batch') / step_s AS images_per_s
  FROM (SELECT c.iter AS step, max(CASE name WHEN 'step_s' THEN value END) AS step_s,
               max(CASE name WHEN 'loss' THEN value END) AS loss
        FROM newest n JOIN counter c ON c.run = n.run
        WHERE n.kind = 'exec' AND c.iter >= 0 AND name IN ('step_s', 'loss') GROUP BY c.iter)
  WHERE step_s IS NOT NULL;

-- Memory of each rank, in bytes: as planned, as observed, and what the process had.
CREATE TEMP VIEW memory AS
  SELECT c.rank, max(CASE name WHEN 'planned_bytes' THEN value END) AS planned_bytes,
         max(CASE name WHEN 'peak_bytes' THEN value END) AS peak_bytes,
         max(CASE name WHEN 'rss_bytes' THEN value END) AS rss_bytes
  FROM newest n JOIN counter c ON c.run = n.run
  WHERE name IN ('planned_bytes', 'peak_bytes', 'rss_bytes') GROUP BY c.rank;
