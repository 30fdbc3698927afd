import { join } from 'node:path';
import { describe, expect, inject, test } from 'vitest';
import { eventually } from '../support/api/eventually.ts';
import { git, initBare, refsOf, temporaryFolder } from '../support/git/git-cli.ts';
import { startGitServer } from '../support/git/git-server.ts';
import { skipFor } from '../support/skip.ts';
import { ControlPlane } from './support/control-plane.ts';
import { installDefinitions } from './support/install-definitions.ts';
import { clusterPrograms } from './support/programs.ts';
import { Installation } from './support/sluice-serve.ts';

/** The namespace controller deletes the objects of the kinds in random order. */
const ROUNDS = 4;
const DRAFT = 'refs/heads/drafts/web/v1';

const missing = inject('serverMissing');

describe('a namespace', skipFor(missing !== '' && missing), () => {
  test('is deleted with its Repositories, and their drafts stay in Git', async () => {
    const programs = await clusterPrograms(() => undefined);
    if ('missing' in programs) throw new Error(programs.missing);
    const folder = temporaryFolder();
    await using plane = await ControlPlane.start({ programs, controllerManager: true });
    await installDefinitions(plane.kubeconfig);
    const repository = join(folder.path, 'apps.git');
    initBare(repository);
    git(repository, [
      'update-ref',
      'refs/heads/main',
      git(repository, ['commit-tree', git(repository, ['mktree']), '-m', 'first']),
    ]);
    const gitServer = await startGitServer({ root: folder.path });
    await using installation = await Installation.create(plane);
    try {
      const leader = await installation.start();
      await leader.leading();
      await installation.served();
      const { admin } = installation;
      const revisions = '/apis/porch.kpt.dev/v1alpha1/namespaces/team/packagerevisions';
      for (let round = 0; round < ROUNDS; round += 1) {
        expect((await admin.post('/api/v1/namespaces', { metadata: { name: 'team' } })).status).toBe(201);
        const repositories = '/apis/config.porch.kpt.dev/v1alpha1/namespaces/team/repositories';
        const registered = await admin.post(repositories, {
          ...{ apiVersion: 'config.porch.kpt.dev/v1alpha1', kind: 'Repository', metadata: { name: 'apps' } },
          spec: { type: 'git', git: { repo: `${gitServer.url}/apps.git`, branch: 'main' } },
        });
        expect({ text: registered.text, status: registered.status }).toMatchObject({ status: 201 });
        await eventually(
          () => admin.get(`${repositories}/apps`),
          ({ body }) => JSON.stringify(body.status ?? {}).includes('"reason":"Ready"'),
        );
        if (round === 0) {
          const made = await admin.post(revisions, {
            ...{ apiVersion: 'porch.kpt.dev/v1alpha1', kind: 'PackageRevision', metadata: { namespace: 'team' } },
            spec: {
              packageName: 'web',
              workspaceName: 'v1',
              repository: 'apps',
              lifecycle: 'Draft',
              tasks: [{ type: 'init', init: {} }],
            },
          });
          expect({ text: made.text, status: made.status }).toMatchObject({ status: 201 });
        }
        expect((await admin.get(`${revisions}/apps.web.v1`)).status).toBe(200);
        expect((await admin.delete('/api/v1/namespaces/team')).status).toBe(200);
        await eventually(
          () => admin.get('/api/v1/namespaces/team'),
          ({ status }) => status === 404,
        );
        expect(refsOf(repository).has(DRAFT)).toBe(true);
      }
    } finally {
      await gitServer.close();
      folder.remove();
    }
  });
});
