import { expect, test } from 'vitest';
import { systemClock } from '../../foundation/clock.ts';
import { externalFunctions } from './external-functions.ts';
import { programFolder } from './testing-programs.ts';

const bounds = { time: 10_000, outputBytes: 1024, memoryBytes: 256 * 1024 * 1024, clock: systemClock };
const signal = new AbortController().signal;

test('runs programs, and says of the rest what to do', async () => {
  await using programs = await programFolder();
  await programs.add('fn', 'cat');
  const runner = externalFunctions({
    programs: { allowed: { folder: programs.path }, ...bounds },
    containers: undefined,
  });
  expect(await runner.refusal({ exec: 'fn' })).toBeUndefined();
  expect(await runner.run({ exec: 'fn', input: 'a' }, signal)).toEqual({ exitCode: 0, stdout: 'a', stderr: '' });
  const text =
    'image "x:v1" is not run: containers are switched off here; let a FunctionPolicy name a built-in function or a program in its place';
  expect(await runner.refusal({ image: 'x:v1' })).toBe(text);
  await expect(runner.run({ image: 'x:v1', input: '' }, signal)).rejects.toMatchObject({
    code: 'Unavailable',
    message: text,
  });
});
