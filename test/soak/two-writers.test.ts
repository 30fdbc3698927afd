import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { pushLogHook, refsOf, replayPushes } from '../faults/push-log.ts';
import { type GitServer, startGitServer } from '../support/git/git-server.ts';
import { type Scratch, scratchRepository } from '../support/scratch-repository.ts';

const SECONDS = process.env.SLUICE_SOAK === 'short' ? 20 : 600;
const run = promisify(execFile);
/** Commits of an operation that makes more than one: a record, and the change of the package. */
const COMMITS: Readonly<Record<string, number>> = { create: 2, edit: 2 };

/** The report of a writer about one of its operations. */
interface Said {
  readonly says: 'begin' | 'done' | 'failed' | 'unknown' | 'idle' | 'end';
  readonly id: string;
  readonly does?: string;
  readonly uid?: string;
  readonly of?: string;
  readonly code?: string;
  readonly message?: string;
  readonly names?: readonly string[];
}

/** A process that works on the remote; after a kill it is restarted on the same data folder. */
class Writer {
  readonly said: Said[] = [];
  readonly errors: string[] = [];
  readonly #arguments: readonly string[];
  readonly #until = Date.now() + SECONDS * 1000;
  readonly #idle = Promise.withResolvers<void>();
  #child: ChildProcess | undefined;
  #mayEnd = false;
  #stopped = false;
  lives = 0;

  constructor(name: string, folder: string, url: string) {
    this.#arguments = [fileURLToPath(new URL('../faults/random-writer.ts', import.meta.url)), name, folder, url];
  }

  /** Resolves when its work is complete. */
  get idle(): Promise<void> {
    return this.#idle.promise;
  }

