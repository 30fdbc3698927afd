import { expect, test } from 'vitest';
import { deliveryTargetKind } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import type { KubernetesObject } from '../../resource/object/object.ts';
import type { Kind } from '../../resource/schema/kind.ts';
import { BOOTSTRAP_ROLES } from '../authorization/bootstrap-objects.ts';
import { authorizerOf, binding, user } from '../authorization/testing.ts';
import { checkDeliveryTarget } from './check-delivery-target.ts';

const KIND = deliveryTargetKind as unknown as Kind;
const REPO = 'https://git.example.com/east.git';
const { authorizer } = authorizerOf(
  ...BOOTSTRAP_ROLES,
  binding('a', 'editors', 'ClusterRole/edit', { kind: 'User', name: 'edna' }),
  binding('a', 'admins', 'ClusterRole/admin', { kind: 'User', name: 'adam' }),
);

function target(spec: object, name: string): KubernetesObject {
  const { apiVersion, kind } = KIND;
  return {
    apiVersion,
    kind,
    metadata: { name, namespace: 'a' },
    spec: { git: { repo: REPO }, ...spec },
  } as never;
}

function check(name: string, spec: object, before?: object, of = 'east'): Promise<void> {
  const old = before === undefined ? undefined : (target(before, of) as never);
  const operation = old === undefined ? 'create' : 'update';
  return checkDeliveryTarget(
    { user: user(name), kind: KIND, subResource: '', object: target(spec, of), old, operation },
    authorizer,
    async () => new Set(['sluice.dev/Healthy.gate']),
  );
}

const FLUX = { type: 'Flux' };
const OTHER = { git: { repo: 'https://git.example.com/west.git' } };

test.each<[string, object, object | undefined, string]>([
  ['sets allowOutOfBand', { allowOutOfBand: true }, { allowOutOfBand: false }, 'spec.allowOutOfBand delivers what'],
  ['creates a target with it', { allowOutOfBand: true }, undefined, 'spec.allowOutOfBand delivers what'],
  [
    'selects more packages where it is set',
    { allowOutOfBand: true, selector: {} },
    { allowOutOfBand: true, selector: { packages: ['web'] } },
    'spec.allowOutOfBand delivers what',
  ],
  ['names another engine', { engine: { ...FLUX, name: 'k' } }, { engine: FLUX }, 'spec.engine says whose reports'],
  [
    'names a kubeconfig',
    { engine: { ...FLUX, kubeconfigSecretRef: { name: 'own', key: 'value' } } },
    { engine: FLUX },
    'spec.engine says whose reports',
  ],
  ['adds an engine', { engine: FLUX }, {}, 'spec.engine says whose reports'],
  ['adds a rollback', { rollback: { unhealthyAfter: '1s' } }, {}, 'spec.rollback says when'],
  ['moves a target to another repository', OTHER, {}, 'spec.git.repo says which clusters get the packages'],
])('who may edit and not update Repositories is refused, who %s', async (_, after, before, why) => {
  await expect(check('edna', after, before)).rejects.toThrow(
    expect.objectContaining({ code: 'Refused', message: expect.stringContaining(`"east" is forbidden: ${why}`) }),
  );
  await expect(check('edna', after, before)).rejects.toThrow(
    'takes the verb "update" on repositories.config.porch.kpt.dev',
  );
  await expect(check('adam', after, before)).resolves.toBeUndefined();
});

test('editors write targets otherwise', async () => {
  await expect(check('edna', { suspend: true })).resolves.toBeUndefined();
  await expect(check('edna', { suspend: true }, {})).resolves.toBeUndefined();
  await expect(check('edna', {}, { allowOutOfBand: true })).resolves.toBeUndefined();
  await expect(check('edna', { allowOutOfBand: true }, { allowOutOfBand: true })).resolves.toBeUndefined();
});

test('the trigger of an engine is no setting of the reports', async () => {
  const trigger = { type: 'Webhook', url: 'https://flux.example.com/hook' };
  await expect(check('edna', { engine: { ...FLUX, trigger } }, { engine: FLUX })).resolves.toBeUndefined();
});

test.each<[string, object, object | undefined]>([
  ['creates it', { engine: FLUX }, undefined],
  ['selects other packages', { selector: { packages: ['web'] } }, { selector: {} }],
  ['delivers to another branch', { git: { repo: REPO, branch: 'other' } }, {}],
])('a target whose health a policy requires takes the right from who %s', async (_, after, before) => {
  const refused = 'forbidden: a policy requires sluice.dev/Healthy.gate';
  await expect(check('edna', after, before, 'gate')).rejects.toThrow(refused);
  await expect(check('adam', after, before, 'gate')).resolves.toBeUndefined();
  await expect(check('edna', after, before)).resolves.toBeUndefined();
  await expect(check('edna', { suspend: true }, {}, 'gate')).resolves.toBeUndefined();
});
