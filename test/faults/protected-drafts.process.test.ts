import { expect, test } from 'vitest';
import { cliFixture } from '../../src/cli/testing.ts';
import { initRepository } from '../../src/git/open/open-repository.ts';
import { initBare } from '../support/git/git-cli.ts';
import { startGitServer } from '../support/git/git-server.ts';
import { commitFiles } from '../support/scratch-repository.ts';

const KPTFILE =
  'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: app\npipeline:\n  mutators:\n    - image: set-labels:v0.2.0\n      configMap: {tier: web}\n';
const CONFIG_MAP = 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: web\n';

test('draft branches that a Git host protects are reported in the log, and pushed to only a few times', async () => {
  await using cli = await cliFixture();
  const path = initBare(`${cli.folder}/apps.git`);
  const git = await initRepository(path);
  await commitFiles(git, { 'README.md': 'apps\n' }, 0);
  await commitFiles(git, { 'app/Kptfile': KPTFILE, 'app/cm.yaml': CONFIG_MAP }, 0, { branch: 'drafts/app/v1' });
  await git.close();
  const update =
    '#!/bin/sh\ncase "$1" in refs/heads/drafts/*) echo "drafts are protected" >&2; exit 1;; esac\nexit 0\n';
  const server = await startGitServer({ root: cli.folder, hooks: { update } });
  try {
    const allow = ['--allow-git-host', '127.0.0.1'];
    const registered = await cli.run('repo', 'reg', `${server.url}/apps.git`, '--name', 'apps');
    expect(registered.stderr + registered.stdout).toContain('apps');
    const up = await cli.run('up', '--until-idle', ...allow);
    expect(up.code).toBe(1);
    expect(up.stdout + up.stderr).toMatch(
      /apps\.app\.v1 +revision: the remote rejected refs\/heads\/drafts\/app\/v1: .*drafts are protected/,
    );
    const pushes = server.requests.filter(({ method, url }) => method === 'POST' && url.includes('receive-pack'));
    expect(pushes.length).toBeLessThanOrEqual(6);
  } finally {
    await server.close();
  }
});
