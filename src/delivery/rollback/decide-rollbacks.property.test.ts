import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ALL_RUNS, runs } from '../../../test/support/runs.ts';
import { deliveryTargetKind } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import type { Rollback } from '../delivery-target.ts';
import { selectRevisions } from '../selection/select-revisions.ts';
import { state } from '../status/engine-report.ts';
import { type TargetDeployment, targetDeployment } from '../status/target-deployment.ts';
import { type DueRollback, decideRollbacks, type Observations } from './decide-rollbacks.ts';
import { EarlierRevisionSearch, type PastDelivery } from './earlier-revision.ts';

/*
 * Random histories of one package: publications, deliveries, reports of the engine, time that passes, jumps of the wall clock, restarts of
 * the process, and rollbacks that a user ends. Each rollback must follow from what the engine reported of the last delivery.
 */

const PACKAGE = { repository: 'packages', package: 'web' };
const LIMIT_MS = 600_000;
const REPORTS = {
  healthy: [state('True', 'Synced', ''), state('True', 'Healthy', '')],
  degraded: [state('True', 'Synced', ''), state('False', 'Degraded', '2/3')],
  missing: [state('True', 'Synced', ''), state('False', 'Missing', '')],
  failed: [state('False', 'Failed', 'denied'), state('False', 'Degraded', 'denied')],
  progressing: [state('True', 'Synced', ''), state('Unknown', 'Progressing', '')],
  stale: [state('Unknown', 'Syncing', ''), state('Unknown', 'Stale', '')],
  unreachable: [state('Unknown', 'Unreachable', ''), state('Unknown', 'Unreachable', '')],
  blocked: [state('Unknown', 'Blocked', ''), state('False', 'Degraded', '')],
  outOfSync: [state('False', 'OutOfSync', ''), state('Unknown', 'Stale', '')],
} as const;
type Report = keyof typeof REPORTS;
const FAILING: readonly Report[] = ['degraded', 'missing', 'failed'];

type Step =
  | { readonly type: 'publish'; readonly isTrusted: boolean }
  | { readonly type: 'report'; readonly report: Report }
  | { readonly type: 'pass'; readonly minutes: number }
  | { readonly type: 'jump'; readonly minutes: number }
  | { readonly type: 'restart' | 'resume' | 'distrust' };

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ type: fc.constant('publish' as const), isTrusted: fc.boolean() }) },
  {
    weight: 6,
    arbitrary: fc.record({
      type: fc.constant('report' as const),
      report: fc.constantFrom(...FAILING, ...(Object.keys(REPORTS) as Report[])),
    }),
  },
  { weight: 8, arbitrary: fc.record({ type: fc.constant('pass' as const), minutes: fc.nat(8) }) },
  fc.record({ type: fc.constant('jump' as const), minutes: fc.integer({ min: -500, max: 500 }) }),
  fc.constantFrom<Step>({ type: 'restart' }, { type: 'resume' }, { type: 'distrust' }),
);

