import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { git as runGit } from '../support/git/git-cli.ts';
import { type GitServer, startGitServer } from '../support/git/git-server.ts';
import { bareWithCommit } from '../support/git/write-objects.ts';
import { hasKubectl, Kubectl } from '../support/kubectl.ts';
import { skipFor } from '../support/skip.ts';
import { ControlPlane } from './support/control-plane.ts';
import { installDefinitions } from './support/install-definitions.ts';
import { clusterPrograms } from './support/programs.ts';
import { Installation } from './support/sluice-serve.ts';

const EXAMPLES = fileURLToPath(new URL('../../examples/quickstart/', import.meta.url));
const FILES = ['1-repository', '2-network', '3-policy', '4-targets', '5-packages'];
const RULES = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: package-editor}
rules:
  - {apiGroups: [porch.kpt.dev], resources: [packagerevisions, packagerevisionresources], verbs: ["*"]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: package-approver}
rules:
  - {apiGroups: [porch.kpt.dev], resources: [packagerevisions], verbs: [get, list]}
  - {apiGroups: [porch.kpt.dev], resources: [packagerevisions/approval], verbs: [get, update, patch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: package-reviewer}
rules:
  - {apiGroups: [porch.kpt.dev], resources: [packagerevisions], verbs: [get, list]}
  - {apiGroups: [porch.kpt.dev], resources: [packagerevisions/status], verbs: [get, update, patch]}
`;
const CAPACITY = 'shop.example.com/CapacityReviewed';
const missing = inject('serverMissing');

describe(
  'the quick start',
  skipFor((missing !== '' && missing) || (!hasKubectl() && 'kubectl is not installed')),
  () => {
    let folder: string;
    let plane: ControlPlane;
    let git: GitServer;
    let installation: Installation;
    let admin: Kubectl;
    const as = async (user: string) => new Kubectl(await plane.userKubeconfig(user), join(folder, `cache-${user}`));

    beforeAll(async () => {
      const programs = await clusterPrograms(() => undefined);
      if ('missing' in programs) throw new Error(programs.missing);
      folder = await mkdtemp(join(tmpdir(), 'sluice-quick-start-'));
      for (const name of ['packages', 'edge-east', 'edge-west']) bareWithCommit(join(folder, `${name}.git`));
      git = await startGitServer({ root: folder });
      plane = await ControlPlane.start({ programs, controllerManager: true });
      await installDefinitions(plane.kubeconfig);
      installation = await Installation.create(plane);
      await (await installation.start()).leading();
      await installation.served();
      admin = new Kubectl(plane.kubeconfig, join(folder, 'cache'));
      await admin.ok('apply -f -', { input: RULES });
      for (const [role, user] of Object.entries({ editor: 'edith', approver: 'adam', reviewer: 'rita' }))
        await admin.ok(`create clusterrolebinding ${role} --clusterrole package-${role} --user ${user}`);
    });
    afterAll(async () => {
      await installation?.[Symbol.asyncDispose]();
      await plane?.stop();
      await git?.close();
      await rm(folder, { recursive: true, force: true });
    });

    const isIn = (name: string, lifecycle: string) =>
      admin.ok(`wait packagerevisions/${name} --for=jsonpath={.spec.lifecycle}=${lifecycle} --timeout=25s`);
    const filesOf = async (target: string) =>
      runGit(join(folder, `${target}.git`), ['ls-tree', '-r', '--name-only', 'main']).split('\n');

    test('kubectl apply publishes the packages and delivers them', async () => {
      for (const file of FILES) {
        const text = await readFile(join(EXAMPLES, `${file}.yaml`), 'utf8');
        // In a cluster, repositories are on a Git host.
        await admin.ok('apply -f -', { input: text.replaceAll('sluice:///', `${git.url}/`) });
        if (file.startsWith('1')) await admin.ok('wait repository packages --for=condition=Ready --timeout=25s');
      }
      for (const name of ['edge-monitoring', 'upf-edge']) await isIn(`packages.${name}.v1`, 'Published');
      await expect
        .poll(() => filesOf('edge-east'))
        .toEqual(expect.arrayContaining(['edge-monitoring/node-metrics.yaml', expect.stringMatching(/^upf-edge\//)]));
      await expect.poll(() => filesOf('edge-west')).toContain('edge-monitoring/node-metrics.yaml');
      await isIn('packages.web-shop.v1', 'Proposed');
    });

    test('gates are enforced: an approver cannot approve before the condition is true', async () => {
      const approval = [
        'patch',
        'packagerevision',
        'packages.web-shop.v1',
        '--subresource',
        'approval',
        '--type',
        'merge',
      ];
      const publish = [...approval, '-p', '{"spec":{"lifecycle":"Published"}}'];
      expect(await (await as('adam')).fails(publish)).toContain(CAPACITY);
      expect(await (await as('edith')).fails(publish)).toContain('cannot get resource "packagerevisions/approval"');
      const rita = await as('rita');
      const condition = `[{"op":"add","path":"/status/conditions/-","value":{"type":"${CAPACITY}","status":"True","reason":"Reviewed","message":"enough"}}]`;
      await rita.ok([
        'patch',
        'packagerevision',
        'packages.web-shop.v1',
        '--subresource',
        'status',
        '--type',
        'json',
        '-p',
        condition,
      ]);
      expect(await rita.fails(publish)).toContain('cannot get resource "packagerevisions/approval"');
      await (await as('adam')).ok(publish);
      await isIn('packages.web-shop.v1', 'Published');
      for (const target of ['edge-east', 'edge-west'])
        await expect
          .poll(() => filesOf(target))
          .toEqual(expect.arrayContaining([expect.stringMatching(/^web-shop\//)]));
    });

    test('a limited user proposes and cannot approve', async () => {
      const edith = await as('edith');
      const draft = {
        ...{
          apiVersion: 'porch.kpt.dev/v1alpha1',
          kind: 'PackageRevision',
          metadata: { name: 'packages.notes.v1', namespace: 'default' },
        },
        spec: {
          repository: 'packages',
          packageName: 'notes',
          workspaceName: 'v1',
          tasks: [{ type: 'init', init: { description: 'notes' } }],
        },
      };
      await edith.ok('apply -f -', { input: JSON.stringify(draft) });
      await edith.ok([
        'patch',
        'packagerevision',
        'packages.notes.v1',
        '--type',
        'merge',
        '-p',
        '{"spec":{"lifecycle":"Proposed"}}',
      ]);
      const publish = [
        'patch',
        'packagerevision',
        'packages.notes.v1',
        '--type',
        'merge',
        '-p',
        '{"spec":{"lifecycle":"Published"}}',
      ];
      await edith.fails(publish);
      expect(await edith.fails([...publish, '--subresource', 'approval'])).toContain(
        'User "edith" cannot get resource "packagerevisions/approval"',
      );
      await isIn('packages.notes.v1', 'Proposed');
      await (await as('adam')).ok([...publish, '--subresource', 'approval']);
      await isIn('packages.notes.v1', 'Published');
    });
  },
);
