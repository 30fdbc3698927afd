import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { runCli } from '../../src/cli/testing.ts';

const binary = fileURLToPath(new URL('../../bin/sluice.js', import.meta.url));
const IDENTITY = {
  GIT_AUTHOR_NAME: 'eve',
  GIT_AUTHOR_EMAIL: 'eve@example.com',
  GIT_COMMITTER_NAME: 'eve',
  GIT_COMMITTER_EMAIL: 'eve@example.com',
};

const reportSchema = z.object({
  repository: z.string().nullable(),
  verified: z.array(
    z.object({ ref: z.string(), kind: z.string(), finding: z.object({ reason: z.string() }).optional() }),
  ),
  notes: z.array(z.string()),
});

let folder: string;
/** What Sluice writes. */
let source: string;
/** A host with the hook. */
let host: string;
let signers: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-verify-'));
  source = join(folder, 'data', 'repositories', 'packages.git');
  host = join(folder, 'host.git');
  signers = join(folder, 'allowed-signers');
  await ok('repo', 'reg', 'sluice:///packages.git', '--create-branch');
  await publish('web');
  await ok('rpkg', 'init', 'db', '--repository', 'packages', '--workspace', 'v1');
  writeFileSync(signers, await ok('key', 'show', '--allowed-signers'));
  execFileSync('git', ['init', '--quiet', '--bare', '--initial-branch=main', host]);
  const hook = join(host, 'hooks', 'pre-receive');
  writeFileSync(
    hook,
    `#!/bin/sh\nexec '${process.execPath}' '${binary}' verify --pre-receive --allowed-signers '${signers}'\n`,
  );
  chmodSync(hook, 0o755);
});
afterAll(() => rmSync(folder, { recursive: true }));

async function ok(...words: string[]): Promise<string> {
  const { code, stdout, stderr } = await runCli(words, { SLUICE_DATA: join(folder, 'data'), SLUICE_USER: 'anna' });
  expect([code, stderr]).toEqual([0, expect.any(String)]);
  return stdout;
}

async function publish(name: string): Promise<void> {
  await ok('rpkg', 'init', name, '--repository', 'packages', '--workspace', 'v1');
  await ok('rpkg', 'propose', `packages.${name}.v1`);
  await ok('rpkg', 'approve', `packages.${name}.v1`, '--as', 'bob');
}

function git(repository: string, ...words: string[]): string {
  const env = { ...process.env, ...IDENTITY };
  return execFileSync('git', ['--git-dir', repository, ...words], { encoding: 'utf8', env }).trim();
}

/** Pushes to the host; returns the output for the pusher, and whether the push was accepted. */
function push(from: string, ...refspecs: string[]): { accepted: boolean; text: string } {
  const words = ['--git-dir', from, 'push', '--atomic', host, ...refspecs];
  const { status, stderr } = spawnSync('git', words, { encoding: 'utf8', env: { ...process.env, ...IDENTITY } });
  return { accepted: status === 0, text: stderr.replaceAll(/^remote: |\s+$/gm, '') };
}

async function verify(...words: string[]): Promise<{ code: number; report: z.infer<typeof reportSchema> }> {
  const { code, stdout } = await runCli(['verify', ...words, '-o', 'json'], { SLUICE_DATA: join(folder, 'nothing') });
  return { code, report: reportSchema.parse(JSON.parse(stdout)) };
}

const findings = ({ verified }: z.infer<typeof reportSchema>) =>
  verified.flatMap(({ ref, kind, finding }) => (finding === undefined ? [] : `${kind} ${ref} ${finding.reason}`));

/** A commit with the message of another one. */
function forge(message: string, tree = git(source, 'rev-parse', 'main^{tree}'), ...parents: string[]): string {
  return git(source, 'commit-tree', ...parents.flatMap((parent) => ['-p', parent]), '-m', message, tree);
}

