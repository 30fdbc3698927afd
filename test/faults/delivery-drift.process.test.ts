import { execFileSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type CliFixture, cliFixture } from '../../src/cli/testing.ts';
import { Up } from '../support/up.ts';

let cli: CliFixture;
let site: string;
let ups: Up[];

beforeEach(async () => {
  cli = await cliFixture();
  site = cli.bare('site.git');
  ups = [];
  await cli.run('repo', 'reg', cli.bare('packages.git'));
});
afterEach(async () => {
  for (const up of ups) if (up.child.exitCode === null) up.child.kill('SIGKILL');
  await cli[Symbol.asyncDispose]();
});

function start(...words: string[]): Up {
  const up = new Up(cli.data, '--no-listen', ...words);
  ups.push(up);
  return up;
}

async function publish(name: string): Promise<void> {
  for (const words of [
    ['init', name, '--repository', 'packages', '--workspace', 'v1'],
    ['propose', `packages.${name}.v1`],
    ['approve', `packages.${name}.v1`],
  ])
    expect(await cli.run('rpkg', ...words), words.join(' ')).toMatchObject({ code: 0 });
}

async function addTarget(drift: string): Promise<void> {
  const config = join(cli.folder, 'target.yaml');
  await writeFile(
    config,
    `apiVersion: sluice.dev/v1alpha1\nkind: DeliveryTarget\nmetadata: {name: site}\nspec: {selector: {}, drift: ${drift}, git: {repo: ${site}}}\n`,
  );
  const up = start('--config', config, '--until-idle');
  await expect.poll(() => up.child.exitCode, { timeout: 60_000 }).toBe(0);
}

const head = () => cli.git('site.git', 'rev-parse', 'main');
const show = (path: string) => cli.git('site.git', 'show', `main:${path}`);

/** Commits a change of the list of a package on top of the branch, as another writer would. */
function editByHand(path: string): void {
  const text = `${show(path)}\n# by hand\n`;
  const blob = execFileSync('git', ['--git-dir', site, 'hash-object', '-w', '--stdin'], {
    input: text,
    encoding: 'utf8',
  });
  cli.git('site.git', 'read-tree', 'main');
  cli.git('site.git', 'update-index', '--cacheinfo', `100644,${blob.trim()},${path}`);
  const tree = cli.git('site.git', 'write-tree');
  const commit = cli.git('site.git', 'commit-tree', '-p', 'main', '-m', 'by hand', tree);
  cli.git('site.git', 'update-ref', 'refs/heads/main', commit);
}

test.each(['Report', 'Repair'])('kills at any step neither lose nor repeat what drift: %s does', async (drift) => {
  await publish('web');
  await addTarget(drift);
  const list = 'web/kustomization.yaml';
  editByHand(list);
  const edited = head();
  // At the start, once the branch moved (before or after the status is written), and once all is done.
  const moments: ((up: Up) => Promise<unknown>)[] = [
    async () => undefined,
    (up) => up.said(/./),
    () => expect.poll(head, { timeout: 60_000 }).not.toBe(edited),
  ];
  for (const [at, moment] of moments.entries()) {
    await publish(`more${at}`);
    const up = start();
    await moment(up);
    await up.end('SIGKILL');
  }
  const last = start('--until-idle');
  await expect.poll(() => last.child.exitCode, { timeout: 60_000 }).toBe(0);
  const files = cli.git('site.git', 'ls-tree', '-r', '--name-only', 'main').split('\n');
  for (const at of moments.keys()) expect(files).toContain(`more${at}/kustomization.yaml`);
  expect(show(list).includes('# by hand')).toBe(drift === 'Report');
  const subjects = cli.git('site.git', 'log', '--format=%s', 'main').split('\n');
  for (const at of moments.keys())
    expect(subjects.filter((subject) => subject.includes(`more${at} v1`))).toHaveLength(1);
  const settled = head();
  const again = start('--until-idle');
  await expect.poll(() => again.child.exitCode, { timeout: 60_000 }).toBe(0);
  expect(head()).toBe(settled);
});
