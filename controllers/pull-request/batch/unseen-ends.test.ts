import { beforeEach, describe, expect, test } from 'vitest';
import type { Source } from '../../../src/controller/source.ts';
import { SharedLists } from '../../../src/forge/shared-lists.ts';
import type { ObjectKey } from '../../../src/resource/object/object.ts';
import { ANNA } from '../../../test/support/fixture.ts';
import { eachProposals, type Proposals } from '../../../test/support/proposal-bench.ts';
import { EndedProposals } from '../ending/ended-proposals.ts';
import { OpenedRepositories } from '../opened-repositories.ts';
import { ShownProposals } from '../shown-proposals.ts';
import { leftBatches } from './left-batches.ts';

describe('proposals that share a pull request', () => {
  const open = eachProposals();
  let at: Proposals;
  beforeEach(() => {
    at = open();
    at.serveBranches();
  });

  test('show a review that does not count as soon as it was read', async () => {
    await at.policy({ batch: {} });
    const names = await at.proposeAll('a', 'b');
    await at.settle(60_000);
    const [pull] = at.forge.pulls;
    at.forge.skip(60);
    at.forge.review(1, 'mallory', 'approved', pull?.head.commit ?? '');
    at.clock.advance(30_000);
    for (const one of ['apps', ...names, 'apps:batches']) await at.reconcile(one);
    expect(at.forge.pulls[0]?.body).toContain('**Reviews that do not count:**');
    expect(at.forge.pulls[0]?.body).toContain('of mallory does not count');
  });

  test('wake the controller when one ends that the process has not come to yet', async () => {
    const { client, store, events } = { ...at.world, events: undefined as never };
    const shown = new ShownProposals();
    const opened = new OpenedRepositories(store, () => at.forge, at.clock, new SharedLists(at.clock));
    const ended = new EndedProposals({ client, store, events, opened, shown, clock: at.clock });
    await at.policy();
    const name = await at.propose();
    await store.update(name, { action: 'reject' }, ANNA);
    const wokenBy = (source: Source<ObjectKey>) => {
      const woken: string[] = [];
      const object = { metadata: { namespace: 'default', name }, spec: { lifecycle: 'Draft' } };
      const old = { spec: { lifecycle: 'Proposed' } };
      const addHandler = (handle: (event: object) => void) => handle({ type: 'update', old, object });
      source.start({ informer: () => ({ addHandler }), enqueue: (key: ObjectKey) => woken.push(key.name) } as never);
      return woken;
    };
    expect(wokenBy(leftBatches(shown))).toEqual(['apps:batches']);
    expect(wokenBy(ended.source())).toEqual(['apps']);
    // Once.
    expect(wokenBy(ended.source())).toEqual([]);
  });
});