describe('sluice verify', () => {
  test('finds everything in band that Sluice wrote', async () => {
    const { code, report } = await verify(source, '--allowed-signers', signers);
    expect([code, findings(report)]).toEqual([0, []]);
    expect(report.verified.map(({ kind, ref }) => `${kind} ${ref}`)).toEqual([
      'record refs/sluice/records/db/v1',
      'repository refs/sluice/repository',
      'publication refs/tags/web/v1',
    ]);
  });

  test('the ledger of a data folder determines which keys count', async () => {
    const { code, stdout } = await runCli(['verify', source, '--data', join(folder, 'data')]);
    expect([code, stdout]).toEqual([
      0,
      expect.stringMatching(/^3 in band, 0 out of band; repository [0-9a-f-]{36}\n$/),
    ]);
  });

  test('another repository of the same server is not accepted in its place', async () => {
    const two = join(folder, 'two');
    const server = { SLUICE_DATA: two, SLUICE_USER: 'anna' };
    const idOf = async (name: string): Promise<string> => {
      await runCli(['repo', 'reg', `sluice:///${name}.git`, '--create-branch'], server);
      const { stdout } = await runCli([
        'verify',
        join(two, 'repositories', `${name}.git`),
        '--data',
        two,
        '-o',
        'json',
      ]);
      return reportSchema.parse(JSON.parse(stdout)).repository ?? '';
    };
    const [first, second] = [await idOf('first'), await idOf('second')];
    expect(new Set([first, second, '']).size).toBe(3);
    const copy = join(folder, 'second-copy.git');
    execFileSync('git', ['clone', '--quiet', '--mirror', join(two, 'repositories', 'second.git'), copy]);
    const check = async (path: string, ...words: string[]) => {
      const { code, stdout } = await runCli(['verify', path, '--data', two, ...words]);
      return [code, stdout];
    };
    expect(await check(copy)).toEqual([1, expect.stringContaining('name the one that is meant with --id')]);
    expect(await check(copy, '--id', first)).toEqual([1, expect.stringContaining(`is ${second}, and not ${first}`)]);
    expect(await check(copy, '--id', second)).toEqual([0, expect.any(String)]);
    const place = join(two, 'repositories', 'first.git');
    execFileSync('git', ['--git-dir', place, 'fetch', '--quiet', '--prune', '--force', copy, '+refs/*:refs/*']);
    expect(await check(place)).toEqual([1, expect.stringContaining(`expected is ${first}`)]);
  });

  test('missing keys, a missing repository and an invalid file of keys are usage errors', async () => {
    const broken = join(folder, 'broken');
    writeFileSync(broken, 'sluice no-key\n');
    const empty = join(folder, 'empty');
    writeFileSync(empty, '');
    const workTree = join(folder, 'work-tree');
    mkdirSync(workTree);
    writeFileSync(join(workTree, '.git'), 'gitdir: /elsewhere/.git/worktrees/work-tree\n');
    for (const [words, text] of [
      [[source, '--data', join(folder, 'nothing')], 'give --allowed-signers'],
      [
        [folder, '--allowed-signers', signers],
        'is neither a repository nor the top folder of a clone; name a repository',
      ],
      [
        [workTree],
        `is a linked work tree; name a repository, or clone one and verify the clone: git clone --mirror ${workTree} `,
      ],
      [['--allowed-signers', signers], 'such as: sluice verify packages.git --allowed-signers allowed-signers'],
      ...['https://git.example.com/owner/packages.git', 'git@git.example.com:owner/packages.git'].map(
        (address) =>
          [[address], `git clone --mirror ${address} packages.git, then sluice verify packages.git`] as const,
      ),
      [
        ['https://bob:secret@git.example.com/packages'],
        'clone --mirror https://git.example.com/packages packages.git,',
      ],
      [[join(folder, 'nosuch')], `there is no Git repository at ${join(folder, 'nosuch')}, which`],
      [[join(folder, 'nosuch')], 'git clone --mirror ADDRESS packages.git, then "'],
      [[source, '--allowed-signers', broken], `${broken}: line 1 of the allowed-signers file`],
      [[source, '--allowed-signers', empty], `the allowed-signers file ${empty} has no keys`],
    ] as const) {
      const { code, stderr } = await runCli(['verify', ...words]);
      expect([code, stderr]).toEqual([2, expect.stringContaining(text)]);
    }
  });

  test('with the key of another server nothing counts', async () => {
    const other = join(folder, 'other');
    await runCli(['repo', 'reg', 'sluice:///x.git', '--create-branch', '--data', other]);
    const { stdout } = await runCli(['key', 'show', '--allowed-signers', '--data', other]);
    const foreign = join(folder, 'foreign-signers');
    writeFileSync(foreign, stdout);
    const { code, report } = await verify(source, '--allowed-signers', foreign);
    expect([code, findings(report)]).toEqual([
      1,
      [
        'record refs/sluice/records/db/v1 UntrustedKey',
        'repository refs/sluice/repository RepositoryId',
        'publication refs/tags/web/v1 UntrustedKey',
      ],
    ]);
  });

  test('in a clone it verifies the existing refs, and reports which are missing and how to fetch them', async () => {
    const clone = join(folder, 'clone');
    execFileSync('git', ['clone', '--quiet', source, clone]);
    const { code, report } = await verify(clone, '--allowed-signers', signers);
    expect([code, findings(report), report.repository]).toEqual([0, [], null]);
    expect(report.verified.map(({ ref }) => ref)).toEqual(['refs/tags/web/v1']);
    expect(report.notes.join('\n')).toContain("git fetch origin '+refs/sluice/*:refs/sluice/*' brings them");
    execFileSync('git', ['-C', clone, 'fetch', '--quiet', 'origin', '+refs/sluice/*:refs/sluice/*']);
    const whole = await verify(clone, '--allowed-signers', signers);
    expect(whole.report.verified).toHaveLength(3);
    expect(whole.code).toBe(0);
  });

  test.each([
    ['a shallow clone', ['--depth', '1', '--no-tags'], 'this clone is shallow'],
    ['a shallow clone with tags', ['--depth', '1'], 'this clone is shallow'],
    ['a shallow bare clone', ['--depth', '1', '--bare'], 'this clone is shallow'],
    ['a clone without tags', ['--no-tags'], 'this clone has no tags'],
  ])('%s is not judged until the printed command has fetched the rest', async (name, options, text) => {
    const clone = join(folder, name.replaceAll(' ', '-'));
    execFileSync('git', ['clone', '--quiet', ...options, `file://${source}`, clone]);
    const { code, stdout, stderr } = await runCli(['verify', clone, '--allowed-signers', signers]);
    expect([code, stdout, stderr]).toEqual([2, '', expect.stringContaining(text)]);
    expect(stderr).toContain('set "fetch-depth: 0" and "fetch-tags: true"');
    const [, command = ''] = /(git fetch .*) brings/.exec(stderr) ?? [];
    execFileSync('sh', ['-c', command], { cwd: clone, stdio: 'pipe' });
    const whole = await verify(clone, '--allowed-signers', signers);
    expect([whole.code, findings(whole.report), whole.report.verified.length]).toEqual([0, [], 3]);
  });

  test('the checkout of a pull request names the remote that it was fetched from', async () => {
    const clone = join(folder, 'pull-request');
    execFileSync('git', ['init', '--quiet', clone]);
    execFileSync('git', ['-C', clone, 'remote', 'add', 'origin', `file://${source}`]);
    const ref = '+refs/heads/main:refs/remotes/pull/7/merge';
    execFileSync('git', ['-C', clone, 'fetch', '--quiet', '--no-tags', '--depth', '1', 'origin', ref]);
    const { code, stderr } = await runCli(['verify', clone, '--allowed-signers', signers]);
    expect([code, stderr]).toEqual([2, expect.stringContaining('--tags origin')]);
    expect(stderr).toContain("'+refs/heads/*:refs/remotes/origin/*'");
  });

  test('a repository without its id is a finding', async () => {
    const copy = join(folder, 'no-id.git');
    execFileSync('git', ['clone', '--quiet', '--mirror', source, copy]);
    git(copy, 'config', '--remove-section', 'remote.origin');
    git(copy, 'update-ref', '-d', 'refs/sluice/repository');
    const { code, report } = await verify(copy, '--allowed-signers', signers);
    expect([code, findings(report)]).toEqual([1, ['repository refs/sluice/repository RepositoryId']]);
  });

  test('manual tags, forged and copied records are findings', async () => {
    const copy = join(folder, 'copy.git');
    execFileSync('git', ['clone', '--quiet', '--mirror', source, copy]);
    git(copy, 'tag', 'web/v2', 'web/v1');
    git(copy, 'update-ref', 'refs/heads/drafts/web/v3', 'web/v1');
    git(copy, 'update-ref', 'refs/sluice/records/web/v3', 'refs/sluice/records/db/v1');
    const { code, report } = await verify(copy, '--allowed-signers', signers);
    expect([code, findings(report)]).toEqual([
      1,
      ['record refs/sluice/records/web/v3 OtherRevision', 'publication refs/tags/web/v2 OtherRevision'],
    ]);
  });
});

