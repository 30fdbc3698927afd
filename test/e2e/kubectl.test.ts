import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasKubectl, Kubectl } from '../support/kubectl.ts';
import { skipFor } from '../support/skip.ts';
import { Up } from '../support/up.ts';

const quickstart = fileURLToPath(new URL('../../examples/quickstart', import.meta.url));
const published = '--for=jsonpath={.spec.lifecycle}=Published';

let folder: string;
let up: Up;
let kubectl: Kubectl;

describe('kubectl and an empty up', skipFor(!hasKubectl() && 'kubectl is not installed'), () => {
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sluice-kubectl-'));
    const data = join(folder, 'data');
    up = new Up(data);
    await up.said(/kubectl --kubeconfig/);
    kubectl = new Kubectl(join(data, 'kubeconfig'), join(folder, 'cache'));
  });
  afterAll(async () => {
    up.child.kill('SIGKILL');
    await rm(folder, { recursive: true, force: true });
  });

  test('discovers the served kinds and the server', async () => {
    expect(await kubectl.ok('api-resources --api-group=porch.kpt.dev --no-headers')).toMatch(
      /^packagerevisions +rpkg +porch.kpt.dev\/v1alpha1 +true +PackageRevision$/m,
    );
    expect((await kubectl.ok('api-versions')).split('\n')).toContain('config.porch.kpt.dev/v1alpha1');
    expect(await kubectl.run('version')).toMatchObject({
      code: 0,
      stderr: '',
      stdout: expect.stringContaining('+sluice'),
    });
    expect(await kubectl.ok('explain repositories.spec.git --recursive')).toMatch(/^ {2}createBranch\t<boolean>$/m);
    expect(await kubectl.ok('explain rpkg.spec.lifecycle')).toContain(
      'Draft, Proposed, Published or DeletionProposed.',
    );
    expect(await kubectl.ok('auth whoami')).toMatch(/Username +admin/);
    expect(await kubectl.ok('auth can-i --list')).toMatch(/^\*\.\* +\[\] +\[\] +\[\*\]$/m);
    expect(await kubectl.ok('get ns --no-headers')).toMatch(
      /^default +Active +\S+\nkube-system +Active +\S+\nsluice-system +Active +\S+$/,
    );
    expect(await kubectl.ok('get --raw /livez')).toBe('ok');
    expect(await kubectl.ok('get --raw /metrics')).toContain('apiserver_request_total{');
  });

  test('moves the quick start to Published with one command, and lists the events', async () => {
    const applied = await kubectl.ok(['apply', '-f', quickstart]);
    expect(applied).toContain('packagerevision.porch.kpt.dev/packages.upf-edge.v1 created');
    for (const name of ['edge-monitoring', 'upf-edge'])
      expect(await kubectl.ok(`wait rpkg/packages.${name}.v1 ${published} --timeout=20s`)).toMatch(/condition met$/);
    expect(await kubectl.ok('wait rpkg/packages.web-shop.v1 --for=jsonpath={.spec.lifecycle}=Proposed')).toMatch(
      /met$/,
    );
    expect(await kubectl.ok(`wait dt --all --for=condition=Ready --timeout=20s`)).toMatch(/edge-west condition met/);
    const events = await kubectl.ok('events --no-headers');
    const story = [
      /Resolved +PackageRevision\/packages.upf-edge.v1 +resolver:ipam: .*upf-edge-n6 is True/,
      /Proposed +PackageRevision\/packages.upf-edge.v1 /,
      /Approved +PackageRevision\/packages.upf-edge.v1 /,
      /Delivered +DeliveryTarget\/edge-east +commit [0-9a-f]{40}: .*upf-edge v1/,
    ].map((line) => events.search(line));
    expect(story).not.toContain(-1);
    expect(story).toEqual(story.toSorted((a, b) => a - b));
    const newer = 'get events.v1.events.k8s.io --field-selector regarding.name=edge-east,reason=Delivered';
    expect(await kubectl.ok(`${newer} --no-headers`)).toMatch(/Normal +Delivered +deliverytarget\/edge-east +commit /);
    expect(await kubectl.ok('explain events.regarding.kind --api-version=events.k8s.io/v1')).toContain(
      'Kind of the referenced object.',
    );
  });

  test('waits until all gates of a revision are open, and shows which are closed', async () => {
    const name = 'packages.web-shop.v1';
    const wait = (status: string) => `wait rpkg/${name} --for=condition=sluice.dev/Ready=${status} --timeout=20s`;
    expect(await kubectl.ok(wait('False'))).toMatch(/condition met$/);
    const [plain = '', wide = ''] = [
      await kubectl.ok(`get rpkg ${name}`),
      await kubectl.ok(`get rpkg ${name} -o wide`),
    ].map((text) => text.split('\n')[0] ?? '');
    expect(plain.trim().split(/ +/)).toEqual([
      'NAME',
      'PACKAGE',
      'WORKSPACENAME',
      'REVISION',
      'LATEST',
      'LIFECYCLE',
      'REPOSITORY',
    ]);
    expect(wide.trim()).toMatch(/REPOSITORY +READY +GATES +AGE +REASON$/);
    expect(await kubectl.ok(`get rpkg ${name} -o wide --no-headers`)).toMatch(
      /False +1\/2 +\d+s +shop.example.com\/CapacityReviewed \(/,
    );
    const condition = { type: 'shop.example.com/CapacityReviewed', status: 'True' };
    const waiting = kubectl.ok(wait('True'));
    const patch = JSON.stringify([{ op: 'add', path: '/status/conditions/-', value: condition }]);
    await kubectl.ok(['patch', 'rpkg', name, '--subresource=status', '--type=json', '-p', patch]);
    expect(await waiting).toMatch(/condition met$/);
    const ready = 'get rpkg NAME -o jsonpath={.status.conditions[?(@.type=="sluice.dev/Ready")].reason}';
    expect(await kubectl.ok(ready.replace('NAME', name))).toBe('AllGatesOpen');
  });
});
