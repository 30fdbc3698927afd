import { describe, expect, test } from 'vitest';
import { readPolicyFiles } from './read-policy-files.ts';

const PLACE = { namespace: 'team-a', repository: 'guard', branch: 'main', commit: '0123456789'.repeat(4) };
const HEADER = 'apiVersion: sluice.dev/v1alpha1\nkind: PackagePolicy\nmetadata:\n  name: strict\n';
const read = (text: string, path = 'policies/strict.yaml') =>
  readPolicyFiles([{ path, data: Buffer.from(text, 'latin1') }], PLACE);

describe('a policy in a file of a repository', () => {
  test('has the fields that restrict, and a name that says where it is', () => {
    const [policy] = read(`${HEADER}spec:
  selector: {repositories: [apps]}
  requiredGates: [{conditionType: tested}]
  validFor: [{conditionType: tested, duration: 24h}]
  pushMayGive: false
  pushDenied: [signed]
  gateDeadlines: [{conditionType: tested, after: 1h}]
  approval:
    forbidSelfApproval: true
    quorum: {required: 2, from: [group:sre]}
    windows: [{cron: "0 9 * * 1-5", duration: 8h}]
    freezes: [{cron: "0 0 24 12 *", duration: 48h}]
    soak: {proposed: 1h}
    maxInFlight: 3
`);
    expect(policy).toMatchObject({
      metadata: { name: 'strict of Repository guard (policies/strict.yaml at 0123456789)', namespace: 'team-a' },
      spec: {
        ...{ pushMayGive: false, pushDenied: ['signed'], commitBudgetPerHour: Number.POSITIVE_INFINITY },
        ...{ givers: [], autoPropose: false, kptfileApprovals: false },
        approval: { automatic: false, breakGlass: [], quorum: { required: 2 }, maxInFlight: 3 },
      },
      origin: { repository: 'guard', branch: 'main', file: 'policies/strict.yaml', commit: PLACE.commit },
    });
  });

  test.each([
    ['review: {}', 'spec.review'],
    ['kptfileApprovals: false', 'spec.kptfileApprovals'],
    ['autoPropose: true', 'spec.autoPropose'],
    ['validatorConditions: []', 'spec.validatorConditions'],
    ['givers: []', 'spec.givers'],
    ['pushMayGive: true', 'spec.pushMayGive'],
  ])('is refused with %s', (field, path) => {
    expect(() => read(`${HEADER}spec:\n  ${field}\n`)).toThrow(
      expect.objectContaining({
        code: 'InvalidInput',
        message: `policies/strict.yaml:6:3: ${path}: Forbidden: a policy in a repository can only restrict; set it in a PackagePolicy object`,
      }),
    );
  });

  test.each(['automatic: false', 'breakGlass: [anna]'])('is refused with approval.%s', (field) => {
    expect(() => read(`${HEADER}spec:\n  approval:\n    ${field}\n`)).toThrow(
      expect.objectContaining({
        message: expect.stringMatching(/^policies\/strict\.yaml:7:5: spec\.approval\.\w+: Forbidden: /),
      }),
    );
  });

  test.each([
    [
      'another kind',
      'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n',
      ':2:1: kind: ConfigMap (v1) is not known',
    ],
    ['an unknown field', `${HEADER}spec: {requiredGate: []}\n`, ':5:8: spec.requiredGate: unknown field'],
    [
      'another namespace',
      `${HEADER}  namespace: team-b\nspec: {}\n`,
      ':1:1: metadata.namespace: the policy applies to namespace team-a',
    ],
    ['a status', `${HEADER}spec: {}\nstatus: {}\n`, 'status: unknown field'],
    [
      'a schedule without days',
      `${HEADER}spec: {approval: {windows: [{cron: "0 0 30 2 *", duration: 1h}]}}\n`,
      'spec.approval.windows',
    ],
    ['text that is not UTF-8', 'a: \xff\n', ':1:1: the file is not UTF-8 text'],
    ['a large file', `# ${'x'.repeat(70_000)}\n`, 'at most 65536 are allowed'],
    ['many documents', '---\n'.repeat(30), 'more than 20 documents'],
    ['many aliases', `a: &a [1]\nb: [${'*a,'.repeat(500)}]\n`, 'policies/strict.yaml'],
    ['the same name twice', `${HEADER}spec: {}\n---\n${HEADER}spec: {}\n`, 'stands in policies/strict.yaml:1 already'],
  ])('is refused with %s', (_what, text, message) => {
    expect(() => read(text)).toThrow(
      expect.objectContaining({ code: 'InvalidInput', message: expect.stringContaining(message) }),
    );
  });

  test('has a bounded number', () => {
    const one = (at: number) => `${HEADER.replace('strict', `p${at}`)}spec: {}\n`;
    const files = Array.from({ length: 101 }, (_, at) => ({ path: `p/${at}.yaml`, data: Buffer.from(one(at)) }));
    expect(readPolicyFiles(files.slice(1), PLACE)).toHaveLength(100);
    expect(() => readPolicyFiles(files, PLACE)).toThrow('there are 101 policies, at most 100 are read');
  });
});
