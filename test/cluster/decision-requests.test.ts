import { afterAll, beforeEach, expect, inject, test } from 'vitest';
import { beforeAllServed } from '../conformance/support/place.ts';
import { temporaryFolder } from '../support/git/git-cli.ts';
import { AuditLog } from './support/audit-log.ts';
import { ControlPlane } from './support/control-plane.ts';
import { KeptInstallation } from './support/kept-installation.ts';
import { clusterPrograms } from './support/programs.ts';
import { NAMESPACE } from './support/sluice-serve.ts';

const REVISIONS = '/apis/porch.kpt.dev/v1alpha1/namespaces/default/packagerevisions';
const OTHER_NAMESPACES = 200;

const folder = temporaryFolder();
let plane: ControlPlane | undefined;
let kept: KeptInstallation;
let audit: AuditLog;

beforeEach((context) => {
  if (inject('serverMissing') !== '') context.skip(inject('serverMissing'));
});
beforeAllServed(async () => {
  const programs = await clusterPrograms(() => undefined);
  if ('missing' in programs) throw new Error(programs.missing);
  audit = new AuditLog(folder.path, `system:serviceaccount:${NAMESPACE}:sluice`);
  plane = await ControlPlane.start({ programs, apiServerFlags: audit.flags });
  kept = await KeptInstallation.start(plane, { replicas: 1 });
  await kept.register('default');
  await kept.whenReady();
  await kept.installation.served();
});
afterAll(async () => {
  await kept?.[Symbol.asyncDispose]();
  await plane?.stop();
  folder.remove();
});

async function create(path: string, object: object): Promise<void> {
  const { status, text } = await kept.admin.post(path, object);
  expect(status, text).toBe(201);
}

function policyIn(namespace: string, conditionType: string): Promise<void> {
  return create(`/apis/sluice.dev/v1alpha1/namespaces/${namespace}/packagepolicies`, {
    ...{ apiVersion: 'sluice.dev/v1alpha1', kind: 'PackagePolicy', metadata: { name: conditionType } },
    spec: { selector: {}, requiredGates: [{ conditionType }] },
  });
}

async function otherNamespaces(from: number, to: number): Promise<void> {
  for (let index = from; index < to; index += 1) {
    await create('/api/v1/namespaces', { metadata: { name: `team-${index}` } });
    await policyIn(`team-${index}`, 'reviewed');
  }
}

async function proposed(name: string): Promise<string> {
  const spec = { repository: 'packages', packageName: name, workspaceName: 'v1', tasks: [{ type: 'init' }] };
  await create(REVISIONS, {
    ...{ apiVersion: 'porch.kpt.dev/v1alpha1', kind: 'PackageRevision', metadata: { namespace: 'default' } },
    spec,
  });
  const path = `${REVISIONS}/packages.${name}.v1`;
  const { status, text } = await step(path, 'Proposed');
  expect(status, text).toBe(200);
  return path;
}

function step(path: string, lifecycle: string) {
  return kept.admin.patch(path, { spec: { lifecycle } });
}

/** Lists of the objects that a decision depends on, while a package is approved. */
async function listsOfApproval(name: string): Promise<readonly string[]> {
  const path = await proposed(name);
  const before = audit.requests().length;
  const { status, text } = await step(`${path}/approval`, 'Published');
  expect(status, text).toBe(200);
  const lists = audit
    .requests()
    .slice(before)
    .filter(({ verb }) => verb === 'list');
  return [...new Set(lists.map(({ objectRef }) => `${objectRef?.resource} of ${objectRef?.namespace ?? 'all'}`))]
    .filter((list) => /^(repositories|packagepolicies|deliverytargets|functionpolicies) /.test(list))
    .sort();
}

test('an approval lists its own namespace, with one other namespace and with 200', async () => {
  await otherNamespaces(0, 1);
  const one = await listsOfApproval('one');
  expect(one).toEqual(['deliverytargets of default', 'packagepolicies of default', 'repositories of default']);
  await otherNamespaces(1, OTHER_NAMESPACES);
  expect(await listsOfApproval('many')).toEqual(one);
});

test('a policy that the kube-apiserver has acknowledged holds for the next approval', async () => {
  for (let round = 0; round < 5; round += 1) {
    const path = await proposed(`gated-${round}`);
    await policyIn('default', `tested-${round}`);
    const { status, text } = await step(`${path}/approval`, 'Published');
    expect({ status, text }).toMatchObject({ status: 403, text: expect.stringContaining(`tested-${round}`) });
    const { status: deleted } = await kept.admin.delete(
      `/apis/sluice.dev/v1alpha1/namespaces/default/packagepolicies/tested-${round}`,
    );
    expect(deleted).toBe(200);
  }
});
