import { beforeEach, describe, expect, test } from 'vitest';
import { SluiceError } from '../../src/foundation/sluice-error.ts';
import { ANNA } from '../../test/support/fixture.ts';
import { eachProposals, type Proposals } from '../../test/support/proposal-bench.ts';

describe('why the host does not accept what a proposal needs', () => {
  const open = eachProposals();
  let at: Proposals;
  beforeEach(async () => {
    at = open();
    await at.policy();
  });

  test('is explained after another commit and another proposal too', async () => {
    const name = await at.propose();
    const failure = { reason: 'PullRequestFailed', message: 'the App has been suspended' };
    const noted = async () => {
      await at.reconcile(name);
      return at.world.store.repository('apps').refusals.of(at.revision(name).name);
    };
    at.forge.before = () => {
      throw new SluiceError('Refused', failure.message);
    };
    expect(await noted()).toMatchObject([failure]);
    await at.set(name, 'True');
    expect(await noted()).toMatchObject([failure]);
    await at.world.store.update(name, { action: 'reject' }, ANNA);
    expect(await noted()).toEqual([]);
    await at.world.store.update(name, { action: 'propose' }, ANNA);
    expect(await noted()).toMatchObject([failure]);
    at.forge.before = () => undefined;
    expect(await noted()).toEqual([]);
  });
});
