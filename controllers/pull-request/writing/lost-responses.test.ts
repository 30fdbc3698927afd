import { beforeEach, describe, expect, test } from 'vitest';
import type { Check } from '../../../src/forge/forge.ts';
import { SluiceError } from '../../../src/foundation/sluice-error.ts';
import { ANNA } from '../../../test/support/fixture.ts';
import { eachProposals, type Proposals } from '../../../test/support/proposal-bench.ts';
import type { ShownPull } from '../shown-proposals.ts';
import { MemoryForge } from '../testing-forge.ts';
import { writeChecks } from './write-pull.ts';

const COMMIT = 'a'.repeat(40);
const CONTEXT = { store: undefined as never, signal: new AbortController().signal };

/** The next call of a method has its effect, and its response is lost. */
function loseResponse(forge: MemoryForge, lost: string): void {
  forge.after = (method) => {
    if (method !== lost) return;
    forge.after = () => undefined;
    throw new SluiceError('Unavailable', 'status 502');
  };
}

describe('the checks of a commit', () => {
  const check = (state: Check['state']): Check => ({ name: 'sluice/ready', state, title: state });

  test('are written again after a lost response, although they are those of before', async () => {
    const forge = new MemoryForge();
    const entry = { pulls: { forge } } as unknown as ShownPull;
    const write = (state: Check['state']) => writeChecks(CONTEXT, entry, COMMIT, [check(state)], []);
    await write('pending');
    loseResponse(forge, 'setChecks');
    await expect(write('success')).rejects.toThrow('502');
    // A freeze began, or a condition was withdrawn, before it was tried again.
    await write('pending');
    expect(forge.checksOf(COMMIT)).toEqual({ 'sluice/ready': 'pending' });
  });

  test('are written at commits that come into the merge queue meanwhile', async () => {
    const forge = new MemoryForge();
    const entry = { pulls: { forge } } as unknown as ShownPull;
    const write = () => writeChecks(CONTEXT, entry, COMMIT, [check('pending')], []);
    const [first, second] = ['b'.repeat(40), 'c'.repeat(40)];
    entry.queued = [first];
    forge.before = (method) => {
      if (method === 'setChecks' && forge.checks.has(COMMIT)) entry.queued = [first, second];
    };
    await write();
    await write();
    expect([...forge.checks.keys()]).toEqual([COMMIT, first, second]);
  });
});

describe('the title of a shared pull request', () => {
  const open = eachProposals();
  let at: Proposals;
  beforeEach(() => {
    at = open();
    at.serveBranches();
  });
  const title = () => at.forge.pulls[0]?.title;

  /** A second proposal joins; the response to the change of the text is lost, and the host does not work for a minute. Returns its name. */
  async function join(): Promise<string> {
    await at.policy({ batch: {} });
    await at.proposeAll('api');
    await at.settle();
    const [web = ''] = await at.proposeAll('web');
    const fail = (method: string) => {
      if (method === 'update') throw new SluiceError('Unavailable', 'status 502');
    };
    at.forge.after = (method) => {
      if (method === 'update') at.forge.before = fail;
      fail(method);
    };
    await at.settle(60_000);
    at.forge.before = () => undefined;
    at.forge.after = () => undefined;
    expect(title()).toBe('Publish api, web (w1)');
    return web;
  }

  test('is that of the present proposals after a lost response', async () => {
    await join();
    await at.proposeAll('db');
    await at.settle(60_000);
    expect(title()).toBe('Publish api, db, web (w1)');
  });

  test('also if these are those of before', async () => {
    const web = await join();
    await at.world.store.update(web, { action: 'reject' }, ANNA);
    await at.settle(60_000);
    expect(title()).toBe('Publish api (w1)');
  });
});
