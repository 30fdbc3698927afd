import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const MAIN = fileURLToPath(new URL('main.ts', import.meta.url));
const bench = (...words: string[]) => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [MAIN, ...words], { encoding: 'utf8' });
  return { status, stdout, stderr };
};

test('--help prints the benchmarks with their options, and runs none', () => {
  const all = bench('--help');
  expect(all).toMatchObject({ status: 0, stderr: '' });
  for (const name of ['api', 'forge', 'scale']) expect(all.stdout).toMatch(new RegExp(`^${name}: `, 'm'));
  const one = bench('forge', '--help');
  expect(one.stdout).toMatch(/^ {4}--hosts=gitea,github +Git hosts/m);
  expect(one.stdout).not.toMatch(/^(scale|forge \(Node)/m);
});

test('an unknown benchmark or option is an error, and nothing runs', () => {
  expect(bench('forge', 'foge', '--proposal=2')).toMatchObject({
    status: 2,
    stdout: '',
    stderr: expect.stringMatching(/^there is no benchmark "foge"; there is no option --proposal=2; "npm run bench/),
  });
});
