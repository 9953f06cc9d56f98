-- The scoreboard's file. One writer; a row of `result` is what one cell did in one run.
PRAGMA application_id = 0x53424431;  -- 'SBD1'
PRAGMA user_version = 1;
CREATE TABLE IF NOT EXISTS run (
  run INTEGER PRIMARY KEY,
  key TEXT NOT NULL UNIQUE,           -- shards of one run share it
  kind TEXT NOT NULL,                 -- local, ci, seeds, import
  sha TEXT, branch TEXT, dirty INTEGER NOT NULL DEFAULT 0,
  started TEXT, finished TEXT,        -- of the tests, UTC; NULL when nobody wrote it down
  note TEXT NOT NULL DEFAULT '') STRICT;
CREATE TABLE IF NOT EXISTS environment (environment INTEGER PRIMARY KEY, facts TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE IF NOT EXISTS job (                    -- one pytest session, or one log that an imported table links
  job INTEGER PRIMARY KEY,
  run INTEGER NOT NULL REFERENCES run,
  key TEXT NOT NULL,
  environment INTEGER REFERENCES environment,
  url TEXT,                           -- where the log is; NULL when there is none
  planned INTEGER,                    -- tests it set out to run
  complete INTEGER NOT NULL DEFAULT 0,
  exit INTEGER,
  UNIQUE (run, key)) STRICT;
CREATE TABLE IF NOT EXISTS backend (backend INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE IF NOT EXISTS test (
  test INTEGER PRIMARY KEY,
  suite TEXT NOT NULL,                -- its title, or its file
  name TEXT NOT NULL,                 -- with the class, without parameters
  variant TEXT NOT NULL DEFAULT '',   -- the other parameters' id
  file TEXT NOT NULL DEFAULT '',
  UNIQUE (suite, name, variant)) STRICT;
CREATE TABLE IF NOT EXISTS cell (
  cell INTEGER PRIMARY KEY,
  test INTEGER NOT NULL REFERENCES test,
  backend INTEGER NOT NULL REFERENCES backend,
  mode TEXT NOT NULL DEFAULT '',
  node TEXT NOT NULL DEFAULT '',      -- what stands between the brackets of its pytest id
  UNIQUE (test, backend, mode)) STRICT;
CREATE TABLE IF NOT EXISTS detail (                 -- message and traceback, once for all cells that share them
  detail INTEGER PRIMARY KEY, digest TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, message TEXT NOT NULL,
  text BLOB NOT NULL) STRICT;         -- zlib
CREATE TABLE IF NOT EXISTS result (
  run INTEGER NOT NULL, cell INTEGER NOT NULL, job INTEGER NOT NULL,
  state INTEGER NOT NULL,
  duration INTEGER,                   -- tenths of a millisecond
  asserts INTEGER,                    -- NULL: nobody counted
  value_error INTEGER,                -- thousandths of an ulp
  gradient_error INTEGER,
  detail INTEGER,
  PRIMARY KEY (run, cell)) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS retry (                  -- the few that took more than one attempt
  run INTEGER NOT NULL, cell INTEGER NOT NULL, attempts INTEGER NOT NULL,
  PRIMARY KEY (run, cell)) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS plan (                   -- tests set out for and not heard of: what a killed run leaves
  run INTEGER NOT NULL, job INTEGER NOT NULL, test INTEGER NOT NULL, backend INTEGER NOT NULL,
  node TEXT NOT NULL,
  PRIMARY KEY (run, job, test, backend)) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS layout (                 -- the order of rows and columns of an imported table
  run INTEGER NOT NULL, suite TEXT NOT NULL, axis TEXT NOT NULL, position INTEGER NOT NULL,
  name TEXT NOT NULL, PRIMARY KEY (run, suite, axis, position)) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS remark (                 -- what is known of a cell beyond its state: seeds' hollow greens
  suite TEXT NOT NULL, name TEXT NOT NULL, backend TEXT NOT NULL, run INTEGER NOT NULL,
  kind TEXT NOT NULL, text TEXT NOT NULL,
  PRIMARY KEY (run, suite, name, backend, kind)) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS broken (                 -- files that could not be collected
  run INTEGER NOT NULL, file TEXT NOT NULL, detail INTEGER NOT NULL,
  PRIMARY KEY (run, file)) STRICT, WITHOUT ROWID;
