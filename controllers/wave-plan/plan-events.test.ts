import { expect, test } from 'vitest';
import { fixture } from '../../test/support/fixture.ts';
import { BY_CONDITION, waveBench } from '../../test/support/wave-bench.ts';

test('a wave that is completed in a pause begins no other one, which its event says; times have whole seconds', async () => {
  await using world = await fixture();
  const bench = await waveBench(world);
  await bench.propose('a', 'b');
  await bench.plan({
    waves: [
      { name: 'one', count: 1 },
      { name: 'all', percent: 100 },
    ],
    ...BY_CONDITION,
  });
  await bench.settle();
  await bench.change({ paused: true });
  await bench.verify();
  await bench.settle();
  expect(await world.events('web')).toContain(
    'WaveCompleted: wave one is completed; the plan is paused, so that no other wave begins',
  );
  const targets = await bench.targets();
  const times = [
    ...((await bench.read()).status?.log ?? []),
    ...targets.flatMap(({ record }) => record?.log ?? []),
  ].map(({ time }) => time);
  expect(times.length).toBeGreaterThan(3);
  for (const time of times) expect(time).toMatch(/T\d\d:\d\d:\d\dZ$/);
});
