import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ALL_RUNS, runs } from '../../../test/support/runs.ts';
import { deliveryTargetKind } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import { state } from '../status/engine-report.ts';
import { healthyContent, type TargetDeployment, targetDeployment } from '../status/target-deployment.ts';
import { decideRollbacks, type Observations } from './decide-rollbacks.ts';

/*
 * Random histories of the packages of a target that one object of the engine deploys, such as the Kustomization of "target init flux":
 * each report is about all of them. Restarts of the process lose what it observed, not what the status has. During an outage the engine
 * cannot be read, so that contents are not compared.
 */

const NAMES = ['db', 'settings', 'web'] as const;
type Name = (typeof NAMES)[number];
const GOOD = state('True', 'Healthy', '');
const BAD = state('False', 'Degraded', '[Deployment/web status: Failed]');
const PENDING = state('Unknown', 'Progressing', '');
const LOST = state('Unknown', 'Unreachable', '');

type Step =
  | { readonly type: 'deliver'; readonly names: readonly Name[] }
  | { readonly type: 'report'; readonly health: typeof GOOD }
  | { readonly type: 'pass'; readonly minutes: number }
  | { readonly type: 'restart' };

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 2, arbitrary: fc.record({ type: fc.constant('deliver' as const), names: fc.subarray([...NAMES]) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      type: fc.constant('report' as const),
      health: fc.constantFrom(GOOD, BAD, BAD, PENDING, LOST),
    }),
  },
  { weight: 3, arbitrary: fc.record({ type: fc.constant('pass' as const), minutes: fc.nat(8) }) },
  fc.constant<Step>({ type: 'restart' }),
);

/** A failure after the delivery of some of the packages, which random steps alone reach seldom. */
const failure: fc.Arbitrary<readonly Step[]> = fc
  .tuple(fc.subarray([...NAMES], { minLength: 1 }), fc.array(fc.constantFrom(LOST, PENDING), { maxLength: 2 }))
  .map(([names, before]) => [
    { type: 'report', health: GOOD },
    { type: 'deliver', names },
    ...before.map((health) => ({ type: 'report', health }) as const),
    { type: 'report', health: BAD },
    { type: 'pass', minutes: 11 },
  ]);
const steps: fc.Arbitrary<readonly Step[]> = fc
  .tuple(fc.oneof(fc.constant([]), failure), fc.array(step, { maxLength: 40 }))
  .map(([first, others]) => [...first, ...others]);

function history(sequence: readonly Step[], isShared: boolean): { readonly due: number; readonly spared: number } {
  const revisions = new Map<Name, number>(NAMES.map((name) => [name, 1]));
  // The trees of the target's directory that the engine's reports were compared with, by id.
  const trees = new Map<string, ReadonlyMap<Name, number>>();
  // The oracle: the packages that were reported as healthy in their present revision.
  const healthy = new Set<Name>();
  let [monotonicMs, commits, due, spared] = [0, 1, 0, 0];
  let deployment: TargetDeployment | undefined;
  let observations: Observations = new Map();
  for (const one of sequence) {
    if (one.type === 'deliver' && one.names.length > 0) {
      commits += 1;
      for (const name of one.names) {
        revisions.set(name, (revisions.get(name) ?? 0) + 1);
        healthy.delete(name);
      }
    } else if (one.type === 'report') {
      const isRead = one.health !== LOST;
      const tree = isRead ? `tree of d${commits}` : undefined;
      if (tree !== undefined) trees.set(tree, new Map(revisions));
      const packages = NAMES.map((name) => {
        const healthyIn = deployment && healthyContent(deployment, { repository: 'apps', package: name });
        const known = healthyIn === undefined ? undefined : trees.get(healthyIn)?.get(name);
        return {
          ...{ repository: 'apps', package: name, synced: state('True', 'Synced', ''), healthy: one.health, isShared },
          isUnchanged: isRead ? known === revisions.get(name) : undefined,
        };
      });
      if (one.health === GOOD) for (const name of NAMES) healthy.add(name);
      deployment = targetDeployment(packages, {
        ...{ delivered: GOOD, commit: `d${commits}`, tree, objects: [], before: deployment, now: monotonicMs },
      });
    } else if (one.type === 'pass') monotonicMs += one.minutes * 60_000;
    else if (one.type === 'restart') observations = new Map();
    const complete = deliveryTargetKind.complete({
      metadata: { name: 'edge' },
      spec: {
        selector: {},
        git: { repo: 'file:///x.git' },
        engine: { type: 'Flux' },
        rollback: { unhealthyAfter: '10m' },
      },
    });
    const delivered = NAMES.map((name) => {
      const revision = revisions.get(name) ?? 0;
      return { repository: 'apps', package: name, revision, commit: `c${revision}`, tree: 't' };
    });
    const target = { ...complete, status: { lastCommit: `d${commits}`, deployment } };
    const decision = decideRollbacks(target, delivered, observations, {
      ...{ monotonicMs, highestOf: (name) => revisions.get(name.package as Name) },
    });
    observations = decision.observations;
    const names = decision.due.map((found) => found.delivered.package as Name);
    for (const name of names) {
      due += 1;
      if (isShared) expect(healthy.has(name), `${name} was healthy with its revision`).toBe(false);
    }
    if (names.length === 0) continue;
    for (const name of NAMES) {
      if (isShared) expect(names.includes(name), 'each other package counts').toBe(!healthy.has(name));
      if (!names.includes(name)) spared += 1;
    }
  }
  return { due, spared };
}

test('property: of packages that share a report only those are rolled back that were not healthy with their revision', () => {
  let [due, spared] = [0, 0];
  fc.assert(
    fc.property(steps, (sequence) => {
      const result = history(sequence, true);
      due += result.due;
      spared += result.spared;
    }),
    { numRuns: runs(2000) },
  );
  if (ALL_RUNS)
    expect([due > 0, spared > 0], 'the histories reach rollbacks, and packages that stay').toEqual([true, true]);
});

test('a package with a report of its own is rolled back although it was healthy for a while', () => {
  const sequence: Step[] = [
    { type: 'report', health: PENDING },
    { type: 'report', health: GOOD },
    { type: 'report', health: BAD },
    { type: 'pass', minutes: 11 },
  ];
  expect(history(sequence, false).due).toBe(3);
  expect(history(sequence, true).due).toBe(0);
});
