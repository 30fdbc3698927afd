import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from 'vitest';
import { eventually } from '../support/api/eventually.ts';
import { temporaryFolder } from '../support/git/git-cli.ts';
import { hasKubectl, Kubectl } from '../support/kubectl.ts';
import { skipFor } from '../support/skip.ts';
import { AuditLog } from './support/audit-log.ts';
import { ControlPlane } from './support/control-plane.ts';
import { installDefinitions } from './support/install-definitions.ts';
import { clusterPrograms } from './support/programs.ts';
import { Installation, NAMESPACE, type Replica } from './support/sluice-serve.ts';

const missing = inject('serverMissing');
const ELECTION = ['--lease-duration', '8s', '--renew-deadline', '6s', '--retry-period', '1s'];
const TENANT = 'tenant';
/** 25 MB: more than a page of a list may have. Annotations may have 256 KiB. */
const POLICIES = 100;
const ANNOTATION = 'x'.repeat(250_000);
const CONFIG_MAPS = 12;
const DATA = { text: 'x'.repeat(1_000_000) };

const folder = temporaryFolder();
let plane: ControlPlane;
let audit: AuditLog;
let installation: Installation;
let leader: Replica;
let kubectl: Kubectl;

async function create(path: string, object: object): Promise<void> {
  const { status, text } = await installation.admin.post(path, object);
  expect(status, text.slice(0, 500)).toBe(201);
}

/** The name of the replica that holds the Lease, and how often it changed hands. */
async function lease(): Promise<unknown> {
  const path = `/apis/coordination.k8s.io/v1/namespaces/${NAMESPACE}/leases/sluice`;
  const { holderIdentity, leaseTransitions } = (await installation.admin.get(path)).body.spec as Record<
    string,
    unknown
  >;
  return { holderIdentity, leaseTransitions };
}

/** Requests of ConfigMaps that are neither of one name nor of Sluice's own namespace. */
function unboundedReads(): string[] {
  return audit
    .requests()
    .filter(({ verb, objectRef }) => objectRef?.resource === 'configmaps' && (verb === 'list' || verb === 'watch'))
    .map(({ requestURI }) => decodeURIComponent(requestURI))
    .filter((uri) => !uri.includes('metadata.name=') && !uri.includes(`/namespaces/${NAMESPACE}/`));
}

describe(
  'large objects of a tenant',
  skipFor((missing !== '' && missing) || (!hasKubectl() && 'kubectl is not installed')),
  () => {
    beforeAll(async () => {
      const programs = await clusterPrograms(() => undefined);
      if ('missing' in programs) throw new Error(programs.missing);
      audit = new AuditLog(folder.path, `system:serviceaccount:${NAMESPACE}:sluice`);
      plane = await ControlPlane.start({ programs, apiServerFlags: audit.flags });
      await installDefinitions(plane.kubeconfig);
      installation = await Installation.create(plane);
      kubectl = new Kubectl(plane.kubeconfig, join(folder.path, 'cache'));
      await create('/api/v1/namespaces', { metadata: { name: TENANT } });
      leader = await installation.start({ options: ELECTION });
      await leader.leading();
      await installation.served();
    });
    afterEach(({ task }) => {
      if (task.result?.state !== 'fail') return;
      for (const { lines } of installation.replicas) console.log(lines.slice(-50).join('\n'));
    });
    afterAll(async () => {
      await installation?.[Symbol.asyncDispose]();
      await plane?.stop();
      folder.remove();
    });

    test('do not keep a leader from its Lease, nor a new one from its work', async () => {
      const before = await lease();
      for (let index = 0; index < CONFIG_MAPS; index += 1)
        await create(`/api/v1/namespaces/${TENANT}/configmaps`, { metadata: { name: `c${index}` }, data: DATA });
      for (let index = 0; index < POLICIES; index += 1)
        await create(`/apis/sluice.dev/v1alpha1/namespaces/${TENANT}/packagepolicies`, {
          ...{ apiVersion: 'sluice.dev/v1alpha1', kind: 'PackagePolicy', spec: {} },
          metadata: { name: `p${index}`, annotations: { text: ANNOTATION } },
        });
      // A schema cannot restrict the depth of a value of any form.
      const config = { a: JSON.parse(`${'{"a":'.repeat(300)}1${'}'.repeat(300)}`) as object };
      await create(`/apis/sluice.dev/v1alpha1/namespaces/${TENANT}/packagepolicies`, {
        ...{ apiVersion: 'sluice.dev/v1alpha1', kind: 'PackagePolicy', metadata: { name: 'deep' } },
        spec: { validatorConditions: [{ function: 'f', conditionType: 'valid', image: 'example.com/f:v1', config }] },
      });
      await kubectl.ok('get packagerevisions -A');
      expect(await lease()).toEqual(before);

      expect(await leader.stop()).toBe(0);
      const next = await installation.start({ options: ELECTION });
      await next.leading();
      await installation.served();
      const held = await lease();
      await kubectl.ok('get packagerevisions -A');
      // Some renewals later it is the same process.
      const renewTime = async () =>
        (await installation.admin.get(`/apis/coordination.k8s.io/v1/namespaces/${NAMESPACE}/leases/sluice`)).text;
      const first = await renewTime();
      await eventually(renewTime, (text) => text !== first);
      expect(await lease()).toEqual(held);
      expect(await next.isLeading()).toBe(true);
      expect(unboundedReads()).toEqual([]);
    });
  },
);