  async run(): Promise<void> {
    for (let code: number | null = null; code !== 0 && !this.#stopped; ) {
      this.lives += 1;
      const left = Math.max(0, (this.#until - Date.now()) / 1000);
      const child = spawn(process.execPath, [...this.#arguments, `${left}`], { stdio: 'pipe' });
      this.#child = child;
      if (this.#mayEnd) child.stdin.end();
      let errors = '';
      child.stderr.on('data', (piece: Buffer) => {
        errors += piece.toString();
      });
      const lines = createInterface(child.stdout).on('line', (line) => {
        // The last line of one that was killed may be cut.
        if (!line.endsWith('}')) return;
        const output = JSON.parse(line) as Said;
        if (output.says === 'idle') this.#idle.resolve();
        this.said.push(output);
      });
      await Promise.all([once(child, 'close'), once(lines, 'close')]);
      code = child.exitCode;
      if (code !== 0 && child.signalCode !== 'SIGKILL') throw new Error(`a writer ended with ${code}: ${errors}`);
    }
  }

  kill(): void {
    this.#child?.kill('SIGKILL');
  }

  /** Ends it without a restart. */
  stop(): void {
    this.#stopped = true;
    this.kill();
  }

  /** Requests its report of the state. */
  finish(): void {
    this.#mayEnd = true;
    this.#child?.stdin?.end();
  }
}

/** Now and then the server hangs for a moment, returns an error, or closes the connection before or after a push is carried out. */
async function trouble(server: GitServer, writers: readonly Writer[], signal: AbortSignal): Promise<void> {
  const troubles = [
    { delayMs: 200 },
    { refuse: 503 },
    { dropPush: 'before' },
    { dropPush: 'after' },
    { cutAfter: 40 },
    { hang: 'push' },
  ] as const;
  for (let round = 0; !signal.aborted; round++) {
    await delay(500 + Math.random() * 2500);
    Object.assign(server.behaviour, troubles[round % troubles.length]);
    await delay(100 + Math.random() * 400);
    for (const name of ['delayMs', 'refuse', 'dropPush', 'cutAfter', 'hang'] as const) delete server.behaviour[name];
    if (round % 5 === 4) writers[round % 2]?.kill();
  }
}

test(
  'two processes on one remote: the union of the successes reported to each is exactly the state of the repository',
  async () => {
    await using scratch = await scratchRepository();
    const before = await refsOf(scratch.path);
    const log = join(scratch.folder, 'pushes.log');
    const server = await startGitServer({ root: scratch.folder, hooks: { 'post-receive': pushLogHook(log) } });
    const end = new AbortController();
    let writers: Writer[] = [];
    try {
      const url = `${server.url}/packages.git`;
      writers = ['one', 'two'].map((name) => new Writer(name, join(scratch.folder, name), url));
      // Their last operations complete without faults.
      const troubled = trouble(server, writers, AbortSignal.any([end.signal, AbortSignal.timeout(SECONDS * 1000)]));
      const over = Promise.all(writers.map((writer) => writer.run()));
      await Promise.race([over, Promise.all(writers.map((writer) => writer.idle))]);
      end.abort();
      await troubled;
      for (const writer of writers) writer.finish();
      await over;
      await judge(scratch, log, before, writers);
    } finally {
      end.abort();
      for (const writer of writers) writer.stop();
      await server.close();
    }
  },
  (SECONDS + 120) * 1000,
);

async function judge(
  scratch: Scratch,
  log: string,
  before: ReadonlyMap<string, string>,
  writers: readonly Writer[],
): Promise<void> {
  const history = await replayPushes(log, scratch.path, before);
  expect(Object.fromEntries(history.refs)).toEqual(Object.fromEntries(await refsOf(scratch.path)));
  expect(await scratch.git('fsck', '--strict', '--no-dangling')).toBe('');

  const { store } = await scratch.open();
  const rows = [...store.repository('packages').index.all()];
  const truth = rows.map(({ name, uid, revision, refOid }) => `${name} ${uid} ${revision < 0 ? '' : refOid}`).sort();
  for (const { said: output } of writers) expect(output.findLast(({ says }) => says === 'end')?.names).toEqual(truth);

  const output = writers.flatMap((writer) => writer.said);
  const begun = output.filter(({ says }) => says === 'begin');
  const ends = new Map(
    output.filter(({ says }) => ['done', 'failed', 'unknown'].includes(says)).map((line) => [line.id, line]),
  );
  const uids = new Map(rows.map((row) => [row.uid, row]));
  const files = await filesByUid(scratch, rows);
  const counts = { operations: begun.length, done: 0, failed: 0, unknown: 0, killed: 0 };
  const deletions = Map.groupBy(
    begun.filter(({ does }) => does === 'delete'),
    ({ of }) => of,
  );
  const lies: string[] = [];
  const hold = (holds: boolean, what: string) => {
    if (!holds) lies.push(what);
  };
  for (const { id, does, of } of begun) {
    const report = ends.get(id);
    const pushes = history.pushesOf.get(id) ?? 0;
    const what = `${does} ${id} of ${of}, reported ${JSON.stringify(report)}: ${pushes} pushes`;
    counts[report === undefined ? 'killed' : (report.says as 'done')] += 1;
    if (report?.says === 'done') {
      // Removing a draft removes its refs and writes nothing.
      hold(does === 'delete' ? !uids.has(of ?? '') : pushes === 1, what);
      const content = files.get(report.uid ?? '');
      hold(does !== 'edit' || content === undefined || content.has(`done-${id}.txt`), `${what}, its file is gone`);
    } else if (report?.says === 'failed') hold(pushes === 0, what);
    else hold(pushes <= 1, what);
    hold((history.commitsOf.get(id) ?? 0) <= (COMMITS[does ?? ''] ?? 1), `${what}, and done twice in one`);
  }
  // The deletion of a draft leaves no author: if the draft is gone, no writer may have received a failure.
  for (const [of = '', tries] of deletions)
    hold(
      uids.has(of) || tries.some(({ id }) => ends.get(id)?.says !== 'failed'),
      `${of} is gone, and no writer deleted it`,
    );
  const codes = new Map<string, number>();
  for (const { says, code = '' } of output) if (says === 'failed') codes.set(code, (codes.get(code) ?? 0) + 1);
  const lives = writers.map((writer) => writer.lives).join(' and ');
  console.log(
    `${SECONDS} s: ${JSON.stringify(counts)}, failed: ${JSON.stringify(Object.fromEntries(codes))}, ${history.pushes} pushes, ${lives} lives, ${rows.length} revisions at the end`,
  );
  expect(lies).toEqual([]);
  expect(counts.done).toBeGreaterThan(0);
}

/** Names of the files of each revision that has a branch or tag of its own. */
async function filesByUid(
  scratch: Scratch,
  rows: readonly { readonly uid: string; readonly commit: string; readonly path: string; readonly revision: number }[],
): Promise<Map<string, Set<string>>> {
  const files = new Map<string, Set<string>>();
  for (const { uid, commit, path, revision } of rows) {
    if (revision < 0) continue;
    const { stdout } = await run('git', ['-C', scratch.path, 'ls-tree', '--name-only', `${commit}:${path}`]);
    files.set(uid, new Set(stdout.split('\n')));
  }
  return files;
}
