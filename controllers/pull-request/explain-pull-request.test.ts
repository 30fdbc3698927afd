import { expect, test } from 'vitest';
import type { ExplainedRevision } from '../../src/package/api/explain/explainer.ts';
import { eachProposals } from '../../test/support/proposal-bench.ts';
import { pullRequestExplainer } from './explain-pull-request.ts';
import { ShownProposals } from './shown-proposals.ts';

const open = eachProposals();
const SURROUNDINGS = { disabled: [], resolvers: [], running: true, now: 0, actor: '' };

test('an explanation has the number and the address of the pull request once they are known, and the branch before', async () => {
  const at = open();
  await at.policy();
  const shown = new ShownProposals();
  at.restart({ shown });
  const name = await at.propose();
  const explain = async (of: ShownProposals | undefined) => {
    const explained = { evaluation: await at.world.store.evaluate(name) } as ExplainedRevision;
    return (await pullRequestExplainer(at.world.store, of).explain(explained, SURROUNDINGS)).reasons?.[0]?.message;
  };
  const unknown = 'has it reviewed in the pull request of the branch proposed/app/w1 on git.example.com;';
  expect(await explain(shown)).toContain(unknown);
  await at.reconcile(name);
  expect(await explain(shown)).toContain(
    'has it reviewed in pull request #1 (https://git.example.com/owner/apps/pulls/1) of the branch proposed/app/w1 on git.example.com;',
  );
  expect(await explain(undefined)).toContain(unknown);
});
