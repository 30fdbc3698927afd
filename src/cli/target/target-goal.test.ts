import { expect, test } from 'vitest';
import { state } from '../../delivery/status/engine-report.ts';
import { targetDeployment } from '../../delivery/status/target-deployment.ts';
import { type DeliveryTarget, deliveryTargetKind } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import { setCondition } from '../../resource/object/condition.ts';
import { isReached, obstacleOf } from './target-goal.ts';

const GOOD = state('True', 'Healthy', '');
const WANTED = { name: 'apps.web.v6', repository: 'apps', package: 'web', revision: 6 };
const HEALTHY = { until: 'healthy', wanted: undefined } as const;
const WEB_HEALTHY = { until: 'healthy', wanted: WANTED } as const;

/** A target that delivered a revision of web, and db, all healthy. */
function target(
  ready: { readonly status: 'True' | 'False'; readonly reason: string; readonly message?: string },
  spec: Partial<DeliveryTarget['spec']> = {},
  observedGeneration = 3,
): DeliveryTarget {
  const complete = deliveryTargetKind.complete({
    metadata: { name: 'edge', generation: 3 },
    spec: { selector: {}, git: { repo: 'file:///x.git' }, engine: { type: 'Flux' }, ...spec },
  });
  const packages = [
    { repository: 'apps', package: 'db', revision: 1, commit: 'c', tree: 't' },
    { repository: 'apps', package: 'web', revision: 5, commit: 'c', tree: 't' },
  ];
  const deployment = targetDeployment(
    packages.map((one) => ({ ...one, synced: GOOD, healthy: GOOD })),
    { delivered: GOOD, commit: 'c', objects: [], before: undefined, now: 0 },
  );
  const condition = { type: 'Ready', message: '', ...ready, observedGeneration };
  return {
    ...complete,
    status: { lastCommit: 'c', deployment, conditions: [...setCondition(undefined, condition, 0)] },
  };
}

const DELIVERED = { status: 'True', reason: 'Delivered' } as const;
const REFUSED = {
  status: 'False',
  reason: 'Partial',
  message: '1 package is delivered; apps/web: UnencryptedSecret: Secret web/a is not encrypted',
} as const;

test('a state counts only with the delivery of everything that the present spec selects', () => {
  expect(isReached(target(DELIVERED), HEALTHY, 5)).toBe(true);
  expect(isReached(target(DELIVERED, {}, 2), HEALTHY, 5)).toBe(false);
  expect(isReached(target({ status: 'False', reason: 'Suspended' }), HEALTHY, 5)).toBe(false);
  expect(isReached(target(REFUSED), HEALTHY, 5)).toBe(false);
  expect(isReached(target(DELIVERED), { until: undefined, wanted: undefined }, 5)).toBe(false);
});

test('a revision counts once the target has it, whatever the other packages are', () => {
  expect(isReached(target(DELIVERED), WEB_HEALTHY, 5)).toBe(false);
  expect(isReached(target(DELIVERED), WEB_HEALTHY, 6)).toBe(true);
  expect(isReached(target({ ...REFUSED, message: '1 package is delivered; apps/x: no' }), WEB_HEALTHY, 6)).toBe(true);
  expect(isReached(target(DELIVERED), { until: undefined, wanted: WANTED }, 6)).toBe(true);
});

test('what keeps a target from a revision is named', () => {
  const pin = { repository: 'apps', package: 'web', revision: 4 };
  const rollback = { repository: 'apps', package: 'web', from: 6, to: 5, time: '', reason: 'Degraded' };
  const back = target(DELIVERED);
  const cases: [DeliveryTarget, number, string | undefined][] = [
    [target(DELIVERED), 5, undefined],
    [target(REFUSED), 6, undefined],
    [target(REFUSED), 5, 'UnencryptedSecret: Secret web/a is not encrypted'],
    [target(REFUSED, {}, 2), 5, undefined],
    [target({ status: 'False', reason: 'BranchMissing', message: 'no main' }), 5, 'BranchMissing: no main'],
    [target(DELIVERED, { suspend: true }), 5, 'the target is suspended (spec.suspend)'],
    [target(DELIVERED, { pins: [pin] }), 4, 'v4 is pinned there (spec.pins)'],
    [target(DELIVERED), 7, 'v7 is delivered there already'],
    [
      { ...back, status: { ...back.status, rollbacks: [rollback] } },
      5,
      'v6 failed there, so v5 is delivered: Degraded',
    ],
  ];
  for (const [one, delivered, expected] of cases) expect(obstacleOf(one, WANTED, delivered)).toBe(expected);
});
