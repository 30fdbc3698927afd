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

const page = readFileSync(join(CHECKOUT, 'docs/pull-requests.md'), 'utf8');
const missing = inject('giteaMissing') || (!hasKubectl() && 'kubectl is not installed') || '';
const START = 'sluice up';
const DATA = '.sluice';
/** Of the repository, so that its name is the one of the page. */
const REPOSITORY = 'packages';

describe('docs/pull-requests.md', { ...skipFor(missing !== '' && missing), timeout: 180_000 }, () => {
  const gitea = new Gitea({ url: inject('giteaUrl'), folder: inject('giteaFolder') });
  const folder = temporaryFolder();
  const sections = sectionsOf(page).filter(({ steps }) => steps.length > 0);
  let sluice: RunningUp | undefined;
  let shell: PageShell;
  let failed = false;

  beforeAll(async () => {
    for (const name of [REPOSITORY, 'edge']) await gitea.createRepository(name);
    const environment = { FORGE: `${gitea.url}/api/v1/repos/${OWNER.username}/${REPOSITORY}` };
    shell = await PageShell.create(folder.path, join(folder.path, 'work', DATA, 'kubeconfig'), {}, environment);
    for (const user of ['sluice', 'bob']) {
      await gitea.createWriter(user, REPOSITORY);
      await gitea.addWriter(user, 'edge');
      const token = await gitea.createToken(user, 'page', ['write:repository', 'write:issue', 'read:user']);
      await writeFile(join(shell.work, `${user}.token`), `${token}\n`);
    }
    const token = await gitea.createToken(OWNER.username, 'page', ['write:repository']);
    await writeFile(join(shell.work, 'owner.token'), `${token}\n`);
    const examples = join(shell.work, 'examples/pull-requests');
    await cp(join(CHECKOUT, 'examples/pull-requests'), examples, { recursive: true });
    for (const name of await readdir(examples)) {
      const text = await readFile(join(examples, name), 'utf8');
      await writeFile(join(examples, name), text.replaceAll('https://git.example.com', gitea.url));
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

  test('has commands in its sections', () => expect(sections.length).toBeGreaterThan(4));
  for (const { title, steps } of sections)
    test(title, async ({ skip }) => {
      skip(failed, 'a section before it failed');
      for (const step of steps) {
        // The host of a test is on this machine.
        if (step.command === START)
          sluice = await RunningUp.start(join(shell.work, DATA), { words: ['--allow-git-host', '127.0.0.1'] });
        else await shell.follow(step);
      }
      expect(sluice?.ownFailures()).toEqual([]);
    });
});