describe('as a pre-receive hook', () => {
  test('accepts pushes by Sluice, also later publications', async () => {
    expect(push(source, 'refs/*:refs/*')).toMatchObject({ accepted: true });
    await publish('shop');
    expect(push(source, '+refs/*:refs/*', '--prune')).toMatchObject({ accepted: true });
    expect(git(host, 'rev-parse', 'refs/tags/shop/v1')).toBe(git(source, 'rev-parse', 'refs/tags/shop/v1'));
  });

  test('accepts drafts and proposals of any user', () => {
    const commit = forge('a draft');
    expect(push(source, `${commit}:refs/heads/drafts/web/eve`, `${commit}:refs/heads/proposed/shop/eve`)).toMatchObject(
      {
        accepted: true,
      },
    );
  });

  test.each([
    ['a tag by hand', () => [`${forge('x')}:refs/tags/web/v7`], 'points to a commit without a signed approval'],
    ['a copied tag', () => ['refs/tags/web/v1:refs/tags/web/v7'], 'carries a statement for web/v1'],
    ['a tag that moves', () => [`+${forge('x')}:refs/tags/web/v1`], 'points to a commit without a signed approval'],
    ['a tag that goes', () => [':refs/tags/web/v1'], 'publications are deleted through Sluice'],
    [
      'a forged statement',
      () => {
        const real = git(source, 'log', '-1', '--format=%B', 'web/v1');
        return [`+${forge(real.replace('"by":"bob"', '"by":"sec"'), undefined, 'web/v1^')}:refs/tags/web/v1`];
      },
      'the signature of its statement is not valid',
    ],
    ['a forged record', () => [`${forge('x\n\n{"version":1}')}:refs/sluice/records/web/eve`], 'no signed statement'],
    ['a copied record', () => ['refs/sluice/records/db/v1:refs/sluice/records/web/eve'], 'was made for db/v1'],
    ['a record that goes', () => [':refs/sluice/records/db/v1'], 'must stay as long as refs/heads/drafts/db/v1 exists'],
    ['a commit on main', () => [`${forge('x', undefined, 'main')}:refs/heads/main`], 'it carries no signed statement'],
    ['a rewritten main', () => ['+refs/heads/main~1:refs/heads/main'], 'it rewrites the main branch'],
    ['no main', () => [':refs/heads/main'], 'the main branch must stay'],
    ['another id', () => [`+${forge('x')}:refs/sluice/repository`], 'it is not a valid id'],
    ['no id', () => [':refs/sluice/repository'], 'the id of the repository must stay'],
    [
      'an adoption',
      () => [`${forge('x')}:refs/sluice/adopted`],
      'the adoption does not count: it carries no signed statement',
    ],
    ['a deletion', () => [`${forge('x')}:refs/sluice/deleted/web%2Fv1`], 'the record of the deletion does not count'],
  ])('refuses %s, with the reason', (_what, refspecs, text) => {
    const before = git(host, 'for-each-ref');
    const pushed = push(source, ...refspecs());
    expect(pushed).toEqual({ accepted: false, text: expect.stringContaining(text) });
    expect(pushed.text).toContain('sluice: nothing of this push was accepted');
    expect(git(host, 'for-each-ref')).toBe(before);
  });

  test('a push cannot restore an older record', async () => {
    const first = git(source, 'rev-parse', 'refs/sluice/records/db/v1');
    await ok('rpkg', 'condition', 'set', 'packages.db.v1', 'tested', 'True');
    expect(push(source, '+refs/heads/drafts/*:refs/heads/drafts/*', '+refs/sluice/*:refs/sluice/*')).toMatchObject({
      accepted: true,
    });
    expect(push(source, `+${first}:refs/sluice/records/db/v1`)).toEqual({
      accepted: false,
      text: expect.stringContaining('the record is not newer than the present one'),
    });
  });

  test('a package that is deleted on the main branch through Sluice is deleted at the host, only once', async () => {
    const before = git(source, 'rev-parse', 'main');
    await ok('rpkg', 'propose-delete', 'packages.shop.main');
    await ok('rpkg', 'delete', 'packages.shop.main');
    const removal = git(source, 'rev-parse', 'main');
    expect(removal).not.toBe(before);
    expect(push(source, 'refs/heads/main')).toMatchObject({ accepted: true });
    const message = git(source, 'log', '-1', '--format=%B', removal);
    const again = forge(message, git(source, 'rev-parse', 'main^{tree}'), 'main');
    expect(push(source, `${again}:refs/heads/main`)).toEqual({
      accepted: false,
      text: expect.stringContaining('its statement was made for a removal on top of'),
    });
  });

  test('a commit with a valid statement that changes more than its package is refused on main', async () => {
    await publish('late');
    const tip = git(source, 'rev-parse', 'late/v1');
    const message = git(source, 'log', '-1', '--format=%B', tip);
    const other = forge(message, undefined, 'main^');
    const blob = execFileSync('git', ['--git-dir', source, 'hash-object', '-w', '--stdin'], {
      input: 'x',
      encoding: 'utf8',
    });
    const entries = `${git(source, 'ls-tree', tip)}\n100644 blob ${blob.trim()}\tother.txt\n`;
    const tree = execFileSync('git', ['--git-dir', source, 'mktree'], { input: entries, encoding: 'utf8' }).trim();
    expect(push(source, `${other}:refs/heads/main`)).toEqual({
      accepted: false,
      text: expect.stringContaining('and refs/tags/late/v1 does not point to it'),
    });
    const more = forge(message, tree, 'main^');
    expect(push(source, `${more}:refs/heads/main`, `${more}:refs/tags/late/v1`)).toEqual({
      accepted: false,
      text: expect.stringContaining('it also changes other.txt, which is no part of late'),
    });
    expect(push(source, `${other}:refs/heads/main`, `${other}:refs/tags/late/v1`)).toMatchObject({ accepted: true });
  });
});
