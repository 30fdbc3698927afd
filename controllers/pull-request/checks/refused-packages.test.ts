import { beforeEach, describe, expect, test } from 'vitest';
import { explainRevision } from '../../../src/package/api/explain/explain-revision.ts';
import { kernelExplainer } from '../../../src/package/api/explain/explain-state.ts';
import { eachProposals, GATE, type Proposals } from '../../../test/support/proposal-bench.ts';
import { approvalExplainer } from '../../approval/explain-approval.ts';
import { gateExplainer } from '../../revision/explain-gates.ts';
import { pullRequestExplainer } from '../explain-pull-request.ts';

const SURROUNDINGS = { disabled: [], resolvers: [], running: true, now: 0, actor: 'anna' };
const MISSPELT = 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetdata:\n  name: app\n';
const BROKEN = 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata: {name: app\n';
const REPAIR = ['rpkg reject', 'rpkg pull', 'edit the files in', 'rpkg push', 'rpkg propose'];

describe('the pull request of a package that the kernel refuses', () => {
  const open = eachProposals();
  let at: Proposals;
  beforeEach(() => {
    at = open();
  });
  const ready = (name: string) => at.forge.checks.get(at.revision(name).commit)?.get('sluice/ready');
  const body = () => at.forge.pulls[0]?.body ?? '';
  const push = async (files: Readonly<Record<string, string>>) => {
    await at.world.push(at.path, files, 'proposed/app/w1', 'proposed/app/w1');
    await at.world.store.repository('apps').refresh();
  };
  const explain = async (name: string) => {
    const { store } = at.world;
    const explainers = [kernelExplainer, gateExplainer, approvalExplainer({ store }), pullRequestExplainer(store)];
    return explainRevision(store, at.revision(name), explainers, SURROUNDINGS);
  };
  /** The beginnings of the next steps, without what they are about. */
  const steps = async (name: string) =>
    (await explain(name)).next.map((line) => line.replace(/^sluice /, '').replace(/ ?(apps\.)?app[.-].*$/, ''));

  describe.each(['merge', 'review', 'approval'])('publishOn: %s', (publishOn) => {
    test.each([
      [
        'kpt rejects its Kptfile',
        MISSPELT,
        'kpt rejects a Kptfile of the package',
        'InvalidKptfile',
        'Invalid Kptfile',
      ],
      ['its Kptfile is unreadable', BROKEN, 'The package cannot be read', 'Unreadable', 'Unreadable'],
    ])('fails the check until it is repaired: %s', async (_, kptfile, title, reason, heading) => {
      await at.policy({ publishOn });
      const name = await at.propose();
      await at.reconcile(name);
      expect(ready(name)?.state).toBe('success');
      await push({ 'app/Kptfile': kptfile });
      await at.review(1, 'carl', 'approved', at.revision(name).commit);
      await at.reconcile(name);
      expect(ready(name)).toMatchObject({ state: 'failure', title: expect.stringContaining(title) });
      expect(ready(name)?.text).toContain('rpkg reject');
      expect(body()).toContain(`**${heading}`);
      expect(body().includes('A merge now would publish nothing.')).toBe(publishOn === 'merge');
      expect(body()).not.toContain('**Approved:**');
      expect(await at.world.events(name)).toContainEqual(expect.stringMatching(new RegExp(`^${reason}: `)));
      expect(await steps(name)).toEqual(REPAIR);
      expect(at.revision(name).lifecycle).toBe('Proposed');
    });
  });

  test('has the repair as the only next step, however many gates are closed', async () => {
    await at.policy({ publishOn: 'merge' }, { requiredGates: [{ conditionType: GATE, approveOnly: true }] });
    const name = await at.propose();
    await push({ 'app/Kptfile': MISSPELT });
    await at.reconcile(name);
    expect(ready(name)).toMatchObject({ state: 'failure' });
    expect(await steps(name)).toEqual(REPAIR);
  });

  test('fails the check of a package below another one, which only a deletion ends', async () => {
    await at.policy({ publishOn: 'merge' });
    const name = await at.propose();
    await at.reconcile(name);
    await at.world.push(
      at.path,
      { 'app/inner/Kptfile': MISSPELT.replace('metdata', 'metadata') },
      'drafts/app/inner/w1',
    );
    await at.world.store.repository('apps').refresh();
    await at.reconcile(name);
    expect(ready(name)).toMatchObject({ state: 'failure', title: expect.stringContaining('above or below another') });
    expect(await steps(name)).toEqual(['rpkg reject', 'rpkg del']);
  });

  test('is green again once a push has repaired it', async () => {
    await at.policy({ publishOn: 'merge' });
    const name = await at.propose();
    await push({ 'app/Kptfile': MISSPELT });
    await at.reconcile(name);
    await push({ 'app/Kptfile': MISSPELT.replace('metdata', 'metadata') });
    await at.reconcile(name);
    expect(ready(name)?.state).toBe('success');
    expect(body()).not.toContain('Invalid Kptfile');
    expect(await steps(name)).toEqual(['merge its pull request']);
  });
});
