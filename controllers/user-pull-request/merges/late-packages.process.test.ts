import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { eachUserPulls, KPTFILE, MAP, type UserPullBench } from '../../../test/support/user-pull-bench.ts';

const LARGE = `${MAP}# ${'x'.repeat(300 * 1024)}\n`;
const open = eachUserPulls();
let at: UserPullBench;
beforeEach(async () => {
  at = open();
  await at.policy({ publishOn: 'merge' });
  await at.world.push(at.path, { 'README.md': 'start' });
  await at.world.store.repository('apps').refresh();
  await at.poll();
  // Large files take longer than the time for them.
  const over = AbortSignal.abort(new Error('over'));
  const timeout = AbortSignal.timeout.bind(AbortSignal);
  vi.spyOn(AbortSignal, 'timeout').mockImplementation((ms) => (ms === 20_000 ? over : timeout(ms)));
});
afterEach(() => vi.restoreAllMocks());

async function poll(minutes: number): Promise<void> {
  for (let passed = 0; passed < minutes; passed += 1) await at.poll(60_000).catch(() => undefined);
}

const of = (name: string) => at.world.store.find(name);

test('a package that cannot be searched for mistakes holds up no other one of its merge, and is out of band in the end', async () => {
  await at.pull({ 'a/Kptfile': KPTFILE(), 'a/large.yaml': LARGE, 'b/Kptfile': KPTFILE(), 'b/map.yaml': MAP });
  await at.poll().catch(() => undefined);
  await at.merge(1, 'bob');
  await poll(1);
  expect(of('apps.b.merge-1')).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
  expect(of('apps.a.merge-1')).toBeUndefined();
  await poll(25);
  expect(of('apps.a.merge-1')?.outOfBand?.message).toContain(
    'closed gates, with which the Git host merged it: Rendered',
  );
  expect(at.comment(1, 'merged')).toMatch(/`a` is \*\*out of band\*\*.*\n- `b` is published/);
});

test('of many such packages each attempt searches a few, and all are out of band in the end', async () => {
  const names = Array.from({ length: 7 }, (_, count) => `p${count}`);
  await at.pull(
    Object.fromEntries(
      names.flatMap((name) => [
        [`${name}/Kptfile`, KPTFILE()],
        [`${name}/a.yaml`, LARGE],
      ]),
    ),
  );
  await at.poll().catch(() => undefined);
  await at.merge(1, 'bob');
  vi.mocked(AbortSignal.timeout).mockClear();
  await at.poll(60_000).catch(() => undefined);
  expect(vi.mocked(AbortSignal.timeout).mock.calls.filter(([ms]) => ms === 20_000).length).toBeLessThan(names.length);
  await poll(25);
  expect(names.map((name) => of(`apps.${name}.merge-1`)?.outOfBand === undefined)).toEqual(names.map(() => false));
});
