import { expect, test } from 'vitest';
import { HostRules } from '../../git/network/host-rules.ts';
import { wavePlanKind } from '../../resource/kinds/sluice/wave/wave-plan.ts';
import { waveTargetKind } from '../../resource/kinds/sluice/wave/wave-target.ts';
import type { Kind } from '../../resource/schema/kind.ts';
import { authorizerOf, binding, clusterRole, user } from '../authorization/testing.ts';
import { checkReceivers } from './check-receivers.ts';
import { checkWavePlan } from './check-wave-plan.ts';
import { checkWaveTarget } from './check-wave-target.ts';

const { authorizer } = authorizerOf(
  clusterRole('approver', [
    { verbs: ['update'], apiGroups: ['porch.kpt.dev'], resources: ['packagerevisions/approval'] },
  ]),
  binding('a', 'approvers', 'ClusterRole/approver', { kind: 'User', name: 'anna' }),
);

function write(kind: unknown, content: object, { as = 'anna', groups = [] as string[], old = {}, subResource = '' }) {
  const { apiVersion, kind: name } = kind as Kind;
  const object = (part: object) => ({ apiVersion, kind: name, metadata: { name: 'x', namespace: 'a' }, ...part });
  return {
    ...{ user: user(as, ...groups), kind: kind as Kind, subResource, operation: 'update' as const },
    ...{ object: object(content), old: object(old) as never },
  };
}

const written = (content: object, options: Parameters<typeof write>[2]) => write(wavePlanKind, content, options);
const plan = (spec: object, options: Parameters<typeof write>[2] = {}) =>
  checkWavePlan(write(wavePlanKind, { spec }, options), authorizer);

test('only users who may approve write plans; other changes of one are free', async () => {
  await plan({ waves: [] });
  await expect(plan({ waves: [] }, { as: 'mallory' })).rejects.toThrow(
    /a plan approves package revisions, .*"update" on packagerevisions\/approval, .*"mallory" does not have it; .* roles admin, sluice:approver$/,
  );
  await plan({ waves: [] }, { as: 'mallory', old: { spec: { waves: [] } } });
});

test('only users who may approve take the finalizer away by which a deleted plan keeps its hold', async () => {
  const held = { metadata: { name: 'x', namespace: 'a', finalizers: ['example.com/other', 'sluice.dev/waveplans'] } };
  const write = { spec: {}, metadata: { ...held.metadata, finalizers: ['example.com/other'] } };
  const release = (as: string) => checkWavePlan(written(write, { as, old: { ...held, spec: {} } }), authorizer);
  await release('anna');
  await expect(release('mallory')).rejects.toThrow(/without the finalizer sluice.dev\/waveplans policies can approve/);
  const other = { spec: {}, metadata: { ...held.metadata, finalizers: ['sluice.dev/waveplans'] } };
  await checkWavePlan(written(other, { as: 'mallory', old: { ...held, spec: {} } }), authorizer);
});

test('users approve waves in their own name, and as members of their groups', async () => {
  const given = (who: string, ...groups: string[]) => ({ approvals: [{ wave: 'all', user: who, groups }] });
  await plan(given('anna'));
  await plan(given('anna', 'sre'), { groups: ['sre'] });
  await expect(plan(given('berta'))).rejects.toThrow(/as "berta", and you are "anna"/);
  await expect(plan(given('anna', 'sre'))).rejects.toThrow(/group "sre", and you are no member/);
  await plan({ ...given('berta'), paused: true }, { old: { spec: given('berta') } });
});

test('users pause plans in their own name', async () => {
  const paused = { paused: true, pausedBy: 'berta' };
  await plan({ paused: true, pausedBy: 'anna' });
  await expect(plan(paused)).rejects.toThrow(/spec.pausedBy is "berta", and you are "anna"/);
  await expect(plan(paused, { old: { spec: { paused: false, pausedBy: 'berta' } } })).rejects.toThrow(
    /and you are "anna"/,
  );
  await plan({ ...paused, maxFailures: 1 }, { old: { spec: paused } });
  await plan({ paused: false, pausedBy: 'berta' }, { old: { spec: paused } });
});

test('policies name who may verify targets by a condition', async () => {
  const rule = { conditionType: 'example.com/Ok', actors: ['group:probes'], policy: 'probes' };
  const conditions = (status: string, type = rule.conditionType) => ({ status: { conditions: [{ type, status }] } });
  const check = (content: object, options: Parameters<typeof write>[2] = {}) =>
    checkWaveTarget(write(waveTargetKind, content, { subResource: 'status', ...options }), async () => [rule]);
  await check(conditions('True'), { groups: ['probes'] });
  await check(conditions('True', 'example.com/Other'));
  await expect(check(conditions('True'))).rejects.toThrow(/policy probes permits only group:probes/);
  await expect(check({ status: {} }, { old: conditions('False') })).rejects.toThrow(/permits only/);
  await check(conditions('False'), { old: conditions('False') });
});

test('the address of a probe is checked as that of a receiver', async () => {
  const probe = (url: string) =>
    checkReceivers(
      write(wavePlanKind, { spec: { verification: { http: { url } } } }, {}),
      authorizer,
      new HostRules(['127.0.0.1']),
    );
  await probe('https://{repository}.example.com/healthz');
  await expect(probe('http://169.254.169.254/latest')).rejects.toThrow(/local address/);
});
