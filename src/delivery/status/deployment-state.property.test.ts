import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ALL_RUNS, runs } from '../../../test/support/runs.ts';
import { type ConfirmedHealth, coveringReports, deploymentState, type TreeAt } from './deployment-state.ts';
import type { EngineReport } from './engine-report.ts';
import { interpretApplication } from './interpret-application.ts';
import { interpretCommitStatuses, matchesContext, statusesIn } from './interpret-commit-statuses.ts';
import { interpretKustomization } from './interpret-kustomization.ts';
import { deploymentOf, type TargetDeployment, targetDeployment } from './target-deployment.ts';

/** Eight commits with three contents; the last two are not in the mirror. */
const COMMITS = [...'01234567'].map((digit) => digit.repeat(40));
const contentOf = (commit: string) => ['x', 'y', 'z'][Number(commit[0]) % 3] as string;
const treeAt: TreeAt = (commit) => (commit[0] === '6' || commit[0] === '7' ? 'unknown' : contentOf(commit));

const commit = fc.constantFrom(...COMMITS);
const revision = fc.oneof(commit, fc.constantFrom(undefined, 'main', '', 'main@sha1:', 'HEAD'), fc.jsonValue());
const fluxRevision = fc.oneof(
  commit.map((id) => `main@sha1:${id}`),
  commit.map((id) => `sha1:${id}`),
  revision,
);
const time = fc.integer({ min: 0, max: 600 }).map((seconds) => new Date(1_000_000 + seconds * 1000).toISOString());
const sometimes = <T>(value: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 9, arbitrary: value as fc.Arbitrary<unknown> }, fc.jsonValue());

const kustomization = fc.record({
  metadata: fc.constant({ name: 'edge', namespace: 'flux-system', generation: 1 }),
  spec: fc.record({
    path: fc.constant('./edge'),
    wait: fc.boolean(),
    suspend: fc.constantFrom(undefined, false, true),
  }),
  status: sometimes(
    fc.record({
      observedGeneration: fc.constantFrom(1, 1, 1, 0),
      lastAppliedRevision: fluxRevision,
      lastAttemptedRevision: fluxRevision,
      conditions: sometimes(
        fc.array(
          sometimes(
            fc.record({
              type: fc.constantFrom('Ready', 'Ready', 'Healthy', 'Stalled', 'Reconciling'),
              status: fc.constantFrom('True', 'False', 'Unknown'),
              reason: fc.constantFrom(
                'ReconciliationSucceeded',
                'HealthCheckFailed',
                'BuildFailed',
                'DependencyNotReady',
              ),
              message: fc.constantFrom(
                '',
                ...COMMITS.map((id) => `Running health checks for revision main@sha1:${id} with`),
              ),
            }),
          ),
        ),
      ),
    }),
  ),
});

const application = fc.record({
  metadata: fc.constant({ name: 'edge' }),
  spec: fc.constant({ source: { path: 'edge' } }),
  status: sometimes(
    fc.record({
      sync: sometimes(fc.record({ status: fc.constantFrom('Synced', 'OutOfSync', 'Unknown'), revision })),
      health: sometimes(
        fc.record({
          status: fc.constantFrom('Healthy', 'Healthy', 'Degraded', 'Progressing', 'Suspended', 'Missing'),
          lastTransitionTime: time,
        }),
      ),
      reconciledAt: sometimes(time),
      operationState: sometimes(
        fc.record({
          phase: fc.constantFrom('Succeeded', 'Succeeded', 'Failed', 'Error', 'Running'),
          finishedAt: time,
          syncResult: sometimes(fc.record({ revision })),
        }),
      ),
      history: sometimes(fc.array(fc.record({ revision }))),
      conditions: fc.constantFrom([], [], [{ type: 'ComparisonError' }]),
    }),
  ),
});

const statuses = fc.record({
  statuses: sometimes(
    fc.array(
      fc.record({ context: fc.string(), state: fc.constantFrom('success', 'failure', 'pending', 'error', 'odd') }),
    ),
  ),
});

