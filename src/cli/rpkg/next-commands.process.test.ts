import { execFileSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type CliFixture, cliFixture } from '../testing.ts';

const NAME = 'packages.web.v1';
const MAIN = 'packages.web.main';

let cli: CliFixture;
beforeEach(async () => {
  cli = await cliFixture();
  await cli.run('repo', 'reg', cli.bare('packages.git'));
  await cli.run('rpkg', 'init', 'web', '--repository', 'packages', '--workspace', 'v1');
});
afterEach(() => cli[Symbol.asyncDispose]());

/** Runs a command that is refused; returns its message and the commands that follow it. */
async function refused(...words: string[]): Promise<{ message: string; next: string[] }> {
  const { code, stderr } = await cli.run(...words);
  expect(code).toBe(1);
  const [message = '', ...lines] = stderr.trimEnd().split('\n');
  return { message, next: lines.map((line) => line.replace(/^Next: sluice /, '')) };
}

const draftFirst = [`rpkg propose ${NAME}`, `rpkg approve ${NAME}`];

test('after a refused request about a draft lines name the next commands', async () => {
  for (const [words, message, next] of [
    [['rpkg', 'approve', NAME], /\(cannot approve package with Draft lifecycle value; only /, draftFirst],
    [['rpkg', 'copy', NAME, '--workspace', 'v2'], /: source revision must be published: /, draftFirst],
    [['rpkg', 'upgrade', NAME, '--workspace', 'v2'], /must be in a published state, not "Draft"/, draftFirst],
    [['rpkg', 'propose-delete', NAME], /it is Draft, this needs Published/, [`rpkg del ${NAME}`]],
    [
      ['rpkg', 'init', 'web', '--repository', 'packages', '--workspace', 'v1'],
      /workspaceNames must be unique/,
      ['rpkg get --repository packages --name web'],
    ],
  ] as const)
    expect(await refused(...words)).toEqual({ message: expect.stringMatching(message), next });
});

test('after a refused request about a published revision a line names the next command, which then works', async () => {
  const folder = join(cli.folder, 'web');
  for (const verb of ['propose', 'approve']) await cli.run('rpkg', verb, NAME);
  await cli.run('rpkg', 'pull', NAME, folder);
  await writeFile(join(folder, 'more.yaml'), 'a: 1\n');
  const copy = [`rpkg copy ${NAME} --workspace v2`];
  for (const [words, message, next] of [
    [['push', NAME, folder], /lifecycle value "Published"; package must be Draft/, copy],
    [['condition', 'set', NAME, 'example.com/A', 'True'], /cannot change any more/, copy],
    [['upgrade', NAME, '--workspace', 'v2'], /upstream source not found for package revision/, copy],
    [
      ['del', NAME],
      /published PackageRevisions must be proposed for deletion by setting spec\.lifecycle to 'DeletionProposed' prior/,
      [`rpkg propose-delete ${NAME}`, `rpkg del ${NAME}`],
    ],
    [
      ['clone', MAIN, 'shop', '--repository', 'packages'],
      /may not be the placeholder package revision/,
      ['rpkg get --repository packages --lifecycle Published'],
    ],
    [
      ['copy', MAIN, '--workspace', 'v2'],
      /must not be the placeholder package revision/,
      ['rpkg get --repository packages --lifecycle Published'],
    ],
  ] as const)
    expect(await refused('rpkg', ...words)).toEqual({ message: expect.stringMatching(message), next });
  const [command = ''] = (await refused('rpkg', 'push', NAME, folder)).next;
  expect(await cli.run(...command.split(' '))).toMatchObject({ code: 0, stdout: 'packages.web.v2 created\n' });
});

test('the next command contains the place of the command line', async () => {
  const { stderr } = await cli.run('rpkg', 'approve', NAME, '--data', cli.data);
  expect(stderr).toContain(`Next: sluice rpkg propose ${NAME} --data ${cli.data}\n`);
});

test('after a branch that does not exist a line names the option that creates it', async () => {
  const bare = join(cli.folder, 'empty.git');
  execFileSync('git', ['init', '--quiet', '--bare', bare]);
  const { code, stderr } = await cli.run('repo', 'reg', bare);
  expect(code).not.toBe(0);
  expect(stderr).toContain(`\nNext: sluice repo reg ${bare} --create-branch\n`);
  expect(await cli.run('repo', 'reg', bare, '--create-branch')).toMatchObject({ code: 0 });
});
