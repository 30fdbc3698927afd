import { expect, test } from 'vitest';
import { withDeployment } from '../../../controllers/deployment-status/explain-deployment.ts';
import { deliveredBy, storedTarget } from '../../../test/support/delivered.ts';
import { packagesDigest } from '../../delivery/delivered/delivered-package.ts';
import { targetDeployment } from '../../delivery/status/target-deployment.ts';
import type { Explanation } from '../../package/model/revision/explanation.ts';
import type { PackageRevision } from '../../package/model/revision/package-revision.ts';
import { deliveryTargetKind } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import { Terminal } from '../output/terminal.ts';
import { printExplanation } from './print-explanation.ts';

const NOW = Date.parse('2030-01-01T01:00:00Z');

const packages = [{ repository: 'apps', package: 'upf', revision: 2, commit: '', tree: '' }];
const deployment = targetDeployment(
  packages.map((one) => ({
    ...one,
    synced: { status: 'True', reason: 'Synced', message: 'applied' } as const,
    healthy: {
      status: 'False',
      reason: 'Degraded',
      message: 'Kustomization flux-system/edge-east: Deployment upf not ready: 2/3',
    } as const,
  })),
  {
    ...{ delivered: { status: 'True', reason: 'Delivered', message: '' } as const, commit: 'c', objects: [] },
    ...{ before: undefined, now: NOW - 180_000 },
  },
);
const target = storedTarget({
  ...deliveryTargetKind.complete({
    metadata: { name: 'edge-east' },
    spec: { selector: {}, git: { repo: 'file:///site.git' } },
  }),
  status: { packageCount: 1, lastCommit: 'c', deployment },
});
const packagesOf = deliveredBy([target, packages]);
const delivered = {
  target: 'edge-east',
  state: 'Delivered',
  commit: 'c'.repeat(40),
  at: '2030-01-01T00:56:00Z',
  message: 'on branch main',
};
const revision = (number: number) =>
  ({ key: { repository: 'apps', package: 'upf', workspace: 'v2' }, revision: number }) as PackageRevision;

test('why prints when a revision was delivered, and what the engine reports of it', () => {
  let text = '';
  const out = {
    write(part: string) {
      text += part;
    },
  };
  const explanation = {
    ...{
      name: 'apps.upf.v2',
      repository: 'apps',
      package: 'upf',
      workspace: 'v2',
      lifecycle: 'Published',
      revision: 2,
    },
    ...{ latest: true, commit: 'c'.repeat(40), enforcement: 'enforce', gates: [], contributors: [], reasons: [] },
    ...{
      resolvers: [],
      next: [],
      delivery: [{ ...withDeployment(delivered, revision(2), target, packagesOf), notes: ['drifted: \u001b[31mx'] }],
    },
  } satisfies Explanation;
  printExplanation(new Terminal(out, out, { NO_COLOR: '1' }), explanation, NOW);
  expect(text).toContain('edge-east: Delivered commit cccccccccccc 4m ago: on branch main\n');
  expect(text).toMatch(/^ {6}note {5}drifted: [^\u001b]*x$/m);
  expect(text).toContain('      synced   True, since 3m: Synced\n');
  expect(text).toContain(
    '      healthy  False, since 3m: Degraded: Kustomization flux-system/edge-east: Deployment upf not ready: 2/3\n',
  );
  // A code without a message is printed as its words.
  text = '';
  const gate = {
    ...{ type: 'Tested', open: true, state: 'Open', requiredBy: ['policy p'], approveOnly: false, explanation: '' },
    ...{ condition: { status: 'True', reason: 'AllTestsPassed' }, boundTo: [], changed: [], settledBy: 'anyone' },
  };
  const away = { target: 'edge-east', state: 'NotDelivered', message: 'suspended' };
  printExplanation(new Terminal(out, out, { NO_COLOR: '1' }), { ...explanation, gates: [gate], delivery: [away] }, NOW);
  expect(text).toContain('          condition   True: All tests passed\n');
  expect(text).toContain('  edge-east: Not delivered: suspended\n');
  // Approvals that any user may give have no line, and no empty one either.
  text = '';
  const approvals = { needed: 1, given: [], barred: [] };
  printExplanation(new Terminal(out, out, { NO_COLOR: '1' }), { ...explanation, approvals }, NOW);
  expect(text).not.toContain('\n\n\n');
});

test('a report about another revision or an earlier delivery is left out', () => {
  expect(withDeployment(delivered, revision(1), target, packagesOf)).toBe(delivered);
  const later = { ...target, status: { ...target.status, lastCommit: 'd' } };
  expect(withDeployment(delivered, revision(2), later, packagesOf)).toBe(delivered);
  const ahead = { ...target, status: { ...target.status, packagesDigest: packagesDigest([]) } };
  expect(withDeployment(delivered, revision(2), ahead, packagesOf)).toBe(delivered);
  const other = { target: 'edge-east', state: 'NotDelivered', message: 'x' };
  expect(withDeployment(other, revision(2), target, packagesOf)).toBe(other);
});
