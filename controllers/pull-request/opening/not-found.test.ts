import { beforeEach, describe, expect, test } from 'vitest';
import { SluiceError } from '../../../src/foundation/sluice-error.ts';
import { ANNA } from '../../../test/support/fixture.ts';
import { eachProposals, GATE, type Proposals } from '../../../test/support/proposal-bench.ts';

const REQUIRED = { requiredGates: [{ conditionType: GATE, approveOnly: true }] };

describe('a pull request that the host does not find', () => {
  const open = eachProposals();
  let at: Proposals;
  beforeEach(() => {
    at = open();
  });

  /** As with a token without access, or while the host works badly. */
  const fail = () => {
    throw new SluiceError('NotFound', 'GET /repos/owner/apps/pulls/1: status 404');
  };
  function failOnce(wanted: string): void {
    at.forge.before = (method) => {
      if (method !== wanted) return;
      at.forge.before = () => undefined;
      fail();
    };
  }
  /** The host does not find something, and fails to answer what is asked next. */
  function failAlways(wanted: string, later: SluiceError): void {
    let hasFailed = false;
    at.forge.before = (method) => {
      if (hasFailed) throw later;
      if (method !== wanted) return;
      hasFailed = true;
      fail();
    };
  }
  const setGate = (name: string, status: 'True' | 'False' = 'True') =>
    at.world.store.change(name, { conditions: [{ type: GATE, status }] }, ANNA);
  function close(number: number): void {
    at.forge.closings.set(number, { by: 'bob', comment: 'no' });
    at.forge.change(number, { state: 'closed', closedAt: new Date(at.clock.now()).toISOString() });
  }

  test('is rejected when a user has closed it while the repository could not be seen', async () => {
    await at.policy({ gateChecks: [GATE] }, REQUIRED);
    const [name = ''] = await at.proposeAll('app', 'other');
    await at.settle();
    at.forge.before = fail;
    await setGate(name);
    await at.settle(120_000);
    close(1);
    at.forge.before = () => undefined;
    // The proposal is tried again before the list of the host is read.
    at.clock.advance(60_000);
    await at.reconcile(name).catch(() => undefined);
    await at.settle(300_000);
    expect([at.revision(name).lifecycle, at.forge.pulls.length]).toEqual(['Draft', 2]);
  });

  test.each(['closed', 'merged'])('ends all the same when it is %s at once', async (how) => {
    await at.policy({ publishOn: 'merge', gateChecks: [GATE] }, REQUIRED);
    const [name = ''] = await at.proposeAll('app', 'other');
    await at.settle();
    failOnce('setChecks');
    await setGate(name);
    expect(await at.reconcile(name)).toMatchObject({ requeueAfter: 60_000 });
    if (how === 'merged') await at.mergeHead(name, 'bob', 'merge');
    else close(1);
    // Lists are read while the proposal waits a minute for its next attempt.
    for (let turn = 0; turn < 5; turn += 1) {
      at.clock.advance(10_000);
      await at.reconcile('apps');
    }
    at.clock.advance(10_000);
    await at.reconcile(name).catch(() => undefined);
    await at.sync();
    await at.settle(900_000);
    const lifecycle = how === 'merged' ? 'Published' : 'Draft';
    expect([at.revision(name).lifecycle, at.forge.pulls.length]).toEqual([lifecycle, 2]);
  });

  test('stays the one that its proposals share, also without the first of them', async () => {
    at.serveBranches();
    await at.policy({ batch: {}, gateChecks: [GATE] }, REQUIRED);
    const [api = ''] = await at.proposeAll('api');
    await at.settle(60_000);
    const [web = ''] = await at.proposeAll('web');
    await at.settle(60_000);
    await at.world.store.update(api, { action: 'reject' }, ANNA);
    await at.settle(60_000);
    // The lists that are read next begin with a later change.
    at.forge.skip(600);
    await at.forge.open({ head: 'other', base: 'main', title: '', body: '' });
    await at.settle(60_000);
    failOnce('update');
    await setGate(web);
    await at.settle(300_000);
    expect(at.forge.pulls.map(({ state }) => state)).toEqual(['open', 'open']);
    expect(at.forge.pulls[0]?.body).toContain(web);
  });

  test.each([
    ['Unavailable', 60_000],
    ['Refused', 60_000],
    ['TooManyRequests', 600_000],
  ] as const)('keeps its proposals waiting while the host fails to say more: %s', async (code, requeueAfter) => {
    at.serveBranches();
    await at.policy({ gateChecks: [GATE] }, REQUIRED);
    const [name = ''] = await at.proposeAll('api');
    await at.settle();
    failAlways('setChecks', new SluiceError(code, 'later', { details: { retryAfterMs: 600_000 } }));
    await setGate(name, 'False');
    expect(await at.reconcile(name)).toMatchObject({ requeueAfter });
    at.forge.before = () => undefined;
    await at.settle(900_000);
    expect(at.forge.pulls.map(({ state }) => state)).toEqual(['open']);
  });

  test.each([
    ['Unavailable', 60_000],
    ['TooManyRequests', 600_000],
  ] as const)('and that proposals share waits while the host fails to say more: %s', async (code, requeueAfter) => {
    at.serveBranches();
    await at.policy({ batch: {}, gateChecks: [GATE] }, REQUIRED);
    const [api = ''] = await at.proposeAll('api', 'web');
    await at.settle(60_000);
    await setGate(api);
    await at.reconcile(api);
    at.clock.advance(60_000);
    failAlways('update', new SluiceError(code, 'later', { details: { retryAfterMs: 600_000 } }));
    expect(await at.reconcile('apps:batches')).toMatchObject({ requeueAfter });
    at.forge.before = () => undefined;
    await at.settle(900_000);
    expect(at.forge.pulls.map(({ state }) => state)).toEqual(['open']);
    expect(at.forge.pulls[0]?.body).toContain(api);
  });

  test('and that was deleted is opened again for its proposals', async () => {
    at.serveBranches();
    await at.policy({ batch: {}, gateChecks: [GATE] }, REQUIRED);
    const [api = ''] = await at.proposeAll('api', 'web');
    await at.settle(60_000);
    at.forge.pulls.length = 0;
    await setGate(api);
    await at.settle(300_000);
    expect(at.forge.pulls.map(({ state }) => state)).toEqual(['open']);
  });
});
