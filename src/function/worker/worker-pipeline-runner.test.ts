import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { image, never, open, packageWith } from './testing-runner.ts';

test('starts nothing before the first package, and keeps its worker warm', async () => {
  const runner = open();
  expect(runner.pids).toEqual([]);
  const outcome = await runner.run(packageWith('fine'), never());
  expect(outcome.failure).toBeUndefined();
  expect(outcome.steps).toMatchObject([
    { packagePath: '', list: 'mutators', result: { image: image('fine'), exitCode: 0 } },
  ]);
  const { pids } = runner;
  expect(pids).toHaveLength(1);
  await runner.run(packageWith('fine', 'fine'), never());
  expect(runner.pids).toEqual(pids);
});

test.runIf(process.platform === 'linux')(
  'a Ctrl-C in the terminal of this process does not reach a worker',
  async () => {
    const runner = open();
    await runner.run(packageWith('fine'), never());
    const groups = runner.pids.map((pid) =>
      Number(readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ')[2]),
    );
    expect(groups).toEqual(runner.pids);
  },
);

test('events report the progress', async () => {
  const events: string[] = [];
  await open().run(packageWith('fine', 'throws'), never(), ({ type, step: { result } }) =>
    events.push(`${type} ${result.image} ${result.exitCode}`),
  );
  expect(events).toEqual([
    `started ${image('fine')} undefined`,
    `finished ${image('fine')} 0`,
    `started ${image('throws')} undefined`,
    `finished ${image('throws')} 1`,
  ]);
});
