import { readFileSync } from 'node:fs';
import { cp, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from 'vitest';
import { RunningUp } from '../support/api/running-up.ts';
import { temporaryFolder } from '../support/git/git-cli.ts';
import { hasKubectl } from '../support/kubectl.ts';
import { CHECKOUT, PageShell } from '../support/page-shell.ts';
import { sectionsOf } from '../support/page-steps.ts';
import { skipFor } from '../support/skip.ts';
import { Gitea, OWNER } from './support/gitea.ts';

const page = readFileSync(join(CHECKOUT, 'docs/user-pull-requests.md'), 'utf8');
const missing = inject('giteaMissing') || (!hasKubectl() && 'kubectl is not installed') || '';
const START = 'sluice up';
const DATA = '.sluice';
/** On the page it is `packages`, which another page has. */
const REPOSITORY = 'user-packages';
/** It sets its own gate, which only a pushed branch may. */
const FORKED_KPTFILE = `apiVersion: kpt.dev/v1
kind: Kptfile
metadata:
  name: forked
info:
  readinessGates:
    - conditionType: example.com/Tested
pipeline:
  mutators:
    - image: set-labels:v0.2
      configMap:
        team: shop
status:
  conditions:
    - type: example.com/Tested
      status: "True"
`;

describe('docs/user-pull-requests.md', { ...skipFor(missing !== '' && missing), timeout: 180_000 }, () => {
  const gitea = new Gitea({ url: inject('giteaUrl'), folder: inject('giteaFolder') });
  const folder = temporaryFolder();
  const sections = sectionsOf(page).filter(({ steps }) => steps.length > 0);
  let sluice: RunningUp | undefined;
  let shell: PageShell;
  let failed = false;
  const here = (text: string) =>
    text.replaceAll('https://git.example.com/owner/packages', `${gitea.url}/${OWNER.username}/${REPOSITORY}`);

  beforeAll(async () => {
    await gitea.createRepository(REPOSITORY);
    const tokens = new Map<string, string>();
    for (const user of ['sluice', 'bob']) {
      await gitea.createWriter(user, REPOSITORY);
      tokens.set(user, await gitea.createToken(user, 'users-page', ['write:repository', 'write:issue', 'read:user']));
    }
    const environment = {
      FORGE: `${gitea.url}/api/v1/repos/${OWNER.username}/${REPOSITORY}`,
      ...{ GIT_CONFIG_COUNT: '1', GIT_CONFIG_KEY_0: 'http.extraHeader' },
      GIT_CONFIG_VALUE_0: `Authorization: token ${tokens.get('bob')}`,
    };
    shell = await PageShell.create(folder.path, join(folder.path, 'work', DATA, 'kubeconfig'), {}, environment);
    for (const [user, token] of tokens) await writeFile(join(shell.work, `${user}.token`), `${token}\n`);
    for (const name of ['pull-requests', 'user-pull-requests'])
      await cp(join(CHECKOUT, 'examples', name), join(shell.work, 'examples', name), { recursive: true });
    const examples = join(shell.work, 'examples/pull-requests');
    for (const name of await readdir(examples)) {
      const text = await readFile(join(examples, name), 'utf8');
      await writeFile(join(examples, name), here(text).replaceAll('https://git.example.com', gitea.url));
    }
  });
  afterEach(({ task }) => {
    failed ||= task.result?.state === 'fail';
  });
  afterAll(async () => {
    if (failed) console.log(sluice?.output);
    await sluice?.end();
    folder.remove();
  });

  test('has commands in its sections', () => expect(sections.length).toBeGreaterThan(3));
  for (const { title, steps } of sections)
    test(title, async ({ skip }) => {
      skip(failed, 'a section before it failed');
      for (const step of steps) {
        // The host of a test is on this machine.
        if (step.command === START)
          sluice = await RunningUp.start(join(shell.work, DATA), { words: ['--allow-git-host', '127.0.0.1'] });
        else await shell.follow({ ...step, command: here(step.command) });
      }
      expect(sluice?.ownFailures()).toEqual([]);
    });

  test('a fork is fetched and checked by built-in functions alone, and its conditions do not count', async ({
    skip,
  }) => {
    skip(failed, 'a section before it failed');
    const stranger = await gitea.createUser('stranger');
    const path = `/repos/${OWNER.username}/${REPOSITORY}`;
    // Gitea lets a user fork a private repository who may read it.
    await gitea.api('PUT', `${path}/collaborators/${stranger.username}`, { permission: 'read' });
    await gitea.api('POST', `${path}/forks`, {}, stranger);
    const files = {
      'forked/Kptfile': FORKED_KPTFILE,
      'forked/map.yaml': 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: forked\n  labels:\n    team: shop\n',
    };
    const written = (await gitea.api(
      'POST',
      `/repos/${stranger.username}/${REPOSITORY}/contents`,
      {
        ...{ branch: 'main', new_branch: 'contribution', message: 'forked' },
        files: Object.entries(files).map(([file, text]) => ({
          ...{ operation: 'create', path: file, content: Buffer.from(text).toString('base64') },
        })),
      },
      stranger,
    )) as { commit: { sha: string } };
    const before = await gitea.refs(REPOSITORY);
    const forkBranches = async () =>
      (await gitea.api('GET', `/repos/${stranger.username}/${REPOSITORY}/branches`)) as readonly unknown[];
    const forkBefore = await forkBranches();
    const wanted = { head: `${stranger.username}:contribution`, base: 'main', title: 'from a fork' };
    const { number } = (await gitea.api('POST', `${path}/pulls`, wanted, stranger)) as { number: number };

    const statuses = async () =>
      (await gitea.api('GET', `${path}/statuses/${written.commit.sha}`)) as { context: string; status: string }[];
    await expect
      .poll(statuses, { timeout: 90_000, interval: 500 })
      .toContainEqual(expect.objectContaining({ context: 'sluice/ready', status: 'pending' }));
    const bodies = async () =>
      ((await gitea.api('GET', `${path}/issues/${number}/comments`)) as { body: string }[]).map(({ body }) => body);
    await expect.poll(bodies).toEqual([expect.stringContaining('The branch was not pushed to this repository')]);
    const [body = ''] = await bodies();
    expect(body).toContain('example.com/Tested');
    expect(body).toContain('+    team: shop');
    // The host has added the head of the pull request, and Sluice nothing.
    const after = (await gitea.refs(REPOSITORY)).split('\n').filter((ref) => !ref.startsWith(`refs/pull/${number}/`));
    expect(after.join('\n')).toBe(before);
    expect(await forkBranches()).toEqual(forkBefore);
    expect(sluice?.ownFailures()).toEqual([]);
  });
});
