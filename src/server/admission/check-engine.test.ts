import { expect, test } from 'vitest';
import { deliveryTargetKind } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import type { KubernetesObject } from '../../resource/object/object.ts';
import type { Kind } from '../../resource/schema/kind.ts';
import { authorizerOf, binding, clusterRole, user } from '../authorization/testing.ts';
import { checkEngine } from './check-engine.ts';

const KIND = deliveryTargetKind as unknown as Kind;
const ANNA = { kind: 'User', name: 'anna' };
const { authorizer } = authorizerOf(
  clusterRole('read', [
    { verbs: ['list'], apiGroups: ['argoproj.io'], resources: ['applications'] },
    { verbs: ['list'], apiGroups: ['kustomize.toolkit.fluxcd.io'], resources: ['kustomizations'] },
  ]),
  clusterRole('refresh', [
    { verbs: ['patch'], apiGroups: ['argoproj.io'], resources: ['applications', 'applicationsets'] },
  ]),
  binding('argocd', 'read', 'ClusterRole/read', ANNA),
  binding('gitops', 'read', 'ClusterRole/read', ANNA),
  binding('gitops', 'refresh', 'ClusterRole/refresh', ANNA),
);

function check(engine: object, before?: object, git: object = {}): Promise<void> {
  const target = (own: object, place: object): KubernetesObject =>
    ({
      ...{ apiVersion: KIND.apiVersion, kind: KIND.kind, metadata: { name: 'edge', namespace: 'a' } },
      spec: { git: { repo: 'https://git.example.com/edge.git', ...place }, engine: own },
    }) as never;
  const old = before === undefined ? undefined : (target(before, {}) as never);
  const operation = old === undefined ? 'create' : 'update';
  const object = target(engine, git);
  return checkEngine({ user: user('anna'), kind: KIND, subResource: '', object, old, operation }, authorizer);
}

const TRIGGER = { trigger: { type: 'Annotation' } };

test.each<[string, object, string | undefined]>([
  ['Argo CD where it may list', { type: 'ArgoCD' }, undefined],
  ['Argo CD elsewhere', { type: 'ArgoCD', namespace: 'other' }, 'list applications.argoproj.io in namespace other'],
  ['Flux', { type: 'Flux', name: 'x' }, 'list kustomizations.kustomize.toolkit.fluxcd.io in namespace flux-system'],
  ['Flux where it may list', { type: 'Flux', namespace: 'gitops' }, undefined],
  ['an annotation', { type: 'ArgoCD', ...TRIGGER }, 'patch applications.argoproj.io in namespace argocd'],
  ['an annotation where it may patch', { type: 'ArgoCD', namespace: 'gitops', ...TRIGGER }, undefined],
  [
    'an annotation of Flux',
    { type: 'Flux', namespace: 'gitops', ...TRIGGER },
    'patch gitrepositories.source.toolkit.fluxcd.io in namespace gitops',
  ],
  ['a kubeconfig, whose Secret is checked', { type: 'Flux', kubeconfigSecretRef: { name: 'own' } }, undefined],
  ['commit statuses', { type: 'CommitStatus' }, undefined],
])('Sluice reads an engine in its own cluster only for users who may do so: %s', async (_, engine, refusal) => {
  if (refusal === undefined) await expect(check(engine)).resolves.toBeUndefined();
  else await expect(check(engine)).rejects.toThrow(refusal);
});

test('an unchanged engine is not checked again, unless for another folder', async () => {
  const engine = { type: 'Flux', name: 'x' };
  await expect(check(engine, engine)).resolves.toBeUndefined();
  await expect(check(engine, engine, { directory: '/' })).rejects.toThrow('may not do');
  await expect(check({ ...engine, name: 'y' }, engine)).rejects.toThrow('may not do');
});