/** The contents that an engine's object names anywhere as applied: a check that shares no code with the interpretation. */
function namedAsApplied(value: unknown): Set<string> {
  const { status } = value as { status?: unknown };
  const fields = (typeof status === 'object' ? status : undefined) as Record<string, never> | undefined;
  const { lastAppliedRevision, sync, operationState, history } = (fields ?? {}) as Record<string, unknown>;
  const named: unknown[] = [lastAppliedRevision];
  const at = (object: unknown, ...path: string[]): unknown =>
    path.reduce<unknown>((inner, key) => (inner as Record<string, unknown> | null | undefined)?.[key], object);
  if (at(sync, 'status') === 'Synced') named.push(at(sync, 'revision'));
  if (at(operationState, 'phase') === 'Succeeded') named.push(at(operationState, 'syncResult', 'revision'));
  if (Array.isArray(history)) named.push(at(history.at(-1), 'revision'));
  return new Set(
    named.flatMap((text) => {
      const [id] = (typeof text === 'string' ? /[0-9a-f]{40}$/.exec(text) : null) ?? [];
      return id === undefined || treeAt(id, '') === 'unknown' ? [] : [contentOf(id)];
    }),
  );
}

/** Reports of success, which the random ones seldom are. */
const goodKustomization = commit.map((id) => ({
  metadata: { name: 'edge', generation: 1 },
  spec: { path: './edge', wait: true },
  status: {
    observedGeneration: 1,
    lastAppliedRevision: `main@sha1:${id}`,
    lastAttemptedRevision: `main@sha1:${id}`,
    conditions: [{ type: 'Ready', status: 'True' }],
  },
}));
const goodApplication = commit.map((id) => ({
  metadata: { name: 'edge' },
  spec: { source: { path: 'edge' } },
  status: {
    sync: { status: 'Synced', revision: id },
    health: { status: 'Healthy', lastTransitionTime: '1970-01-01T00:00:00Z' },
    reconciledAt: '1970-01-01T00:00:01Z',
  },
}));

const step = fc.record({
  engine: fc.oneof(
    goodKustomization.map((value) => ({ value: value as unknown, isArgo: false })),
    goodApplication.map((value) => ({ value: value as unknown, isArgo: true })),
    kustomization.map((value) => ({ value: value as unknown, isArgo: false })),
    application.map((value) => ({ value: value as unknown, isArgo: true })),
    fc.jsonValue().map((value) => ({ value: value as unknown, isArgo: false })),
  ),
  /** The content that Sluice delivered last. */
  delivered: fc.constantFrom('x', 'x', 'y', 'z'),
  /** Milliseconds by which the clock moves, back too. */
  jump: fc.oneof(fc.integer({ min: 0, max: 60_000 }), fc.integer({ min: -86_400_000, max: 86_400_000 })),
});

test('no sequence of reports makes a content healthy that the engine did not report as applied, and since never goes back', () => {
  let healthy = 0;
  fc.assert(
    fc.property(fc.array(step, { maxLength: 25 }), (steps) => {
      let now = 1_000_000_000;
      let confirmed: ConfirmedHealth | undefined;
      let before: TargetDeployment | undefined;
      const everApplied = new Set<string>();
      for (const { engine, delivered, jump } of steps) {
        now = Math.max(0, now + jump);
        const report = engine.isArgo
          ? interpretApplication(engine.value, { now, healthSeenAt: 0 })
          : interpretKustomization(engine.value);
        const reports: EngineReport[] = report === undefined ? [] : [report];
        const result = deploymentState({ folder: 'edge/web', tree: delivered }, coveringReports('edge/web', reports), {
          ...{ treeAt, now, confirmed },
        });
        confirmed = result.confirmed;
        const applied =
          typeof engine.value === 'object' && engine.value !== null ? namedAsApplied(engine.value) : new Set();
        for (const content of applied) everApplied.add(content as string);
        if (result.healthy.status === 'True') {
          healthy += 1;
          expect(result.synced.status).toBe('True');
          // The content at present, even if its health is the earlier one of the same content.
          expect(applied).toContain(delivered);
        }
        const name = { repository: 'apps', package: 'web' };
        const next: TargetDeployment = targetDeployment([{ ...name, ...result }], {
          ...{ delivered: result.synced, commit: undefined, objects: [], before, now },
        });
        for (const part of ['synced', 'healthy'] as const) {
          const [last, present] = [before && deploymentOf(before, name)[part], deploymentOf(next, name)[part]];
          expect(present.status).toBe(result[part].status);
          if (last === undefined) continue;
          expect(Date.parse(present.since)).toBeGreaterThanOrEqual(Date.parse(last.since));
          if (last.status === present.status) expect(present.since).toBe(last.since);
        }
        before = next;
      }
    }),
    { numRuns: runs(1000) },
  );
  // The property is not true for lack of cases.
  if (ALL_RUNS) expect(healthy).toBeGreaterThan(0);
});

