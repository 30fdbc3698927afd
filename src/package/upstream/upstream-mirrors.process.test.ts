import { mkdir, readdir, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type GitServer, startGitServer } from '../../../test/support/git/git-server.ts';
import { anna, commitFiles, type Scratch, scratchRepository } from '../../../test/support/scratch-repository.ts';
import { outcomeOf } from '../../../test/support/shop.ts';
import { DEFAULT_NETWORK, PUBLIC_NETWORK } from '../../git/network/git-network.ts';
import { HostRules } from '../../git/network/host-rules.ts';
import { openRepository } from '../../git/open/open-repository.ts';
import type { UpstreamAddress } from './revision-source.ts';
import { UpstreamMirrors, type UpstreamMirrorsOptions } from './upstream-mirrors.ts';
import type { UpstreamPackage } from './upstream-reader.ts';

const basic = { username: 'robot', password: 'a-secret-word' };

interface World extends AsyncDisposable {
  readonly scratch: Scratch;
  readonly server: GitServer;
  readonly repo: string;
  push(text: string, branch?: string): Promise<string>;
  read(address: Partial<UpstreamAddress>, options?: Partial<UpstreamMirrorsOptions>): Promise<UpstreamPackage>;
}

async function world(): Promise<World> {
  const scratch = await scratchRepository();
  const server = await startGitServer({ root: scratch.folder });
  const repo = `${server.url}/packages.git`;
  const options = {
    folder: join(scratch.folder, 'upstreams'),
    clock: scratch.clock,
    git: { network: DEFAULT_NETWORK },
    allowLocal: () => true,
  };
  const mirrors = new UpstreamMirrors(options);
  return {
    scratch,
    server,
    repo,
    push: async (text, branch = 'main') => {
      const git = await openRepository(scratch.path);
      try {
        const files = { 'nf/upf/Kptfile': text, 'nf/upf/sub/a.txt': 'a\n' };
        return await commitFiles(git, files, scratch.clock.now(), { branch, from: 'refs/heads/main' });
      } finally {
        await git.close();
      }
    },
    read: (address, more) =>
      (more === undefined ? mirrors : new UpstreamMirrors({ ...options, ...more })).read(
        { repo, ref: 'main', directory: 'nf/upf', ...address },
        'default',
        anna,
      ),
    [Symbol.asyncDispose]: async () => {
      await server.close();
      await scratch[Symbol.asyncDispose]();
    },
  };
}

function kptfile({ files }: UpstreamPackage): string | undefined {
  return files.get('Kptfile')?.data.toString('utf8');
}

test('a branch, a tag, a tag of the folder and a commit are found, as they are on the remote now', async () => {
  await using w = await world();
  const first = await w.push('one\n');
  await w.scratch.git('tag', 'nf/upf/v1', first);
  await w.scratch.git('-c', 'user.name=h', '-c', 'user.email=h@example.com', 'tag', '-a', '-m', 'two', 'v2', first);
  const second = await w.push('two\n');
  await w.scratch.git('tag', 'both', first);
  await w.push('three\n', 'both');
  const main = await w.read({});
  expect(main.location).toEqual({ repo: w.repo, directory: 'nf/upf', ref: 'main', commit: second });
  expect([...main.files.keys()]).toEqual(['Kptfile', 'sub/a.txt']);
  for (const ref of ['v1', 'nf/upf/v1', 'v2', 'both', first]) {
    const read = await w.read({ ref, directory: '/nf//upf/' });
    expect([ref, read.location.commit, kptfile(read)]).toEqual([ref, first, 'one\n']);
  }
  await w.push('four\n');
  expect(kptfile(await w.read({}))).toBe('four\n');
  await w.scratch.git('tag', '-d', 'v2');
  expect(await outcomeOf(w.read({ ref: 'v2' }))).toBe(`NotFound: ${w.repo} has no branch, tag or commit "v2"`);
  expect(await outcomeOf(w.read({ ref: '0123456789'.repeat(4) }))).toMatch(/^NotFound: /);
  expect(await outcomeOf(w.read({ directory: 'nf/smf' }))).toMatch(/^NotFound: there is no package folder/);
  expect((await w.read({ directory: '/' })).location.directory).toBe('/');
});

