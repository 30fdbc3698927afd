import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ALL_RUNS, runs } from '../../../../test/support/runs.ts';
import { decide } from '../../../package/kernel/decide.ts';
import type { RuleProblem } from '../../../package/model/policy/approval-rules.ts';
import type { RevisionState, TransitionRequest } from '../../../package/model/revision/revision-state.ts';
import { effectivePolicy, type SourcedPolicy } from '../../../package/store/policies/effective-policy.ts';
import { packagePolicyKind } from '../../../resource/kinds/sluice/package-policy.ts';
import { readPolicyFiles } from './read-policy-files.ts';

/** A Wednesday, 11:00 in Berlin. */
const NOW = '2026-01-14T10:00:00Z';
const TYPES = ['tested', 'Rendered', 'test.dev/v1.Report.x', 'signed'];
const PEOPLE = ['anna', 'ben', 'cleo'];
const PLACE = { namespace: 'default', repository: 'guard', branch: 'main', commit: 'c'.repeat(40) };
const REVISION = { key: { repository: 'apps', package: 'web', workspace: 'v1' } };

const type = fc.constantFrom(...TYPES);
const list = <T>(of: fc.Arbitrary<T>) => fc.array(of, { maxLength: 2 });
const gate = fc.record(
  { conditionType: type, approveOnly: fc.boolean(), boundTo: fc.constantFrom('content', 'object') },
  { requiredKeys: ['conditionType'] },
);
const recurrence = fc.record({
  cron: fc.constantFrom('0 9 * * 1-5', '0 9 * * 6'),
  duration: fc.constant('8h'),
  timeZone: fc.constant('Europe/Berlin'),
});
const restrictingApproval = {
  forbidSelfApproval: fc.boolean(),
  quorum: fc
    .record({
      required: fc.integer({ min: 1, max: 2 }),
      from: fc.subarray(['anna', 'group:sre']),
      excludeProposer: fc.boolean(),
      excludeContributors: fc.boolean(),
    })
    // One that can never be met is refused.
    .filter(({ required, from }) => required === 1 || from.join() !== 'anna'),
  windows: list(recurrence),
  freezes: list(recurrence),
  maxInFlight: fc.integer({ min: 1, max: 3 }),
  soak: fc.record({ proposed: fc.constantFrom('1h', '3h') }),
};
const restricting = {
  selector: fc.constantFrom({}, { repositories: ['apps'] }, { repositories: ['others'] }),
  requiredGates: list(gate),
  validFor: list(fc.record({ conditionType: type, duration: fc.constantFrom('1h', '48h') })),
  pushDenied: list(type),
  commitBudgetPerHour: fc.integer({ min: 0, max: 1000 }),
  gateDeadlines: list(fc.record({ conditionType: type, after: fc.constantFrom('30m', '24h') })),
};
const inRepository = fc.record(
  {
    ...restricting,
    pushMayGive: fc.constant(false),
    approval: fc.record(restrictingApproval, { requiredKeys: [] }),
  },
  { requiredKeys: [] },
);
const ofApi = fc.record(
  {
    ...restricting,
    pushMayGive: fc.boolean(),
    givers: list(fc.record({ conditionType: type, actors: fc.subarray(PEOPLE) })),
    approval: fc.record(
      { ...restrictingApproval, automatic: fc.boolean(), breakGlass: fc.subarray(['anna', 'group:sre']) },
      { requiredKeys: [] },
    ),
  },
  { requiredKeys: [] },
);

const condition = fc.record({ type, status: fc.constantFrom('True', 'False') });
const verdict = fc.record({
  type,
  status: fc.constantFrom('True', 'False'),
  inputs: fc.constantFrom<Record<string, string>>({ content: 'c1' }, { content: 'c0' }, { 'object:x': 'o' }),
  by: fc.constantFrom(...PEOPLE, 'push'),
  face: fc.constantFrom('api', 'git'),
  at: fc.constantFrom('2026-01-14T09:30:00Z', '2026-01-13T09:30:00Z'),
  since: fc.constant('2026-01-13T09:30:00Z'),
});
const state = fc
  .record({
    lifecycle: fc.constantFrom('Draft', 'Proposed'),
    gates: fc.subarray(TYPES),
    proposed: fc.subarray(TYPES),
    conditions: list(condition),
    verdicts: fc.array(verdict, { maxLength: 3 }),
    proposedBy: fc.constantFrom(...PEOPLE, undefined),
    contributors: fc.subarray([...PEOPLE, 'push']),
    approvals: fc.array(
      fc.record({
        subject: fc.constantFrom(...PEOPLE),
        content: fc.constantFrom('c1', 'c0'),
        groups: fc.subarray(['sre']),
      }),
      { maxLength: 3 },
    ),
    unchanged: fc.boolean(),
  })
  .map(
    (drawn) =>
      ({
        ...{ name: 'apps.web.v1', lifecycle: drawn.lifecycle, revision: 0, commit: 'c', problem: undefined },
        facts: {
          gates: drawn.gates,
          proposed: drawn.lifecycle === 'Proposed' ? drawn.proposed : [],
          conditions: new Map(drawn.conditions.map((one) => [one.type, one])),
          record: { version: 1, commit: 'c', verdicts: drawn.verdicts, steps: [] },
          inputs: { content: 'c1', object: () => 'o', file: () => undefined },
        },
        proposedBy: drawn.proposedBy,
        contributors: drawn.contributors.map((name) => ({ name, face: 'api', since: NOW })),
        approvals: drawn.approvals.map((one) => ({ ...one, tree: 't', at: NOW, face: 'api' })),
        ...{ siblings: [], nestedWith: undefined, dependents: [] },
        proposal: { at: '2026-01-14T08:00:00Z', isUnchanged: drawn.unchanged },
        refs: {
          ...{ main: 'main', draft: 'd', proposed: 'q', tag: undefined, deletionProposed: 'x' },
          tagFor: (next: number) => `v${next}`,
          conflictWith: () => undefined,
        },
        ...{ mainHead: 'm', deletionProposed: undefined },
      }) as unknown as RevisionState,
  );
