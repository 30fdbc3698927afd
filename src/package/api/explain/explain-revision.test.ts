import { expect, test } from 'vitest';
import { packageKinds } from '../../../../test/support/package-kinds.ts';
import { anna, commitFiles, scratchRepository } from '../../../../test/support/scratch-repository.ts';
import { draft, publish } from '../../../../test/support/shop.ts';
import { openRepository } from '../../../git/open/open-repository.ts';
import { packageRevisionKind } from '../../../resource/kinds/porch/package-revision.ts';
import type { Gate } from '../../model/gates/gates.ts';
import { DEFAULT_POLICY, type EffectivePolicy } from '../../model/policy/policy.ts';
import type { RevisionStore } from '../../store/revision-store.ts';
import { explainRevision } from './explain-revision.ts';
import { stateExplainer } from './explain-state.ts';
import type { Explainer } from './explainer.ts';

const later: EffectivePolicy = {
  ...DEFAULT_POLICY,
  requiredGates: [{ conditionType: 'reviewed', approveOnly: false, policy: 'later' }],
};

async function explain(store: RevisionStore, name: string) {
  const gates: Pick<Gate, 'type' | 'state' | 'condition' | 'explanation'>[] = [];
  const spy: Explainer = {
    explain({ evaluation }) {
      gates.push(
        ...evaluation.gates.map(({ type, state, condition, explanation }) => ({ type, state, condition, explanation })),
      );
      return {};
    },
  };
  const surroundings = { resolvers: [], disabled: [], running: false, now: 0, actor: 'anna' };
  const { next } = await explainRevision(store, store.get(name), [spy, stateExplainer(store)], surroundings);
  return { gates, next };
}

test('the gates of a publication are those of its statement, whatever policies came later', async () => {
  await using scratch = await scratchRepository();
  let policy = DEFAULT_POLICY;
  const { store } = await packageKinds(scratch, { policyFor: () => policy });
  const name = await draft(store);
  await store.change(name, { kptfile: [{ op: 'addGate', conditionType: 'tested' }] }, anna);
  await store.change(name, { conditions: [{ type: 'tested', status: 'True' }] }, anna);
  await publish(store, name);
  policy = later;
  expect((await explain(store, name)).gates).toEqual([expect.objectContaining({ type: 'tested', state: 'Open' })]);
});

test('an out-of-band publication has no evaluated gates, but its conditions, a Ready condition and a next step', async () => {
  await using scratch = await scratchRepository();
  const { store, client } = await packageKinds(scratch, { policyFor: () => later });
  const git = await openRepository(scratch.path);
  const Kptfile = 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: shop\n';
  const conditions = 'status:\n  conditions:\n    - type: reviewed\n      status: "True"\n';
  await commitFiles(git, { 'shop/Kptfile': Kptfile + conditions }, scratch.clock.now());
  await git.close();
  await scratch.git('tag', 'shop/v9', 'main');
  await store.repository('packages').refresh();
  const { gates, next } = await explain(store, 'packages.shop.v9');
  expect(gates).toEqual([
    {
      ...{ type: 'reviewed', state: 'Unproven', condition: { type: 'reviewed', status: 'True' } },
      explanation:
        'no gate decided about it: it did not come through the gates, so that no record proves the condition',
    },
  ]);
  expect(next).toEqual(['sluice repo adopt packages']);
  const { status } = await client.get(packageRevisionKind, { name: 'packages.shop.v9' });
  expect(status?.conditions?.find(({ type }) => type === 'sluice.dev/Ready')).toMatchObject({
    ...{ status: 'False', reason: 'OutOfBand' },
  });
});
