import { beforeEach, describe, expect, test, vi } from 'vitest';
import { SluiceError } from '../../../src/foundation/sluice-error.ts';
import { ANNA } from '../../../test/support/fixture.ts';
import { eachProposals, GATE, type Proposals } from '../../../test/support/proposal-bench.ts';
import { readingsOf } from './testing-batches.ts';

describe('commands in a pull request of several proposals', () => {
  const open = eachProposals();
  let at: Proposals;
  beforeEach(() => {
    at = open();
    at.serveBranches();
  });
  const { headOf, lifecycles } = readingsOf(() => at);

  test('a command that was not read before the end gets a reply', async () => {
    await at.policy({ batch: {}, publishOn: 'merge' });
    const names = await at.proposeAll('api', 'web');
    await at.settle();
    at.forge.comment(1, 'bob', '/sluice why');
    await at.settle();
    for (const name of names) await at.world.store.update(name, { action: 'approve' }, ANNA);
    at.forge.comment(1, 'bob', '/sluice approve');
    await at.settle();
    expect(at.forge.pulls).toMatchObject([{ state: 'closed' }]);
    const reply = at.forge.commentsOf.get(1)?.find(({ isOwn }) => isOwn)?.body;
    expect(reply).toContain('**Refused**: `no package is proposed in this pull request any more`');
    expect(reply).toContain('Done: `apps.api.w1: see below`');
  });

  test('a command by which the packages were approved gets no refusal, although the response was lost', async () => {
    await at.policy({ batch: {} });
    await at.proposeAll('api', 'web');
    await at.settle();
    at.clock.advance(Date.UTC(2031, 0, 1) - at.clock.now());
    at.forge.skip(366 * 86_400);
    const update = at.world.store.update.bind(at.world.store);
    const spy = vi.spyOn(at.world.store, 'update').mockImplementation(async (...args) => {
      const updated = await update(...args);
      if (args[2].dryRun !== true) throw new SluiceError('Unavailable', 'the connection was lost');
      return updated;
    });
    at.forge.comment(1, 'bob', '/sluice approve');
    await at.settle(60_000);
    spy.mockRestore();
    await at.settle(60_000);
    const reply = at.forge.commentsOf.get(1)?.find(({ isOwn }) => isOwn)?.body;
    expect(reply).toContain('Done: `apps.api.w1, apps.web.w1: approved`');
    expect(reply).not.toContain('Refused');
  });

  test('a command is for all packages, or for the one that it names; there is one reply', async () => {
    await at.policy({ batch: {} }, { requiredGates: [{ conditionType: GATE, approveOnly: true }] });
    const names = await at.proposeAll('api', 'db', 'web');
    await at.settle();
    at.forge.comment(1, 'bob', '/sluice reject apps.wbe.w1 typo');
    at.forge.comment(1, 'bob', '/sluice reject apps.web.w1 too large');
    at.forge.comment(1, 'bob', `/sluice set ${GATE} True tested`);
    at.forge.comment(1, 'mallory', '/sluice approve');
    at.forge.comment(1, 'bob', '/sluice why');
    await at.settle(60_000);
    expect(lifecycles(names)).toEqual(['Proposed', 'Proposed', 'Draft']);
    expect(at.revision('apps.web.w1').record?.steps.at(-1)?.reason).toMatch(/^too large \(comment /);
    const own = (at.forge.commentsOf.get(1) ?? []).filter(({ author }) => author === 'sluice');
    expect(own).toHaveLength(2);
    const reply = own.find(({ body }) => body.includes('The last commands'))?.body ?? '';
    expect(reply).toContain('**Refused**: `apps.wbe.w1 is not proposed in this pull request`');
    expect(reply).toContain('Done: `apps.web.w1: rejected`');
    expect(reply).toContain(`Done: \`apps.api.w1, apps.db.w1: ${GATE} is True\``);
    at.forge.comment(1, 'bob', '/sluice approve');
    await at.settle();
    expect(lifecycles(names)).toEqual(['Published', 'Published', 'Draft']);
  });

  test('a command does not count for a package that came after it was written', async () => {
    await at.policy({ batch: {} }, { requiredGates: [{ conditionType: GATE, approveOnly: true }] });
    const [api = ''] = await at.proposeAll('api');
    await at.settle();
    const [web = ''] = await at.proposeAll('web');
    await at.set(web, 'True');
    at.forge.comment(1, 'bob', '/sluice approve');
    await at.settle(60_000);
    expect(at.forge.pulls).toHaveLength(1);
    expect(lifecycles([api, web])).toEqual(['Proposed', 'Proposed']);
    expect(at.forge.pulls[0]?.body).toContain(`### \`${web}\``);
    const reply = at.forge.commentsOf.get(1)?.find(({ author }) => author === 'sluice')?.body;
    expect(reply).toContain(
      `**Refused**: \`${web}: it is not known that this pull request showed the package as it is now`,
    );
    // The host shows the head that has it.
    await headOf(1);
    await at.settle();
    at.forge.comment(1, 'bob', `/sluice approve ${web}`);
    await at.settle();
    expect(lifecycles([api, web])).toEqual(['Proposed', 'Published']);
  });
});