const request = fc
  .record({
    name: fc.constantFrom(...PEOPLE, 'controller:approval'),
    groups: fc.subarray(['sre']),
    breakGlass: fc.boolean(),
  })
  .map(({ name, groups, breakGlass }) => ({
    actor: { name, groups },
    face: name.startsWith('controller:') ? 'controller' : 'api',
    ...(breakGlass ? { breakGlass, reason: 'the site is down' } : {}),
  }));

const apiPolicies = (specs: readonly object[]): SourcedPolicy[] =>
  specs.map((spec, at) => packagePolicyKind.complete({ metadata: { name: `api-${at}`, namespace: 'default' }, spec }));
const files = (specs: readonly object[]) =>
  specs.map((spec, at) => ({
    path: `policies/${at}.yaml`,
    data: Buffer.from(
      JSON.stringify({ apiVersion: 'sluice.dev/v1alpha1', kind: 'PackagePolicy', metadata: { name: `p${at}` }, spec }),
    ),
  }));

/** What a decision lets happen; an approval that is only recorded moves nothing. */
function moves(
  of: RevisionState,
  by: object,
  policies: readonly SourcedPolicy[],
  problems = new Map<string, RuleProblem>(),
) {
  const policy = effectivePolicy(REVISION, undefined, policies, {
    people: () => ({ signers: [], problems: [] }),
    policyProblems: () => problems,
    inFlight: () => [{ name: 'apps.other.v1' }],
  });
  const action = of.lifecycle === 'Draft' ? 'propose' : 'approve';
  const decision = decide(of, { action, ...by } as TransitionRequest, policy, NOW);
  return { isMoved: decision.allowed && decision.plan.length > 0, policy };
}

test('policies of a repository never permit what those of the API do not', () => {
  let restricted = 0;
  fc.assert(
    fc.property(state, request, fc.array(ofApi, { maxLength: 2 }), list(inRepository), (of, by, own, added) => {
      const api = apiPolicies(own);
      const before = moves(of, by, api);
      const after = moves(of, by, [...api, ...readPolicyFiles(files(added), PLACE)]);
      if (after.isMoved) expect(before.isMoved).toBe(true);
      else if (before.isMoved) restricted += 1;
      const [old, next] = [before.policy, after.policy];
      expect(next.commitBudgetPerHour).toBeLessThanOrEqual(old.commitBudgetPerHour);
      for (const [name, deadline] of Object.entries(old.gateDeadlines))
        expect(next.gateDeadlines[name]).toBeLessThanOrEqual(deadline);
      expect(next).toMatchObject({
        ...{ automatic: old.automatic, breakGlass: old.breakGlass, autoPropose: old.autoPropose },
        ...{ kptfileApprovals: old.kptfileApprovals, givers: old.givers, enforcement: old.enforcement },
      });
    }),
    { numRuns: runs(6000) },
  );
  if (ALL_RUNS) expect(restricted).toBeGreaterThan(100);
});

test('without a known state of a repository nothing is approved, except by break-glass', () => {
  const problem = { message: 'not known', since: NOW, resolvedBy: 'users who may push' };
  fc.assert(
    fc.property(state, request, fc.array(ofApi, { maxLength: 2 }), (of, by, own) => {
      const { isMoved } = moves(of, by, apiPolicies(own), new Map([['of Repository guard', problem]]));
      if (isMoved && of.lifecycle === 'Proposed') expect(by).toMatchObject({ breakGlass: true });
    }),
    { numRuns: runs(1000) },
  );
});
