import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { lockHolder, ProcessLock } from './process-lock.ts';

let folder = '';
let count = 0;
const fresh = () => join(folder, `${count++}-lock`);
const says = { since: '2026-01-01T00:00:00Z', about: { resolvers: ['ipam'] } };

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-lock-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

describe('process lock', () => {
  test('one process holds it, and the next one gets the holder', async () => {
    const path = fresh();
    expect(await lockHolder(path)).toBeUndefined();
    const lock = await ProcessLock.acquire(path, { holder: says });
    await expect(ProcessLock.acquire(path, { holder: says, timeoutMs: 0 })).rejects.toMatchObject({
      code: 'Busy',
      message: expect.stringContaining(`process ${process.pid} holds ${path} since 2026-01-01T00:00:00Z`),
    });
    expect(await lockHolder(path)).toMatchObject({ pid: process.pid, about: { resolvers: ['ipam'] } });
    expect(lock.isHeld()).toBe(true);
    await lock.release();
    await lock.release();
    expect(lock.isHeld()).toBe(false);
    expect(await lockHolder(path)).toBeUndefined();
    await (await ProcessLock.acquire(path)).release();
    expect((await readdir(folder)).filter((name) => name.startsWith('0-'))).toEqual(['0-lock']);
  });

  test('concurrent callers acquire it once each, one after the other, while others read the holder', async () => {
    const path = fresh();
    let inside = 0;
    let most = 0;
    let open = 12;
    const looking = (async () => {
      while (open > 0) {
        await lockHolder(path);
        await turn();
      }
    })();
    await Promise.all(
      Array.from({ length: open }, () =>
        ProcessLock.run(path, { holder: says, timeoutMs: 20_000 }, async () => {
          inside++;
          most = Math.max(most, inside);
          await turn();
          inside--;
          open--;
        }),
      ),
    );
    await looking;
    expect(most).toBe(1);
  });

  test('what an ended holder stated is not taken for that of the next one', async () => {
    const path = fresh();
    await writeFile(`${path}.json`, JSON.stringify({ host: 'elsewhere', pid: 7, since: '2020-01-01T00:00:00Z' }));
    const lock = await ProcessLock.acquire(path);
    const error = await ProcessLock.acquire(path, { timeoutMs: 0 }).catch((thrown: Error) => thrown);
    expect(error).toMatchObject({ message: expect.stringMatching(/^another process holds/) });
    await writeFile(`${path}.json`, '{"host": "x", "pi');
    await expect(ProcessLock.acquire(path, { timeoutMs: 0 })).rejects.toMatchObject({ code: 'Busy' });
    await lock.release();
    await (await ProcessLock.acquire(path)).release();
  });

  test('a holder notices that the file was removed, and another process may have the lock', async () => {
    const path = fresh();
    const lock = await ProcessLock.acquire(path, { holder: says });
    await rm(path);
    expect(lock.isHeld()).toBe(false);
    const other = await ProcessLock.acquire(path, { holder: { since: '2027-01-01T00:00:00Z' } });
    expect(lock.isHeld()).toBe(false);
    await lock.release();
    expect(await lockHolder(path)).toMatchObject({ since: '2027-01-01T00:00:00Z' });
    await other.release();
  });

  test('a path that cannot be locked is an error', async () => {
    const path = fresh();
    await writeFile(path, 'no database at all, and long enough to be read as one by SQLite, which reads a header');
    await expect(ProcessLock.acquire(path)).rejects.toMatchObject({ code: 'Unavailable' });
  });
});
