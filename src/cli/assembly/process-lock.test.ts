import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ownIdentity } from './process-identity.ts';
import { lockHolder, ProcessLock } from './process-lock.ts';

let folder = '';
let count = 0;
const fresh = () => join(folder, `lock-${count++}`);
const since = '2026-01-01T00:00:00Z';

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-lock-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

function holder(change: object): string {
  return JSON.stringify({ host: hostname(), pid: 1, started: '', since, token: 'other', ...change });
}

describe('process lock', () => {
  test('one holds it, the next is told who does', async () => {
    const path = fresh();
    const lock = await ProcessLock.acquire(path, { since, about: { resolvers: ['ipam'] } });
    await expect(ProcessLock.acquire(path, { since })).rejects.toMatchObject({
      code: 'Busy',
      message: expect.stringContaining(`process ${process.pid}`),
    });
    expect(await lockHolder(path)).toMatchObject({ pid: process.pid, about: { resolvers: ['ipam'] } });
    await lock.release();
    expect(await lockHolder(path)).toBeUndefined();
    await (await ProcessLock.acquire(path, { since })).release();
    expect((await readdir(folder)).filter((name) => name.startsWith('lock-0'))).toEqual([]);
  });

  test('of many who ask at once each gets it once, one after the other', async () => {
    const path = fresh();
    let inside = 0;
    let most = 0;
    await Promise.all(
      Array.from({ length: 12 }, async () => {
        const lock = await ProcessLock.acquire(path, { since, patience: 20_000 });
        inside++;
        most = Math.max(most, inside);
        await new Promise((resolve) => setTimeout(resolve, 2));
        inside--;
        await lock.release();
      }),
    );
    expect(most).toBe(1);
  });

  test('a process that was killed loses it', async () => {
    const path = fresh();
    const child = spawn('sleep', ['30']);
    await once(child, 'spawn');
    await writeFile(path, holder({ pid: child.pid }));
    await expect(ProcessLock.acquire(path, { since })).rejects.toMatchObject({ code: 'Busy' });
    child.kill('SIGKILL');
    await once(child, 'close');
    const lock = await ProcessLock.acquire(path, { since });
    expect(await lock.isHeld()).toBe(true);
    await lock.release();
  });

  test('another process with the same number does not keep it', async () => {
    const path = fresh();
    const { started } = await ownIdentity();
    if (started === '') return console.warn('not run: this system does not tell when a process began');
    await writeFile(path, holder({ pid: process.pid, started: `${started}0` }));
    await (await ProcessLock.acquire(path, { since })).release();
  });

  test('a holder on another machine is never taken for dead', async () => {
    const path = fresh();
    await writeFile(path, holder({ host: 'elsewhere.example', pid: 2 ** 22 }));
    await expect(ProcessLock.acquire(path, { since })).rejects.toThrow('elsewhere.example');
  });

  test('half a lock file holds nobody back', async () => {
    const path = fresh();
    await writeFile(path, '{"host": "x", "pi');
    await (await ProcessLock.acquire(path, { since })).release();
  });

  test('whoever lost it notices, and does not release the lock of another', async () => {
    const path = fresh();
    const lock = await ProcessLock.acquire(path, { since });
    await writeFile(path, holder({ pid: process.ppid }));
    expect(await lock.isHeld()).toBe(false);
    await lock.release();
    expect(JSON.parse(await readFile(path, 'utf8'))).toMatchObject({ token: 'other' });
  });
});
