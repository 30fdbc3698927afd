import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { RunningUp } from '../../../test/support/api/running-up.ts';
import { Terminal } from '../output/terminal.ts';
import { runProgram } from '../program.ts';
import { type CliFixture, cliFixture } from '../testing.ts';

let cli: CliFixture;
beforeEach(async () => {
  cli = await cliFixture();
  await mkdir(join(cli.folder, 'conf'));
  const target = `{selector: {packages: [none]}, git: {repo: ${cli.bare('site.git')}}, engine: {type: Flux}}`;
  await writeFile(
    join(cli.folder, 'conf', 'all.yaml'),
    ['kind: WavePlan\nmetadata: {name: web}\nspec: {waves: [{name: all, percent: 100}]}']
      .concat(`kind: DeliveryTarget\nmetadata: {name: edge}\nspec: ${target}`)
      .map((text) => `apiVersion: sluice.dev/v1alpha1\n${text}\n---\n`)
      .join(''),
  );
  expect(await cli.run('up', '--until-idle', '--config', join(cli.folder, 'conf'))).toMatchObject({ code: 0 });
});
afterEach(() => cli[Symbol.asyncDispose]());

/** A command that runs, with its output so far. */
function start(...words: string[]) {
  const output = { out: '', err: '' };
  const stream = (name: 'out' | 'err') => ({
    write(text: string) {
      output[name] += text;
    },
  });
  const environment = { SLUICE_DATA: cli.data, SLUICE_USER: 'anna' };
  const terminal = new Terminal(stream('out'), stream('err'), environment);
  return { output, code: runProgram(words, { terminal, environment }) };
}

test('without a server a watch goes on at one that starts later', async () => {
  const plan = start('wave', 'watch', 'web');
  const target = start('target', 'watch', 'edge', '--until', 'healthy', '--timeout', '1h');
  for (const { output } of [plan, target])
    await expect.poll(() => output.err).toMatch(/no server runs on the data folder \S+, so nothing changes/);
  await using up = await RunningUp.start(cli.data);
  for (const { output } of [plan, target])
    await expect.poll(() => output.err).toMatch(/a server has started on the data folder \S+, and is watched from now/);
  expect(await cli.run('wave', 'abort', 'web')).toMatchObject({ code: 0 });
  expect(await plan.code).toBe(1);
  expect(plan.output.out).toMatch(/Aborted: a user aborted it/);
  await up.api.delete('/apis/sluice.dev/v1alpha1/namespaces/default/deliverytargets/edge');
  expect(await target.code).toBe(1);
  expect(target.output.err).toContain('target edge was deleted');
});
