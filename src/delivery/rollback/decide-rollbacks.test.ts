import { expect, test } from 'vitest';
import { deliveryTargetKind } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import { packagesDigest } from '../delivered/delivered-package.ts';
import { state } from '../status/engine-report.ts';
import { targetDeployment } from '../status/target-deployment.ts';
import { decideRollbacks, type Observations } from './decide-rollbacks.ts';

test('the failure of a revision is not observed of the next one, which is recorded before the status of the target', () => {
  const delivered = (revision: number) => [
    { repository: 'packages', package: 'web', revision, commit: `c${revision}`, tree: `t${revision}` },
  ];
  const [synced, healthy] = [state('True', 'Synced', ''), state('False', 'Degraded', '2/3')];
  const deployment = targetDeployment([{ repository: 'packages', package: 'web', synced, healthy }], {
    engine: undefined,
    delivered: state('True', 'Synced', ''),
    ...{ commit: 'c', objects: [], before: undefined, now: 0 },
  });
  const target = deliveryTargetKind.complete({
    metadata: { name: 'edge' },
    spec: {
      selector: {},
      git: { repo: 'file:///edge.git' },
      engine: { type: 'Flux' },
      rollback: { unhealthyAfter: '1s' },
    },
  });
  const status = { packageCount: 1, packagesDigest: packagesDigest(delivered(2)), lastCommit: 'c', deployment };
  const decide = (revision: number, before: Observations, monotonicMs: number) =>
    decideRollbacks({ ...target, status }, delivered(revision), before, { monotonicMs, highestOf: () => revision });
  const first = decide(2, new Map(), 0);
  expect([...first.observations.keys()]).toEqual(['packages/web']);
  expect(decide(2, first.observations, 1_000).due).toHaveLength(1);
  // Both reconciliations read the report about v2.
  const next = decide(3, first.observations, 0);
  expect([next.observations.size, decide(3, next.observations, 1_000).due]).toEqual([0, []]);
});
