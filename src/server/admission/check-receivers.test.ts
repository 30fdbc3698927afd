import { expect, test } from 'vitest';
import { HostRules } from '../../git/network/host-rules.ts';
import { deliveryTargetKind } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import { notificationKind } from '../../resource/kinds/sluice/notification.ts';
import { packagePolicyKind } from '../../resource/kinds/sluice/package-policy.ts';
import { analysisTemplateKind } from '../../resource/kinds/sluice/wave/analysis-template.ts';
import type { KubernetesObject } from '../../resource/object/object.ts';
import type { Kind } from '../../resource/schema/kind.ts';
import { authorizerOf, binding, clusterRole, user } from '../authorization/testing.ts';
import { checkReceivers } from './check-receivers.ts';

const ANNA = { kind: 'User', name: 'anna' };
const HOSTS = new HostRules(['127.0.0.1:3000', '127.0.0.1:4000']);
const { authorizer } = authorizerOf(
  clusterRole('one', [
    {
      ...{ verbs: ['use'], apiGroups: ['sluice.dev'], resources: ['localrepositories'] },
      resourceNames: ['http://127.0.0.1:3000'],
    },
    { verbs: ['get'], apiGroups: [''], resources: ['secrets'], resourceNames: ['mine'] },
  ]),
  binding('a', 'ones', 'ClusterRole/one', ANNA),
);

function check(spec: object, old?: object, of: unknown = notificationKind): Promise<void> {
  const kind = of as Kind;
  const object = (part: object): KubernetesObject => ({
    ...{ apiVersion: kind.apiVersion, kind: kind.kind, metadata: { name: 'x', namespace: 'a' } },
    spec: part,
  });
  const stored = old === undefined ? undefined : (object(old) as never);
  const operation = old === undefined ? 'create' : 'update';
  const write = { user: user('anna'), kind, subResource: '', object: object(spec), old: stored, operation } as const;
  return checkReceivers(write, authorizer, HOSTS);
}

const URL = 'https://hooks.example.com/in';

test('only users who may read a Secret may have Sluice use it', async () => {
  await check({ webhook: { url: URL, secretRef: { name: 'mine' } } });
  for (const spec of [
    { webhook: { url: URL, secretRef: { name: 'theirs' } } },
    { webhook: { urlSecretRef: { name: 'theirs' } } },
    { webhook: { url: URL, caSecretRef: { name: 'theirs' } } },
    { commitStatus: { secretRef: { name: 'theirs' } } },
  ])
    await expect(check(spec)).rejects.toThrow(/the Secret a\/theirs is used by spec\..*cannot read it/);
});

test('a Secret for another address is checked again, an unchanged part is not', async () => {
  const theirs = { commitStatus: { secretRef: { name: 'theirs' }, api: 'https://api.github.com' } };
  await check(theirs, theirs);
  const moved = { commitStatus: { ...theirs.commitStatus, api: 'https://evil.example.com' } };
  await expect(check(moved, theirs)).rejects.toThrow(/cannot read it/);
});

test('addresses on the machine of the server take a right, and the operator permits hosts', async () => {
  await check({ webhook: { url: 'http://127.0.0.1:3000/in?x' } });
  await expect(check({ webhook: { url: 'http://127.0.0.1:4000/in' } })).rejects.toThrow(/the verb "use"/);
  await expect(check({ webhook: { url: 'http://127.0.0.1:5000/in' } })).rejects.toThrow(/--allow-git-host/);
  await expect(check({ webhook: { url: 'http://hooks.example.com/in' } })).rejects.toThrow(/clear text/);
});

test('the kubeconfig and the trigger of a target are checked likewise', async () => {
  const engine = (part: object) => check({ engine: { type: 'Flux', ...part } }, undefined, deliveryTargetKind);
  await engine({ kubeconfigSecretRef: { name: 'mine' }, trigger: { type: 'Webhook', url: URL } });
  await expect(engine({ kubeconfigSecretRef: { name: 'theirs' } })).rejects.toThrow(
    /a\/theirs is used by spec\.engine/,
  );
  const trigger = (url: string, name: string) => ({ trigger: { type: 'Webhook', url, secretRef: { name } } });
  await expect(engine(trigger(URL, 'theirs'))).rejects.toThrow(/cannot read it/);
  await expect(engine(trigger('http://127.0.0.1:4000/hook', 'mine'))).rejects.toThrow(/the verb "use"/);
});

test('the host of pull requests of a policy is checked likewise', async () => {
  const review = (api: string, name: string) =>
    check({ review: { forge: { api, secretRef: { name } } } }, undefined, packagePolicyKind);
  await review('https://git.example.com/api/v1', 'mine');
  await expect(review('https://git.example.com/api/v1', 'theirs')).rejects.toThrow(/used by spec\.review\.forge/);
  await expect(review('http://127.0.0.1:4000/api/v1', 'mine')).rejects.toThrow(/the verb "use"/);
});

test('the host of pull requests of a target is checked likewise, and again if its Secret is used for something else', async () => {
  const forge = (name: string) => ({ api: 'https://git.example.com/api/v1', secretRef: { name } });
  const target = (pullRequest: object, old?: object) =>
    check({ pullRequest }, old === undefined ? undefined : { pullRequest: old }, deliveryTargetKind);
  await target({ forge: forge('mine') });
  await expect(target({ forge: forge('theirs') })).rejects.toThrow(/used by spec\.pullRequest\.forge/);
  const manual = { forge: forge('theirs'), merge: 'manual' };
  await target(manual, manual);
  await expect(target({ ...manual, merge: 'automatic' }, manual)).rejects.toThrow(/cannot read it/);
  const moved = (repo: string) => ({ pullRequest: manual, git: { repo } });
  await expect(
    check(moved('https://git.example.com/b'), moved('https://git.example.com/a'), deliveryTargetKind),
  ).rejects.toThrow(/cannot read it/);
});

test('the sources of an analysis are checked likewise, each metric by itself', async () => {
  const metric = (provider: object) => ({ name: 'errors', provider });
  const prometheus = (address: string, name: string) => metric({ prometheus: { address, secretRef: { name } } });
  const template = (metrics: object[], old?: object[]) =>
    check({ metrics }, old === undefined ? undefined : { metrics: old }, analysisTemplateKind);
  await template([prometheus('https://prometheus.example.com', 'mine')]);
  const theirs = prometheus('https://prometheus.example.com', 'theirs');
  await expect(template([prometheus('https://a.example.com', 'mine'), theirs])).rejects.toThrow(
    /used by spec\.metrics\[1\]\.provider/,
  );
  await template([theirs], [theirs]);
  await expect(template([prometheus('https://evil.example.com', 'theirs')], [theirs])).rejects.toThrow(/cannot read/);
  const http = (part: object) => template([metric({ http: part })]);
  await expect(http({ url: 'https://a.example.com', caSecretRef: { name: 'theirs' } })).rejects.toThrow(/cannot read/);
  await expect(http({ url: 'https://a.example.com', basicAuthSecretRef: { name: 'theirs' } })).rejects.toThrow(
    /cannot read/,
  );
  await expect(http({ url: 'http://127.0.0.1:4000/metrics' })).rejects.toThrow(/the verb "use"/);
  await expect(http({ url: 'http://169.254.169.254/latest' })).rejects.toThrow(/local address/);
});
