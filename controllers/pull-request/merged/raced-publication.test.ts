import { describe, expect, test } from 'vitest';
import { SluiceError } from '../../../src/foundation/sluice-error.ts';
import type { Client } from '../../../src/resource/client/client.ts';
import { repositoryKind } from '../../../src/resource/kinds/porch/repository.ts';
import type { Fixture } from '../../../test/support/fixture.ts';
import { eachProposals } from '../../../test/support/proposal-bench.ts';
import { eachUserPulls } from '../../../test/support/user-pull-bench.ts';

describe('since when merges publish, where another writer changes the Repository meanwhile', () => {
  const openProposals = eachProposals();
  const openUserPulls = eachUserPulls();

  /** A client whose first write of a status finds another version of the object. */
  function racedOnce(client: Client): Client {
    let left = 1;
    const raced = (of: Client): Client =>
      new Proxy(of, {
        get: (target, name) => {
          if (name === 'as') return (...args: Parameters<Client['as']>) => raced(target.as(...args));
          const value: unknown = Reflect.get(target, name, target);
          if (typeof value !== 'function') return value;
          return (...args: unknown[]) => {
            if (name !== 'updateStatus' || left === 0) return value.apply(target, args);
            left -= 1;
            return Promise.reject(new SluiceError('Conflict', 'the object has been changed'));
          };
        },
      });
    return raced(client);
  }

  async function recordedIn({ client }: Fixture) {
    return (await client.get(repositoryKind, { namespace: 'default', name: 'apps' })).status?.mergePublication;
  }

  test('is recorded by the next reconciliation of a proposal, a moment later', async () => {
    const at = openProposals();
    at.restart({ client: racedOnce(at.world.client) });
    await at.policy({ publishOn: 'merge' });
    const name = await at.propose();
    expect(await at.reconcile(name)).toEqual({ requeueAfter: 1000, reason: 'the policy has to be read again' });
    expect(await recordedIn(at.world)).toBeUndefined();
    await at.reconcile(name);
    expect(await recordedIn(at.world)).toMatchObject([{ policy: 'review', publishOn: 'merge' }]);
    expect(at.forge.pulls).toHaveLength(1);
  });

  test('is recorded by the next poll, a moment later', async () => {
    const at = openUserPulls();
    at.restart({ client: racedOnce(at.world.client) });
    await at.policy({ publishOn: 'merge', userPullRequests: 'ignore' });
    expect(await at.poll()).toMatchObject({ requeueAfter: 1000 });
    await at.poll();
    expect(await recordedIn(at.world)).toMatchObject([{ policy: 'review', publishOn: 'merge' }]);
  });
});
