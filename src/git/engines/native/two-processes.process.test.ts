import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { fsck, git, initBare, refsOf, temporaryFolder } from '../../../../test/support/git/git-cli.ts';
import { processesWith } from '../../../../test/support/git/processes.ts';
import { RefConflictError } from '../../errors.ts';
import { commitOf } from '../../git-repository.conformance.ts';
import { EMPTY_TREE, type GitRepository, type RefUpdate } from '../../git-repository.ts';
import { openRepository } from '../../open/open-repository.ts';

/** From how many updates on refs are packed: never, always. */
const [GIT, PACKED] = [1_000_000, 1];
const WRITER = new URL('../../../../test/support/git/counter-writer.ts', import.meta.url).pathname;

describe('several processes on one repository', () => {
  let folder: ReturnType<typeof temporaryFolder>;
  let path: string;

  beforeEach(async () => {
    folder = temporaryFolder();
    path = initBare(`${folder.path}/repository.git`);
    const repository = await openRepository(path);
    const tree = await repository.editTree(undefined, new Map([['start', { data: Buffer.from('x') }]]));
    const first = await repository.writeCommit(commitOf(tree));
    await repository.transaction([{ type: 'create', ref: 'refs/heads/main', new: first }]);
    await repository.close();
  });

  afterEach(() => folder.remove());

  function startWriter(
    label: string,
    count: number,
    packRefsFrom: number,
  ): { child: ChildProcess; acknowledged: () => string[] } {
    const child = spawn(
      process.execPath,
      [WRITER, path, 'refs/heads/main', String(count), label, String(packRefsFrom)],
      {
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    );
    let output = '';
    child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
      output += chunk;
    });
    return { child, acknowledged: () => output.split('\n').slice(0, -1) };
  }

  test.each([
    ['git', GIT, GIT],
    ['git and a new packed-refs', GIT, PACKED],
    ['a new packed-refs', PACKED, PACKED],
  ])('two that race on one ref, by %s, lose nothing', async (_how, first, second) => {
    const writers = [startWriter('one', 60, first), startWriter('two', 60, second)];
    await Promise.all(writers.map(({ child }) => once(child, 'close')));
    const history = new Set(git(path, ['rev-list', 'refs/heads/main']).split('\n'));
    expect(history.size).toBe(121);
    for (const { acknowledged } of writers) {
      expect(acknowledged()).toHaveLength(60);
      for (const commit of acknowledged()) expect(history).toContain(commit);
    }
    expect(git(path, ['ls-tree', '-r', '--name-only', 'refs/heads/main']).split('\n')).toHaveLength(121);
    expect(refsOf(path).size).toBe(121);
    fsck(path);
  });

  test.each([
    ['git', GIT],
    ['a new packed-refs', PACKED],
  ])(
    'killed at any moment, a writer by %s leaves a sound repository with all it acknowledged',

    async (_how, packRefsFrom) => {
      for (let round = 0; round < 5; round += 1) {
        const { child, acknowledged } = startWriter(`round${round}`, 10_000, packRefsFrom);
        while (acknowledged().length === 0) await delay(5);
        await delay(round * 7 + Math.random() * 20);
        child.kill('SIGKILL');
        await once(child, 'close');
        // The writer's own git processes notice that it is gone and end what they were doing.
        while (processesWith(path).length > 0) await delay(5);
        fsck(path);
        const history = new Set(git(path, ['rev-list', 'refs/heads/main']).split('\n'));
        const tags = [...refsOf(path)].filter(([name]) => name.startsWith(`refs/tags/round${round}/`));
        for (const commit of acknowledged()) expect(history).toContain(commit);
        // At most the one that was under way is there without having been acknowledged, and then as a whole.
        expect(tags.length - acknowledged().length).toBeLessThanOrEqual(1);
        for (const [, commit] of tags) expect(history).toContain(commit);
        expect(git(path, ['rev-list', '--count', `--grep=round${round}`, 'refs/heads/main'])).toBe(String(tags.length));
      }
      // Locks that were left behind are gone by then, or taken away when they are met for the second time.
      const repository = await openRepository(path, { timeouts: { staleLock: 0 } });
      const main = (await repository.resolveRef('refs/heads/main')) ?? '';
      const next = await repository.writeCommit(commitOf(EMPTY_TREE, [main]));
      await patient(repository, [{ type: 'update', ref: 'refs/heads/main', old: main, new: next }]);
      await repository.close();
    },
  );

  test('refs that are packed here, while git packs and changes refs too, are never lost', async () => {
    const repository = await openRepository(path, { packRefsFrom: 1 });
    const main = (await repository.resolveRef('refs/heads/main')) ?? '';
    const { tree } = await repository.readCommit(main);
    const other = await repository.writeCommit(commitOf(tree, [main]));
    await repository.transaction([]);
    const rival = spawn('sh', ['-c', RIVAL, 'rival', path, main, other], { stdio: ['ignore', 'pipe', 'inherit'] });
    // It ends by itself where the test gets that far.
    onTestFinished(() => void rival.kill('SIGKILL'));
    const ended = once(rival, 'close');
    let rounds = '';
    rival.stdout.setEncoding('latin1').on('data', (text: string) => {
      rounds += text;
    });
    let value = main;
    const moved = ['a/b', 'a/c', 'd'].map((name) => `refs/heads/${name}`);
    await patient(
      repository,
      moved.map((ref) => ({ type: 'create', ref, new: main })),
    );
    for (let round = 0; round < 40 || rounds.length < 10; round += 1) {
      expect(rival.exitCode, 'the other process goes on').toBeNull();
      const next = value === main ? other : main;
      await patient(repository, [
        ...moved.map((ref) => ({ type: 'update', ref, old: value, new: next }) as const),
        { type: round % 2 === 0 ? 'create' : 'delete', ref: 'refs/tags/x', new: next, old: value } as RefUpdate,
      ]);
      value = next;
      for (const ref of moved) expect(await repository.resolveRef(ref)).toBe(value);
      expect(await repository.resolveRef('refs/tags/x')).toBe(round % 2 === 0 ? value : undefined);
    }
    writeFileSync(`${path}.stop`, '');
    const [code] = await ended;
    expect(code).toBe(0);
    for (const ref of moved) expect(refsOf(path).get(ref)).toBe(value);
    expect(refsOf(path).get('refs/heads/rival/ref')).toBe(main);
    fsck(path);
    await repository.close();
  });
});

