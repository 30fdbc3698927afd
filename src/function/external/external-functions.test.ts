import { expect, test } from 'vitest';
import { systemClock } from '../../foundation/time/clock.ts';
import { externalFunctions } from './external-functions.ts';
import { programFolder } from './testing-programs.ts';

const bounds = { time: 10_000, outputBytes: 1024, memoryBytes: 256 * 1024 * 1024, clock: systemClock };
const signal = new AbortController().signal;

test('runs programs, and reports the next step for images', async () => {
  await using programs = await programFolder();
  await programs.add('fn', 'cat');
  const runner = externalFunctions({
    programs: { allowed: { folder: programs.path }, ...bounds },
    containers: 'start it with --containers',
  });
  expect(await runner.refusal({ exec: 'fn' })).toBeUndefined();
  expect(await runner.run({ exec: 'fn', input: 'a' }, signal)).toEqual({ exitCode: 0, stdout: 'a', stderr: '' });
  const text = 'image "x:v1" cannot be run: containers are not allowed; start it with --containers';
  expect(await runner.refusal({ image: 'x:v1' })).toBe(text);
  await expect(runner.run({ image: 'x:v1', input: '' }, signal)).rejects.toMatchObject({
    code: 'Unavailable',
    message: text,
  });
});

test('without permission no program runs', async () => {
  const runner = externalFunctions({ programs: 'allow them with --allow-exec', containers: 'none' });
  const text = 'exec "./fn" cannot be run: programs are not allowed; allow them with --allow-exec';
  expect(await runner.refusal({ exec: './fn' })).toBe(text);
  const running = runner.run({ exec: './fn', input: '' }, signal);
  await expect(running).rejects.toMatchObject({ code: 'Unavailable', message: text });
});
