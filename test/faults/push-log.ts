import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';

const run = promisify(execFile);
const NONE = '0'.repeat(40);

interface Change {
  readonly ref: string;
  readonly old: string;
  readonly new: string;
}

type Push = readonly Change[];

/** A hook that logs every push that a server carried out. */
export function pushLogHook(file: string): string {
  // One write for each push, so that concurrent pushes do not mix.
  return `#!/bin/sh\ninput=$(cat)\nprintf 'push\\n%s\\n' "$input" >> '${file}'\n`;
}

/** The pushes that a server carried out, from its own log. */
export interface PushHistory {
  /** All refs after the last push. */
  readonly refs: ReadonlyMap<string, string>;
  readonly pushes: number;
  /** In how many pushes each author has new commits. */
  readonly pushesOf: ReadonlyMap<string, number>;
  /** How many new commits each author has in all pushes. */
  readonly commitsOf: ReadonlyMap<string, number>;
}

/**
 * Replays the log on the earlier refs. Pushes that ended together may be logged in another order than they were carried out in;
 * their expected values determine the right one. Throws if no order fits, which would mean that a push was carried out in part.
 */
export async function replayPushes(
  file: string,
  gitDir: string,
  before: ReadonlyMap<string, string>,
): Promise<PushHistory> {
  const open = await readPushes(file);
  const authors = await authorsOf(gitDir, open);
  const refs = new Map(before);
  const seen = new Set<string>();
  const pushesOf = new Map<string, number>();
  const commitsOf = new Map<string, number>();
  const pushes = open.length;
  while (open.length > 0) {
    const next = open.findIndex((push) => push.every(({ ref, old }) => (refs.get(ref) ?? NONE) === old));
    if (next < 0) throw new Error(`no push fits: ${JSON.stringify(open[0])}`);
    const [push = []] = open.splice(next, 1);
    const inPush = new Set<string>();
    for (const { ref, new: value } of push) {
      if (value === NONE) refs.delete(ref);
      else refs.set(ref, value);
      for (const oid of newCommits(value, authors, seen)) {
        const author = authors.get(oid)?.author ?? '';
        inPush.add(author);
        countOne(commitsOf, author);
      }
    }
    for (const author of inPush) countOne(pushesOf, author);
  }
  return { refs, pushes, pushesOf, commitsOf };
}

function countOne(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

async function readPushes(file: string): Promise<Push[]> {
  const text = await readFile(file, 'utf8');
  return text
    .split('push\n')
    .slice(1)
    .map((block) =>
      block
        .trim()
        .split('\n')
        .map((line) => {
          const [old = '', value = '', ref = ''] = line.split(' ');
          return { ref, old, new: value };
        }),
    );
}

interface CommitFacts {
  readonly author: string;
  readonly parents: readonly string[];
}

/** Author and parents of every commit that any push brought. */
async function authorsOf(gitDir: string, pushes: readonly Push[]): Promise<Map<string, CommitFacts>> {
  const tips = new Set(pushes.flatMap((push) => push.map((change) => change.new)).filter((oid) => oid !== NONE));
  const child = spawn('git', ['-C', gitDir, 'log', '--stdin', '--format=%H%x09%P%x09%an'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  child.stdin.end([...tips].join('\n'));
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (piece: string) => {
    text += piece;
  });
  const [code] = (await once(child, 'close')) as [number];
  if (code !== 0) throw new Error(`git log ended with ${code}`);
  const facts = new Map<string, CommitFacts>();
  for (const line of text.trim().split('\n')) {
    const [oid = '', parents = '', author = ''] = line.split('\t');
    facts.set(oid, { author, parents: parents === '' ? [] : parents.split(' ') });
  }
  return facts;
}

/** Commits reachable from one that were not seen before; marks them as seen. */
function newCommits(tip: string, facts: ReadonlyMap<string, CommitFacts>, seen: Set<string>): string[] {
  const found: string[] = [];
  const todo = [tip];
  for (let oid = todo.pop(); oid !== undefined; oid = todo.pop()) {
    const commit = facts.get(oid);
    if (commit === undefined || seen.has(oid)) continue;
    seen.add(oid);
    found.push(oid);
    todo.push(...commit.parents);
  }
  return found;
}

/** All refs of a bare repository. */
export async function refsOf(gitDir: string): Promise<Map<string, string>> {
  const { stdout } = await run('git', ['-C', gitDir, 'for-each-ref', '--format=%(refname) %(objectname)'], {
    maxBuffer: 1 << 28,
  });
  const lines = stdout.split('\n').filter((line) => line !== '');
  return new Map(lines.map((line) => [line.slice(0, line.indexOf(' ')), line.slice(line.indexOf(' ') + 1)]));
}
