import { expect, test } from 'vitest';
import { readPolicyFiles } from '../../src/app/policies/repository/read-policy-files.ts';
import type { SluiceError } from '../../src/foundation/sluice-error.ts';
import { cpuMilliseconds } from '../../src/foundation/time/cpu-time.ts';
import { blockingRules, MAX_PERIODS, nextRuleChange } from '../../src/package/kernel/blocking-rules.ts';
import { UNKNOWN_INPUTS } from '../../src/package/model/content/inputs.ts';
import { evaluateGates } from '../../src/package/model/gates/gates.ts';
import { DEFAULT_POLICY } from '../../src/package/model/policy/policy.ts';
import { approvalRuleOf } from '../../src/package/store/policies/effective-policy.ts';
import type { ManifestErrorDetails } from '../../src/resource/client/manifests.ts';

/**
 * A user who may push policies writes windows that are expensive to evaluate. Without bounds, each costs some tens of milliseconds in each
 * of several evaluations for one approval. Measured is processor time; the bounds are four to ten times what an idle machine needs.
 */

const PLACE = { namespace: 'team-a', repository: 'guard', branch: 'main', commit: '0123456789'.repeat(4) };
const NOW = '2026-11-28T19:00:00Z';
const FACTS = { name: 'apps.web.v1' };

/** A file with windows and freezes, 20 each in a policy; `days` are the last three fields. */
function fileOf(count: number, days: string, hour = 0): { path: string; data: Buffer } {
  const period = (at: number) =>
    `    - {cron: "${at % 60} ${hour + Math.floor(at / 60)} ${days}", duration: 1m, timeZone: Europe/Berlin}\n`;
  let text = '';
  for (let at = 0; at < count; at += 1) {
    if (at % 40 === 0)
      text += `---\napiVersion: sluice.dev/v1alpha1\nkind: PackagePolicy\nmetadata: {name: p${at}}\nspec:\n  approval:\n`;
    if (at % 20 === 0) text += `    ${at % 40 === 0 ? 'windows' : 'freezes'}:\n`;
    text += period(at);
  }
  return { path: `policies/${hour}.yaml`, data: Buffer.from(text) };
}

function cost(action: () => void): number {
  const start = cpuMilliseconds();
  action();
  return cpuMilliseconds() - start;
}

test.each(['29 2 0#1', '* 2 0#5', '29 2 *', '31W * 7L', '* * *'])(
  'as many periods as a repository may have, on days "%s", cost little, and nothing when they are evaluated again',
  (days) => {
    const rules: ReturnType<typeof approvalRuleOf> = [];
    expect(
      cost(() => {
        rules.push(...readPolicyFiles([fileOf(200, days)], PLACE).flatMap((policy) => approvalRuleOf(policy)));
      }),
    ).toBeLessThan(3000);
    const policy = { approvalRules: rules, freezes: [] };
    const evaluate = () => nextRuleChange(policy, blockingRules(FACTS, policy, NOW), Date.parse(NOW));
    expect(cost(evaluate)).toBeLessThan(1500);
    expect(
      cost(() => {
        for (let again = 0; again < 50; again += 1) evaluate();
      }),
    ).toBeLessThan(1000);
  },
);

test('more periods in a repository are refused with the file and the field, and no more of them are validated', () => {
  expect(() => readPolicyFiles([fileOf(201, '29 2 0#1')], PLACE)).toThrow(
    expect.objectContaining({
      code: 'InvalidInput',
      message: expect.stringMatching(
        /^policies\/0\.yaml:\d+:\d+: spec\.approval: all policies of the repository together may have at most 200/,
      ),
    }),
  );
  const files = [0, 12].map((hour) => fileOf(700, '31W 4,6,9,11 *', hour));
  let refusal: unknown;
  const spent = cost(() => {
    try {
      readPolicyFiles(files, PLACE);
    } catch (error) {
      refusal = error;
    }
  });
  const { problems } = (refusal as SluiceError<ManifestErrorDetails>).details ?? { problems: [] };
  expect(problems.filter(({ message }) => message.includes('matches no day'))).toHaveLength(200);
  expect(problems.at(-1)).toMatchObject({ path: 'policies/12.yaml', message: expect.stringContaining('at most 200') });
  expect(spent).toBeLessThan(800);
});

test('thousands of other rules in a repository are refused, and gates of many policies cost as much as they are many', () => {
  const gates = '{conditionType: a},'.repeat(1001);
  const text = `apiVersion: sluice.dev/v1alpha1\nkind: PackagePolicy\nmetadata: {name: p}\nspec: {requiredGates: [${gates}]}\n`;
  expect(() => readPolicyFiles([{ path: 'policies/a.yaml', data: Buffer.from(text) }], PLACE)).toThrow(
    'policies/a.yaml:4:1: spec: all policies of the repository together may have at most 1000 requiredGates',
  );
  const gate = { conditionType: 'a', approveOnly: true, onlyRestricts: true, policy: 'p' };
  const facts = { gates: [], conditions: new Map(), record: undefined, inputs: UNKNOWN_INPUTS };
  const policy = { ...DEFAULT_POLICY, requiredGates: Array(40_000).fill(gate) };
  const spent = cost(() => expect(evaluateGates(facts, policy, NOW)).toMatchObject([{ approveOnly: true }]));
  expect(spent).toBeLessThan(400);
});

test('more periods than a namespace may have block every approval, and none of them is evaluated', () => {
  const window = { cron: '0 9 * * *', durationMs: 60_000, timeZone: 'UTC' };
  const rule = { policy: 'many', windows: Array(MAX_PERIODS + 1).fill(window), freezes: [], soak: {}, inFlight: [] };
  const policy = { approvalRules: [rule], freezes: [] };
  expect(blockingRules(FACTS, policy, NOW)).toEqual([
    expect.objectContaining({
      rule: 'InvalidRule',
      message: expect.stringContaining(`${MAX_PERIODS + 1} windows and freezes together, at most ${MAX_PERIODS}`),
    }),
  ]);
  expect(nextRuleChange(policy, [], Date.parse(NOW))).toBeUndefined();
});
