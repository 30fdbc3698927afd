import { expect, test } from 'vitest';
import type { PullRequest } from '../../../src/forge/forge.ts';
import type { LifecycleStep } from '../../../src/package/model/record/record.ts';
import { MemoryForge } from '../testing-forge.ts';
import { withSection } from '../text/section.ts';
import { reportEarlierMerge } from './report-lost-merge.ts';

const { signal } = new AbortController();

function step(action: string, minute: number): LifecycleStep {
  return { action, by: 'anna', face: 'cli', at: `2026-01-01T00:0${minute}:00Z` };
}

/** Whether a merge in the fifth minute is reported of a revision with these steps, where merges did not publish. */
async function isReported(steps: readonly LifecycleStep[]): Promise<boolean> {
  const forge = new MemoryForge();
  const opened = await forge.open({ head: 'proposed/app/w1', base: 'main', title: '', body: '' });
  const body = withSection('', ['0123456789abcdef'], 'Package revision `apps.app.w1` is Draft now.');
  const pull: PullRequest = { ...opened, body, state: 'merged', closedAt: '2026-01-01T00:05:00Z' };
  const reported: unknown[] = [];
  const events = { recordFinal: (...args: unknown[]) => reported.push(args) > 0 };
  const client = { list: async () => ({ items: [] }) };
  const context = { client, events, forge, signal } as never;
  const object = { kind: 'PackageRevision', metadata: { name: 'apps.app.w1', namespace: 'default' } } as never;
  const revision = { key: {}, name: 'apps.app.w1' } as never;
  await reportEarlierMerge(
    context,
    {} as never,
    { object, revision, record: { steps } as never },
    pull,
    async () => false,
  );
  return reported.length > 0;
}

test('the merge of an earlier proposal is reported where it was made after the end of that', async () => {
  const rejected = [step('propose', 1), step('reject', 2)];
  expect(await isReported([...rejected, step('propose', 6)])).toBe(true);
  expect(await isReported([step('propose', 1), step('reject', 7), step('propose', 8)])).toBe(false);
});

test('one during a later proposal, which a push has ended, was reported then', async () => {
  const steps = [step('propose', 1), step('reject', 2), step('propose', 3), step('push', 6), step('propose', 7)];
  expect(await isReported(steps)).toBe(false);
});
