import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { fsck, git, initBare, refsOf, temporaryFolder } from '../../../test/support/git/git-cli.ts';
import { processesWith } from '../../../test/support/git/processes.ts';
import { commitOf } from '../git-repository.conformance.ts';
import { EMPTY_TREE } from '../git-repository.ts';
import { openRepository } from '../open-repository.ts';

const WRITER = new URL('../../../test/support/git/counter-writer.ts', import.meta.url).pathname;

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

  function startWriter(label: string, count: number): { child: ChildProcess; acknowledged: () => string[] } {
    const child = spawn(process.execPath, [WRITER, path, 'refs/heads/main', String(count), label], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let output = '';
    child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
      output += chunk;
    });
    return { child, acknowledged: () => output.split('\n').slice(0, -1) };
  }

  test('two that race on one ref lose nothing', { timeout: 60_000 }, async () => {
    const writers = [startWriter('one', 60), startWriter('two', 60)];
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

  test('killed at any moment, a writer leaves a sound repository with all it acknowledged', {
    timeout: 60_000,
  }, async () => {
    for (let round = 0; round < 5; round += 1) {
      const { child, acknowledged } = startWriter(`round${round}`, 10_000);
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
    const repository = await openRepository(path);
    const main = (await repository.resolveRef('refs/heads/main')) ?? '';
    const next = await repository.writeCommit(commitOf(EMPTY_TREE, [main]));
    await repository.transaction([{ type: 'update', ref: 'refs/heads/main', old: main, new: next }]);
    await repository.close();
  });
});