test('property: a rollback follows from the last delivery alone, once, to an earlier delivery that counts', () => {
  let made = 0;
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const published = new Map<number, boolean>([[1, true]]);
      let [wall, monotonic, commits] = [1_000_000_000_000, 0, 0];
      let rollbacks: Rollback[] = [];
      let history: PastDelivery[] = [];
      let deployment: TargetDeployment | undefined;
      let observations: Observations = new Map();
      // The oracle: milliseconds for which the failure of the last delivery was observed.
      let failingMs = 0;
      let isRolledBackDelivery = false;
      const delivered = () => history[0]?.revision;

      const deliver = () => {
        const revisions = [...published].map(([revision, isTrusted]) => ({
          ...{ ...PACKAGE, revision },
          ...(isTrusted ? {} : { outOfBand: { reason: 'NotAnApproval', message: 'no' } }),
        }));
        const highest = Math.max(...published.keys());
        if (published.get(highest)) rollbacks = rollbacks.filter(({ from }) => from >= highest);
        const last = delivered();
        const { chosen } = selectRevisions({ rollbacks, allowOutOfBand: false }, revisions, {
          delivered: new Map(
            last === undefined ? [] : [['packages/web', { ...PACKAGE, revision: last, hasFolder: true }]],
          ),
          isSelected: () => true,
          isDeleted: () => false,
        });
        const [choice] = chosen;
        if (choice === undefined || choice.revision === last) return;
        commits += 1;
        history = [{ revision: choice.revision, sourceCommit: `c${choice.revision}`, time: wall }, ...history];
        failingMs = 0;
        isRolledBackDelivery = false;
        report('stale');
      };
      const report = (name: Report) => {
        const [synced, healthy] = REPORTS[name];
        if (!FAILING.includes(name)) failingMs = 0;
        deployment = targetDeployment([{ ...PACKAGE, synced, healthy }], {
          ...{ delivered: state('True', 'Synced', ''), commit: `d${commits}`, objects: [] },
          ...{ before: deployment, now: wall },
        });
      };
      const isFailing = () =>
        FAILING.includes((Object.keys(REPORTS) as Report[]).find((name) => isNow(name)) ?? 'healthy');
      const isNow = (name: Report) =>
        REPORTS[name][0].reason === deployment?.synced.reason && REPORTS[name][1].reason === deployment.healthy.reason;

      deliver();
      for (const one of steps) {
        if (one.type === 'publish') published.set(Math.max(...published.keys()) + 1, one.isTrusted);
        else if (one.type === 'distrust') published.set(Math.max(...published.keys()), false);
        else if (one.type === 'report') report(one.report);
        else if (one.type === 'jump') wall += one.minutes * 60_000;
        else if (one.type === 'restart') [observations, failingMs] = [new Map(), 0];
        else if (one.type === 'resume') {
          rollbacks = [];
          // Before the rollback is delivered, only the controller knows that the user keeps the revision.
          isRolledBackDelivery = false;
        } else if (one.type === 'pass') {
          wall += one.minutes * 60_000;
          monotonic += one.minutes * 60_000;
          if (isFailing()) failingMs += one.minutes * 60_000;
        }
        deliver();
        const revision = delivered() ?? 0;
        const complete = deliveryTargetKind.complete({
          metadata: { name: 'edge' },
          spec: {
            selector: {},
            git: { repo: 'file:///x.git' },
            engine: { type: 'Flux' },
            rollback: { unhealthyAfter: '10m' },
          },
        });
        const target = {
          ...complete,
          status: { lastCommit: `d${commits}`, rollbacks, deployment },
        };
        const packages = [{ ...PACKAGE, revision, commit: `c${revision}`, tree: 't' }];
        const highest = Math.max(...published.keys());
        const decision = decideRollbacks(target, packages, observations, {
          monotonicMs: monotonic,
          highestOf: () => highest,
        });
        observations = decision.observations;
        for (const due of decision.due) {
          expect(isFailing(), 'only a failure of the delivered content').toBe(true);
          expect(failingMs, 'for long enough, whatever the wall clock does').toBeGreaterThanOrEqual(LIMIT_MS);
          expect(revision, 'only the highest revision').toBe(highest);
          expect([isRolledBackDelivery, rollbacks], 'once for a delivery').toEqual([false, []]);
          const found = earlierRevision(due, history, (number) => published.get(number) === true);
          if ('because' in found) continue;
          made += 1;
          expect(found.to, 'a lower revision').toBeLessThan(revision);
          expect(
            history.map((past) => past.revision),
            'one that was delivered',
          ).toContain(found.to);
          expect(published.get(found.to), 'one that counts').toBe(true);
          isRolledBackDelivery = true;
          rollbacks = [{ ...PACKAGE, from: revision, to: found.to, time: '2026-01-01T00:00:00Z', reason: 'Degraded' }];
          const before = decideRollbacks(
            { ...target, status: { ...target.status, rollbacks } },
            packages,
            observations,
            {
              ...{ monotonicMs: monotonic + 10 * LIMIT_MS, highestOf: () => highest },
            },
          );
          expect(before.due, 'none while there is one').toEqual([]);
        }
      }
    }),
    { numRuns: runs(3000) },
  );
  if (ALL_RUNS) expect(made, 'the histories reach rollbacks').toBeGreaterThan(0);
});

/** The result for a history, the newest delivery first. */
function earlierRevision(
  due: DueRollback,
  history: readonly PastDelivery[],
  counts: (revision: number, sourceCommit: string) => boolean,
) {
  const search = new EarlierRevisionSearch(due, counts);
  for (const past of history) {
    const result = search.add(past);
    if (result !== undefined) return result;
  }
  return search.end();
}

test('the failure must begin within an hour after the delivery, and the branch must show the delivery', () => {
  const delivered = { ...PACKAGE, revision: 2, commit: 'c2', tree: 't' };
  const past = (revision: number | undefined, time: number): PastDelivery => ({
    revision,
    sourceCommit: `c${revision}`,
    time,
  });
  const at = (since: number) => {
    const timed = { status: 'False' as const, reason: 'Degraded', message: '', since: new Date(since).toISOString() };
    return { delivered, state: { synced: timed, healthy: timed } };
  };
  const counts = () => true;
  expect(earlierRevision(at(1_000), [past(2, 0), past(1, 0)], counts)).toEqual({ to: 1 });
  // A repair of the folder repeats the delivery.
  expect(earlierRevision(at(3_700_000), [past(2, 3_600_000), past(2, 0), past(1, 0)], counts)).toMatchObject({
    because: expect.stringContaining('more than an hour after'),
  });
  expect(earlierRevision(at(1_000), [past(3, 0), past(2, 0), past(1, 0)], counts)).toMatchObject({
    because: expect.stringContaining('does not show'),
  });
  expect(earlierRevision(at(1_000), [past(2, 0), past(undefined, 0), past(1, 0)], counts)).toHaveProperty('because');
  expect(earlierRevision(at(1_000), [past(2, 0), past(1, 0)], () => false)).toHaveProperty('because');
});
