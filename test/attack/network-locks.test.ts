import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { lockHolder, ProcessLock } from '../../src/foundation/files/process-lock.ts';
import { systemClock } from '../../src/foundation/time/clock.ts';
import { replaceTokens } from '../../src/server/authentication/token-file.ts';

let folder: string;
const children: ChildProcess[] = [];
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-locks-'));
});
afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  await rm(folder, { recursive: true, force: true });
});

/** Another process that runs a module's text, in which `load` imports from src/. */
function start(program: string): ChildProcess {
  const source = new URL('../../src/', import.meta.url).href;
  const text = `const load = (path) => import(${JSON.stringify(source)} + path);\n${program}`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', text], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.push(child);
  return child;
}

test('of tokens that several processes make at once none is lost, whatever a killed one left', async () => {
  const path = join(folder, 'tokens.csv');
  // What an earlier version left: two of those who found it took the place of each other.
  await writeFile(`${path}.lock`, 'half');
  await utimes(`${path}.lock`, new Date(0), new Date(0));
  const writers = ['a', 'b', 'c'].map((name) =>
    start(`
      const { addToken } = await load('server/authentication/token-file.ts');
      const { systemClock } = await load('foundation/time/clock.ts');
      for (let number = 0; number < 20; number += 1)
        await addToken(${JSON.stringify(path)}, { user: '${name}' + number }, systemClock);
    `),
  );
  const ends = writers.map((child) => once(child, 'exit'));
  let running = writers.length;
  for (const end of ends) void end.then(() => running--);
  // As a server does when it starts.
  while (running > 0) await replaceTokens(path, { user: 'admin' }, systemClock);
  expect((await Promise.all(ends)).map(([code]) => code)).toEqual([0, 0, 0]);
  const users = (await readFile(path, 'utf8'))
    .trim()
    .split('\n')
    .map((line) => line.split(',')[1] ?? '');
  const expected = ['a', 'b', 'c'].flatMap((name) => Array.from({ length: 20 }, (_, number) => `${name}${number}`));
  expect(users.sort()).toEqual([...expected, 'admin'].sort());
});

test('the lock of a killed process is free at once, independent of the host name in it', async () => {
  const path = join(folder, 'up-lock');
  const holder = start(`
    const { ProcessLock } = await load('foundation/files/process-lock.ts');
    await ProcessLock.acquire(${JSON.stringify(path)}, { holder: { since: '2026-01-01T00:00:00Z' } });
    console.log('held');
    setInterval(() => {}, 1000);
  `);
  await once(holder.stdout as NodeJS.ReadableStream, 'data');
  const output = JSON.parse(await readFile(`${path}.json`, 'utf8')) as object;
  await writeFile(`${path}.json`, JSON.stringify({ ...output, host: 'container-of-before' }));
  await expect(ProcessLock.acquire(path)).rejects.toMatchObject({
    code: 'Busy',
    message: expect.stringContaining(`process ${holder.pid} on container-of-before`),
  });
  expect(await lockHolder(path)).toMatchObject({ pid: holder.pid });
  holder.kill('SIGKILL');
  await once(holder, 'exit');
  expect(await lockHolder(path)).toBeUndefined();
  const lock = await ProcessLock.acquire(path, { timeoutMs: 0 });
  expect(lock.isHeld()).toBe(true);
  await lock.release();
});
