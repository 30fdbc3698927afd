import { execFileSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { RunningUp } from '../support/api/running-up.ts';
import { skipFor } from '../support/skip.ts';

const PATH = '/api/v1/namespaces/default/configmaps';
/** Maximum KiB of a file, which a database experiences as a full disk. */
const LIMIT = 4096;

function hasPrlimit(): boolean {
  try {
    execFileSync('prlimit', ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

const body = (name: string) => ({ metadata: { name }, data: { filler: 'x'.repeat(200_000) } });

test(
  'on a full disk writes fail clearly and data stays; writes succeed when there is space again',
  skipFor(!hasPrlimit() && 'prlimit is not installed'),
  async () => {
    const folder = await mkdtemp(join(tmpdir(), 'sluice-full-'));
    const data = join(folder, 'data');
    let stored: string[] = [];
    {
      await using up = await RunningUp.start(data, { limit: `-S -f ${LIMIT}` });
      const version = (await up.api.list(PATH)).body.metadata.resourceVersion;
      using watch = await up.api.watch(`${PATH}?resourceVersion=${version}`);
      const refused: string[] = [];
      for (let index = 0; refused.length < 3 && index < 200; index += 1) {
        const { status, body: failure } = await up.api.post(PATH, body(`a-${index}`));
        if (status === 201) {
          stored.push(`a-${index}`);
          continue;
        }
        expect(failure).toMatchObject({ kind: 'Status', code: 503, reason: 'ServiceUnavailable' });
        expect(failure.message).toMatch(/cannot write .*objects\.db: .*; nothing was changed/);
        refused.push(`a-${index}`);
      }
      expect(refused).toHaveLength(3);
      expect(stored.length).toBeGreaterThan(2);

      // Reads continue, and return nothing of the refused writes.
      const { items } = (await up.api.list(PATH)).body;
      expect(items.map(({ metadata }) => metadata.name).sort()).toEqual([...stored].sort());
      expect((await up.api.get(`${PATH}/${refused[0]}`)).status).toBe(404);
      expect((await up.api.get('/livez')).status).toBe(200);

      execFileSync('prlimit', ['--pid', `${up.child.pid}`, '--fsize=unlimited']);
      for (const name of refused) {
        expect((await up.api.post(PATH, body(name))).status).toBe(201);
        stored.push(name);
      }
      // The watch reports each successful write once.
      expect(await watch.changes(stored.length)).toEqual(stored.map((name) => `ADDED ${name}`));
      await up.end('SIGKILL');
    }
    await using up = await RunningUp.start(data);
    stored = stored.sort();
    expect((await up.api.list(PATH)).body.items.map(({ metadata }) => metadata.name)).toEqual(stored);
    await up.end();
    await rm(folder, { recursive: true });
  },
);
