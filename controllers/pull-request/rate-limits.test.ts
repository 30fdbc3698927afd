import { beforeEach, describe, expect, test } from 'vitest';
import { SluiceError } from '../../src/foundation/sluice-error.ts';
import { ANNA } from '../../test/support/fixture.ts';
import { git } from '../../test/support/git/git-cli.ts';
import { eachProposals, type Proposals } from '../../test/support/proposal-bench.ts';

const HOUR_MS = 3_600_000;

describe('a rate limit of the host at the end of a pull request', () => {
  const open = eachProposals();
  let at: Proposals;
  beforeEach(() => {
    at = open();
    at.serveBranches();
  });
  const body = () => at.forge.pulls[0]?.body ?? '';
  const reply = () =>
    at.forge.commentsOf.get(1)?.find(({ isOwn, body }) => isOwn && body.includes('topic=commands'))?.body ?? '';

  /** The next calls of a method of the host are refused. */
  function limit(wanted: string, times = 1): () => number {
    let left = times;
    at.forge.before = (method) => {
      if (method !== wanted || left === 0) return;
      left -= 1;
      throw new SluiceError('TooManyRequests', 'the limit is reached', { details: { retryAfterMs: 60_000 } });
    };
    return () => left;
  }

  describe('of one proposal', () => {
    let name: string;
    beforeEach(async () => {
      at.forge.batchesReads = true;
      await at.policy();
      name = await at.propose();
      await at.settle();
      // The clock of the host is ahead of the one of the test.
      at.clock.advance(Date.UTC(2031, 0, 1) - at.clock.now());
      at.forge.skip(366 * 86_400);
    });

    test('delays its last text', async () => {
      at.forge.closings.set(1, { by: 'bob', comment: 'not now' });
      at.forge.change(1, { state: 'closed' });
      const left = limit('update', 2);
      await at.settle(HOUR_MS);
      expect(left()).toBe(0);
      expect(body()).toContain('is Draft now');
    });

    test('delays the reply to a late command, and is not tried before its end', async () => {
      await at.world.store.update(name, { action: 'approve' }, ANNA);
      at.forge.comment(1, 'bob', '/sluice approve');
      const left = limit('update');
      expect(await at.reconcile(name)).toEqual({ requeueAfter: 60_000, reason: 'the limit is reached' });
      expect(left()).toBe(0);
      limit('setComment');
      await at.settle(HOUR_MS);
      expect(reply()).toContain('is Published already');
    });
  });

  describe('of several proposals', () => {
    let names: readonly string[];
    beforeEach(async () => {
      await at.policy({ batch: {}, publishOn: 'merge' });
      names = await at.proposeAll('api', 'web');
      await at.settle();
    });

    test('delays its last text and the removal of its branch', async () => {
      await at.mergeAs(1, 'bob');
      const left = limit('update');
      await at.settle(HOUR_MS);
      expect(left()).toBe(0);
      expect(names.map((name) => at.revision(name).lifecycle)).toEqual(['Published', 'Published']);
      expect(body()).toContain('Published, `approve`');
      expect(git(at.path, ['for-each-ref', 'refs/heads/sluice'])).toBe('');
    });

    test('delays the reply to a late command', async () => {
      for (const name of names) await at.world.store.update(name, { action: 'approve' }, ANNA);
      at.forge.comment(1, 'bob', '/sluice approve');
      const left = limit('setComment');
      await at.settle(HOUR_MS);
      expect(left()).toBe(0);
      expect(at.forge.pulls[0]?.state).toBe('closed');
      expect(reply()).toContain('no package is proposed in this pull request any more');
    });
  });
});
