import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { commitOf } from '../../src/git/git-repository.conformance.ts';
import { openRepository } from '../../src/git/open/open-repository.ts';
import { fsck, git, initBare, refsOf, temporaryFolder } from '../support/git/git-cli.ts';

const MIB = 1024 * 1024;
const FILES = 112;
/** Memory that a pack may cost, far below its size: buffers of pipes, and the part that is read before a limit applies. */
const MOST = 56 * MIB;

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/**
 * The peak of memory outside of the heap that an operation holds, beyond the amount before it. How much garbage waits to be collected depends
 * on the load of the machine, so what looks like too much is measured again without it.
 */
async function growth(work: Promise<unknown>): Promise<number> {
  const used = () => process.memoryUsage().arrayBuffers;
  const before = used();
  let most = 0;
  let over = false;
  const ended = work.finally(() => {
    over = true;
  });
  while (!over) {
    if (used() - before >= MOST) collectGarbage();
    most = Math.max(most, used() - before);
    await delay(2);
  }
  await ended;
  return most;
}

test('packs of any size are streamed in both directions without being held in memory', async () => {
  const folder = temporaryFolder();
  // In a process of its own, since it buffers what it sends.
  const program = fileURLToPath(new URL('../bench/git-server.ts', import.meta.url));
  const server = spawn(process.execPath, [program, folder.path], { stdio: ['pipe', 'pipe', 'inherit'] });
  const [line] = (await once(server.stdout, 'data')) as [Buffer];
  const origin = initBare(join(folder.path, 'origin.git'));
  const path = initBare(join(folder.path, 'local.git'));
  for (const one of [origin, path]) git(one, ['config', 'core.compression', '0']);
  let stream: Buffer | undefined = Buffer.concat([
    Buffer.from('commit refs/heads/large\ncommitter T <t@example.com> 1700000000 +0000\ndata 1\nm\n'),
    ...Array.from({ length: FILES }, (_, n) =>
      Buffer.concat([Buffer.from(`M 644 inline f${n}\ndata ${MIB}\n`), randomBytes(MIB), Buffer.from('\n')]),
    ),
  ]);
  git(path, ['fast-import', '--quiet'], stream);
  stream = undefined;
  const large = refsOf(path).get('refs/heads/large') ?? '';
  const remote = { url: `${line.toString('utf8').trim()}/origin.git` };
  const repository = await openRepository(path);
  try {
    // From here on the objects of the remote are known, so that the next push does not omit objects.
    const tree = await repository.editTree(undefined, new Map([['a', { data: Buffer.from('a') }]]));
    const first = await repository.writeCommit(commitOf(tree));
    git(path, ['update-ref', '-d', 'refs/heads/large']);
    await repository.push(remote, [{ type: 'create', ref: 'refs/heads/main', new: first }]);
    const pushed = repository.push(remote, [{ type: 'create', ref: 'refs/heads/large', new: large }]);
    expect(await growth(pushed)).toBeLessThan(MOST);
    expect(refsOf(origin).get('refs/heads/large')).toBe(large);
    expect(repository.remoteNote?.message).toContain('push by own client');

    const other = await openRepository(initBare(join(folder.path, 'other.git')));
    await other.fetch(remote, { refspecs: ['+refs/heads/main:refs/heads/main'] });
    expect(await growth(other.fetch(remote, { refspecs: ['+refs/heads/*:refs/heads/*'] }))).toBeLessThan(MOST);
    expect(other.remoteNote?.message).toContain('fetch by own client');
    await other.close();
    fsck(other.path);
  } finally {
    await repository.close();
    server.stdin.end();
    await once(server, 'close');
    folder.remove();
  }
});