/**
 * Moves a ref of its own to and fro and packs all refs, until a file says stop. What it does must succeed each time; git alone waits a
 * tenth of a second for a lock, or a second, which on a loaded machine is less than the other process may hold it.
 */
const RIVAL = `
  cd "$1" || exit 1
  git() { command git -c core.filesRefLockTimeout=60000 -c core.packedRefsTimeout=60000 "$@"; }
  git update-ref refs/heads/rival/ref "$2" || exit 1
  while :; do
    git update-ref refs/heads/rival/ref "$3" "$2" && git pack-refs --all || exit 1
    git update-ref refs/heads/rival/ref "$2" "$3" && git update-ref refs/heads/rival/new "$2" '' || exit 1
    git update-ref -d refs/heads/rival/new "$2" || exit 1
    printf .
    if [ -e "$1.stop" ]; then exit 0; fi
  done`;

/** Runs a transaction as soon as no writer holds a lock. */
async function patient(repository: GitRepository, updates: readonly RefUpdate[]): Promise<void> {
  for (;;) {
    try {
      return await repository.transaction(updates);
    } catch (error) {
      if (!(error instanceof RefConflictError) || error.details?.kind !== 'locked') throw error;
      // The other process holds the lock, and gets on only if this one does not keep the processors busy.
      await delay(1);
    }
  }
}