test('hostile addresses are refused before anything is fetched', async () => {
  await using w = await world();
  const cases: [Partial<UpstreamAddress>, string][] = [
    [{ repo: 'ssh://-oProxyCommand=id/a.git' }, 'InvalidInput: the address of the upstream repository must name a'],
    [{ repo: 'ext::sh -c id' }, 'InvalidInput: '],
    [
      { repo: 'https://a:b@example.com/a.git' },
      'InvalidInput: the address of the upstream repository must not contain',
    ],
    [{ repo: 'http://example.com/a.git' }, 'InvalidInput: '],
    [{}, 'Refused: '],
    [{ repo: w.repo.replace('http:', 'HTTP:') }, 'Refused: '],
    [{ repo: w.scratch.path }, 'Refused: '],
    [{ repo: `file://${w.scratch.path}` }, 'Refused: '],
    [{ repo: `FILE://${w.scratch.path}` }, 'Refused: '],
  ];
  const further: typeof cases = [
    [{ directory: '../..' }, 'InvalidInput: '],
    [{ directory: '.git' }, 'InvalidInput: '],
    [{ ref: '' }, 'InvalidInput: '],
    [{ secretRef: { name: 'any' } }, 'Unsupported: '],
  ];
  for (const [address, outcome] of cases)
    expect(await outcomeOf(w.read(address, { allowLocal: () => false, git: { network: PUBLIC_NETWORK } }))).toContain(
      outcome,
    );
  for (const [address, outcome] of further) expect(await outcomeOf(w.read(address))).toContain(outcome);
  expect(w.server.requests).toEqual([]);
  for (const ref of ['--upload-pack=id', '../x', 'a b', 'x:y', '*', 'a\nb']) {
    expect(await outcomeOf(w.read({ ref }))).toMatch(/^NotFound: /);
  }
});

test('a port of this machine that the operator permits is open to every caller, and its disk is not', async () => {
  await using w = await world();
  const commit = await w.push('one\n');
  const git = { network: { hosts: new HostRules([new URL(w.repo).host]) } };
  const allowLocal = () => false;
  expect((await w.read({}, { allowLocal, git })).location.commit).toBe(commit);
  const other = w.repo.replace(/:\d+/, ':1');
  for (const repo of [other, w.scratch.path, `file://${w.scratch.path}`])
    expect(await outcomeOf(w.read({ repo }, { allowLocal, git }))).toMatch(/^Refused: packages are cloned from/);
});

test('a repository on this machine is read where that is allowed', async () => {
  await using w = await world();
  const commit = await w.push('one\n');
  for (const ref of ['main', commit]) {
    const read = await w.read({ repo: w.scratch.path, ref });
    expect(read.location).toEqual({ repo: w.scratch.path, directory: 'nf/upf', ref, commit });
  }
});

test('each request sends the credentials of its caller, and no mirror bypasses the access rights of the remote', async () => {
  await using w = await world();
  await w.push('one\n');
  w.server.behaviour.auth = basic;
  const asked: unknown[] = [];
  const options: Partial<UpstreamMirrorsOptions> = {
    credentials: async (secret, { actor }) => {
      asked.push([secret, actor.name]);
      return { basic };
    },
  };
  const secretRef = { name: 'upstream' };
  expect(kptfile(await w.read({ secretRef }, options))).toBe('one\n');
  expect(new Set(asked.map((one) => JSON.stringify(one)))).toEqual(
    new Set([JSON.stringify([{ namespace: 'default', name: 'upstream' }, 'anna'])]),
  );
  const refused = await outcomeOf(w.read({}));
  expect(refused).toMatch(/^Refused: /);
  const wrong = await outcomeOf(
    w.read({ secretRef }, { credentials: async () => ({ basic: { ...basic, password: 'wrong-word' } }) }),
  );
  expect(wrong).toMatch(/^Refused: /);
  expect(wrong + refused).not.toMatch(/a-secret-word|wrong-word/);
});

test('a request to a remote that does not respond is aborted', async () => {
  await using w = await world();
  await w.push('one\n');
  w.server.behaviour.hang = 'all';
  expect(await outcomeOf(w.read({}, { timeout: 20 }))).toBe(
    `Timeout: ${w.repo} was not fetched within 0.02 s; register the repository and name a package revision`,
  );
  w.server.behaviour.hang = undefined;
  const reads = await Promise.all([w.read({}), w.read({}), w.read({ ref: 'main' })]);
  expect(reads.map(kptfile)).toEqual(['one\n', 'one\n', 'one\n']);
});

test('mirrors that were not used for long make room', async () => {
  await using w = await world();
  await w.push('one\n');
  const folder = join(w.scratch.folder, 'upstreams');
  for (let number = 1; number <= 32; number++) {
    await mkdir(join(folder, `${number}.git`), { recursive: true });
    await utimes(join(folder, `${number}.git`), number, number);
  }
  await w.read({});
  const mirrors = await readdir(folder);
  expect(mirrors).toHaveLength(32);
  expect(mirrors).toContain('2.git');
  expect(mirrors).not.toContain('1.git');
});
