import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type CliFixture, cliFixture } from '../testing.ts';

let cli: CliFixture;
/** A package with two revisions, of which the second one has a file more. */
beforeAll(async () => {
  cli = await cliFixture();
  await cli.run('repo', 'reg', cli.bare('packages.git'));
  await cli.run('rpkg', 'init', 'shop', '--repository', 'packages', '--workspace', 'w1');
  await publish('packages.shop.w1');
  await cli.run('rpkg', 'copy', 'packages.shop.w1', '--workspace', 'w2');
  const folder = join(cli.folder, 'w2');
  await cli.run('rpkg', 'pull', 'packages.shop.w2', folder);
  await writeFile(join(folder, 'notes.txt'), 'two\n');
  await cli.run('rpkg', 'push', 'packages.shop.w2', folder);
  await publish('packages.shop.w2');
});
afterAll(() => cli[Symbol.asyncDispose]());

async function publish(name: string): Promise<void> {
  await cli.run('rpkg', 'propose', name);
  expect((await cli.run('rpkg', 'approve', name)).stderr).toBe('');
}

test('what cannot be reverted is refused with the next step', async () => {
  await cli.run('rpkg', 'copy', 'packages.shop.w2', '--workspace', 'draft');
  const cases: [string[], RegExp][] = [
    [
      ['packages.shop.w1'],
      /no published revision of the package precedes v1; .*rpkg propose-delete packages\.shop\.w1/,
    ],
    [['packages.shop.draft'], /it is a Draft and was never published; .*rpkg del packages\.shop\.draft/],
    [['packages.shop.main'], /it is the main branch, not a published revision; run: .*rpkg revert packages\.shop\.w2/],
    [['packages.shpo.w2'], /"packages\.shpo\.w2" not found; did you mean packages\.shop\.w2/],
    [
      ['packages.shop.w2', '--workspace', 'draft'],
      /workspace draft exists already .*Draft.*propose it with .*--workspace/,
    ],
  ];
  for (const [words, message] of cases) {
    const result = await cli.run('rpkg', 'revert', ...words);
    expect(result).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(message) });
  }
});

test('the content that preceded a revision is proposed, and becomes the next revision', async () => {
  const what = 'reverts packages.shop.w2 (v2) to packages.shop.w1 (v1)';
  expect(await cli.run('rpkg', 'revert', 'packages.shop.w2', '--dry-run')).toEqual({
    ...{ code: 0, stderr: '' },
    stdout: `workspace revert-2 of shop would be proposed (dry run): ${what}\n`,
  });
  expect(await cli.run('rpkg', 'revert', 'packages.shop.w2', '--reason', 'checkout fails')).toEqual({
    ...{ code: 0, stderr: '' },
    stdout: `packages.shop.revert-2 proposed: ${what}\n`,
  });
  const { stdout: history } = await cli.run('rpkg', 'history', 'packages.shop.revert-2');
  expect(history).toContain('reverts v2 to v1: checkout fails');
  expect(await cli.run('rpkg', 'revert', 'packages.shop.w2')).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(
      /workspace revert-2 exists already as packages\.shop\.revert-2 \(Proposed\); approve it with .*rpkg approve packages\.shop\.revert-2/,
    ),
  });
  expect((await cli.run('rpkg', 'approve', 'packages.shop.revert-2')).stderr).toBe('');
  const { stdout: diff } = await cli.run('rpkg', 'diff', 'packages.shop.revert-2', 'packages.shop.w2');
  expect(diff).toMatch(/^[+-]two$/m);
  const again = await cli.run('rpkg', 'revert', 'packages.shop.w2', '--workspace', 'hotfix');
  expect(again.stdout).toBe(`packages.shop.hotfix proposed: ${what}\n`);
  expect(again.stderr).toContain('the content of v1 also reverts what came after v2: v3');
});