test('no value makes an interpretation throw, whatever its form', () => {
  fc.assert(
    fc.property(fc.oneof(fc.jsonValue(), kustomization, application, statuses), commit, (value, id) => {
      interpretKustomization(value);
      interpretApplication(value, { now: 0, healthSeenAt: 0 });
      interpretCommitStatuses(statusesIn(value), id, { target: '*', package: 'a/{package}' });
    }),
    { numRuns: runs(1000) },
  );
});

test('a pattern of contexts matches as the regular expression does', () => {
  const letters = fc.array(fc.constantFrom('a', 'b', '/', '*'), { maxLength: 8 }).map((list) => list.join(''));
  fc.assert(
    fc.property(letters, letters, (pattern, context) => {
      const expected = new RegExp(`^${pattern.replaceAll('*', '[^]*')}$`).test(context);
      expect(matchesContext(pattern, context)).toBe(expected);
    }),
    { numRuns: runs(1000) },
  );
});

test('the status of a target gives each package its state, whatever the number of groups, and its since never goes back', () => {
  const names = [...Array(40).keys()].map((index) => ({ repository: 'apps', package: `p${index}` }));
  const part = fc.constantFrom('True', 'True', 'True', 'False', 'Unknown');
  const round = fc.record({
    states: fc.array(fc.tuple(fc.nat(39), part, part), { maxLength: 30 }),
    jump: fc.integer({ min: -5000, max: 9000 }),
  });
  fc.assert(
    fc.property(fc.array(round, { maxLength: 10 }), (rounds) => {
      const present = new Map(names.map(({ package: path }) => [path, { synced: 'True', healthy: 'True' }]));
      let now = 1_000_000;
      let before: TargetDeployment | undefined;
      for (const { states, jump } of rounds) {
        now = Math.max(0, now + jump);
        for (const [index, synced, healthy] of states) present.set(`p${index}`, { synced, healthy });
        const evaluated = names.map((name) => {
          const { synced, healthy } = present.get(name.package) as { synced: 'True'; healthy: 'True' };
          const of = (status: 'True') => ({ status, reason: 'Synced' as const, message: status });
          return { ...name, synced: of(synced), healthy: of(healthy) };
        });
        const delivered = { status: 'True', reason: 'Delivered', message: '' } as const;
        const next = targetDeployment(evaluated, { delivered, commit: undefined, objects: [], before, now });
        for (const one of evaluated) {
          const after = deploymentOf(next, one);
          expect([after.synced.status, after.healthy.status]).toEqual([one.synced.status, one.healthy.status]);
          const earlier = before && deploymentOf(before, one);
          for (const which of ['synced', 'healthy'] as const)
            if (earlier !== undefined)
              expect(Date.parse(after[which].since)).toBeGreaterThanOrEqual(Date.parse(earlier[which].since));
        }
        before = next;
      }
    }),
    { numRuns: runs(200) },
  );
});
