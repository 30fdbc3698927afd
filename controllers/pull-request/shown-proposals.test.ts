import { beforeEach, describe, expect, test } from 'vitest';
import { BERTA, eachProposals, type Proposals } from '../../test/support/proposal-bench.ts';
import { ShownProposals } from './shown-proposals.ts';

describe('notes about what shared pull requests have shown', () => {
  const open = eachProposals();
  let at: Proposals;
  let names: string[];
  let notes: Map<string, string>;
  beforeEach(async () => {
    at = open();
    at.serveBranches();
    await at.policy({ batch: {} });
    notes = new Map();
    at.restart({ shown: new ShownProposals(notes) });
    names = await at.proposeAll('api', 'web');
    await at.settle(60_000);
    expect(notes.size).toBe(3);
  });

  test('end with their proposals, also where those ended while no process ran', async () => {
    for (const name of names) await at.world.store.update(name, { action: 'reject' }, BERTA);
    at.restart({ shown: new ShownProposals(notes) });
    await at.settle(3_600_000);
    expect([...notes]).toEqual([]);
  });

  test('that are damaged count as none', async () => {
    for (const key of notes.keys()) notes.set(key, '{"proposal":');
    at.restart({ shown: new ShownProposals(notes) });
    await at.settle(60_000);
    expect(await at.world.events(names[0] ?? '')).not.toContainEqual(expect.stringContaining('Failed'));
    for (const note of notes.values()) expect(() => JSON.parse(note)).not.toThrow();
  });
});
