import { execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir, userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { fsck, initBare, refsOf, temporaryFolder } from '../../../../test/support/git/git-cli.ts';
import { processesWith } from '../../../../test/support/git/processes.ts';
import { newKey, type SshServer, sshServerProblem, startSshServer } from '../../../../test/support/git/ssh-server.ts';
import { skipFor } from '../../../../test/support/skip.ts';
import type { SluiceError } from '../../../foundation/sluice-error.ts';
import { isUnknownOutcome } from '../../errors.ts';
import { commitOf } from '../../git-repository.conformance.ts';
import type { GitRemote, GitRepository, Oid, RefUpdate, SshCredentials } from '../../git-repository.ts';
import { HostRules } from '../../network/host-rules.ts';
import { initRepository, openRepository } from '../../open/open-repository.ts';
import { withSshConfig } from '../../process/ssh-config.ts';

const problem = sshServerProblem();
const title = 'remotes over ssh';

const MIRROR = { refspecs: ['+refs/heads/*:refs/heads/*', '+refs/tags/*:refs/tags/*'], prune: true };

/** With the own client, and with git for everything. */
describe.each(['auto', 'git'] as const)(`${title} (%s)`, skipFor(problem), (transport) => {
  let place: ReturnType<typeof temporaryFolder>;
  let server: SshServer;
  let folder: ReturnType<typeof temporaryFolder>;
  let origin: string;
  let repository: GitRepository;
  let remote: GitRemote;
  let first: Oid;
  let second: Oid;

  beforeAll(async () => {
    place = temporaryFolder();
    server = await startSshServer({ folder: place.path });
  });

  afterAll(async () => {
    await server.close();
    place.remove();
  });

  beforeEach(async () => {
    folder = temporaryFolder();
    origin = initBare(join(folder.path, 'origin.git'));
    repository = await openRepository(initBare(join(folder.path, 'local.git')), { transport });
    remote = remoteWith();
    const tree = await repository.editTree(undefined, new Map([['a', { data: Buffer.from('a') }]]));
    first = await repository.writeCommit(commitOf(tree));
    second = await repository.writeCommit(commitOf(tree, [first]));
  });

  afterEach(async () => {
    server.hang(false);
    vi.unstubAllEnvs();
    await repository.close();
    folder.remove();
    expect(privateFolders()).toEqual([]);
  });

  function remoteWith(changes: Partial<SshCredentials> = {}, url = `${server.url}${origin}`): GitRemote {
    return { url, credentials: async () => ({ ssh: { ...server.credentials, ...changes } }) };
  }

  function hook(name: string, script: string): void {
    const file = join(origin, 'hooks', name);
    execFileSync('mkdir', ['-p', dirname(file)]);
    writeFileSync(file, `#!/bin/sh\n${script}\n`);
    chmodSync(file, 0o755);
  }

  const create = (ref: string, oid = first): RefUpdate => ({ type: 'create', ref, new: oid });

  async function failure(work: Promise<unknown>): Promise<SluiceError> {
    const error = await work.then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    expect(error).toMatchObject({ name: expect.stringMatching(/Error$/), code: expect.any(String) });
    return error as SluiceError;
  }

  test('creates, moves and deletes refs in one request', async () => {
    await repository.push(remote, [create('refs/heads/main'), create('refs/heads/drafts/p/w'), create('refs/x/1')]);
    expect([...refsOf(origin).keys()]).toEqual(['refs/heads/drafts/p/w', 'refs/heads/main', 'refs/x/1']);
    const before = server.commands().length;
    await repository.push(remote, [
      { type: 'update', ref: 'refs/heads/main', old: first, new: second },
      { type: 'delete', ref: 'refs/heads/drafts/p/w', old: first },
      create('refs/tags/p/v1', second),
    ]);
    expect([...refsOf(origin)]).toEqual([
      ['refs/heads/main', second],
      ['refs/tags/p/v1', second],
      ['refs/x/1', first],
    ]);
    fsck(origin);
    const commands = server.commands().slice(before);
    expect(commands).toEqual([expect.stringContaining(`git-receive-pack '${origin}'`)]);
    expect(repository.remoteNote?.message).toContain(transport === 'auto' ? 'push by own client' : 'push by git');
  });

  test('the connection uses the address that was checked, and the host key is looked up by name', async () => {
    const lookups: string[] = [];
    const addresses = ['127.0.0.254', '127.0.0.1'].map((address) => ({ address, family: 4 }));
    const resolve = async (host: string) => {
      lookups.push(host);
      return addresses;
    };
    const checked = (isLocal: boolean) => ({ hosts: new HostRules([], { resolve, isLocal: () => isLocal }) });
    const url = `${server.url.replace('127.0.0.1', 'git.invalid')}${origin}`;
    const named = (host: string) =>
      remoteWith({ knownHosts: server.credentials.knownHosts.replaceAll('127.0.0.1', host) }, url);
    const open = (isLocal: boolean) => openRepository(repository.path, { transport, network: checked(isLocal) });
    const [permissive, strict] = await Promise.all([open(false), open(true)]);
    try {
      await repository.transaction([create('refs/heads/main')]);
      // Nothing listens at the first address.
      await permissive.push(named('git.invalid'), [create('refs/heads/main')]);
      expect(new Set(lookups)).toEqual(new Set(['git.invalid']));
      expect(await failure(permissive.listRemoteRefs(named('other.invalid')))).toMatchObject({ code: 'Refused' });
      const before = server.commands().length;
      expect(await failure(strict.listRemoteRefs(named('git.invalid')))).toMatchObject({
        code: 'Refused',
        message: expect.stringContaining(`--allow-git-host git.invalid:${server.port}`),
      });
      expect(server.commands()).toHaveLength(before);
    } finally {
      await Promise.all([permissive.close(), strict.close()]);
    }
  });

  test('a remote that was restored to an older state loses nothing', async () => {
    await repository.push(remote, [create('refs/heads/main'), create('refs/heads/draft', second)]);
    execFileSync('git', ['-C', origin, 'update-ref', 'refs/heads/draft', first]);
    execFileSync('git', ['-C', origin, 'gc', '--quiet', '--prune=now']);
    const removal: RefUpdate = { type: 'delete', ref: 'refs/heads/draft', old: second };
    const before = refsOf(origin);
    const moved = { details: { kind: 'moved', ref: 'refs/heads/draft' } };
    expect(await failure(repository.push(remote, [removal]))).toMatchObject(moved);
    expect(await failure(repository.push(remote, [create('refs/heads/new'), removal]))).toMatchObject(moved);
    expect(refsOf(origin)).toEqual(before);
    const third = await repository.writeCommit(commitOf((await repository.readCommit(second)).tree, [second]));
    await repository.push(remote, [create('refs/heads/new', third), { ...removal, old: first }]);
    expect([...refsOf(origin)]).toEqual([
      ['refs/heads/main', first],
      ['refs/heads/new', third],
    ]);
    fsck(origin);
  });

  test('a push is refused as a whole', async () => {
    await repository.push(remote, [create('refs/heads/main')]);
    hook('update', `case "$1" in *bad*) echo 'no bad names' >&2; exit 1;; esac`);
    const refused = await failure(repository.push(remote, [create('refs/heads/good'), create('refs/heads/bad')]));
    expect(refused).toMatchObject({ code: 'PushRefused', details: { ref: 'refs/heads/bad' } });
    expect(refused.message).toContain('no bad names');
    const onTop = [create('refs/heads/good'), create('refs/heads/main', second)];
    const moved = await failure(repository.push(remote, onTop));
    expect(moved).toMatchObject({ details: { ref: 'refs/heads/main', kind: 'moved' } });
    expect([...refsOf(origin)]).toEqual([['refs/heads/main', first]]);
  });

  test('lists and fetches, also by an address of the short form', async () => {
    await repository.push(remote, [create('refs/heads/main', second), create('refs/heads/a/b'), create('refs/x/1')]);
    expect(await repository.listRemoteRefs(remote, ['refs/heads/a/', 'refs/x/'])).toEqual([
      { name: 'refs/heads/a/b', oid: first },
      { name: 'refs/x/1', oid: first },
    ]);
    const mirror = await initRepository(join(folder.path, 'mirror.git'), { transport });
    expect(await mirror.fetch(remote, MIRROR)).toHaveLength(2);
    const third = await repository.writeCommit(commitOf((await repository.readCommit(second)).tree, [second]));
    await repository.push(remote, [
      { type: 'update', ref: 'refs/heads/main', old: second, new: third },
      { type: 'delete', ref: 'refs/heads/a/b', old: first },
    ]);
    const changes = await mirror.fetch(remote, MIRROR);
    expect(changes).toEqual([
      { name: 'refs/heads/a/b', before: first, after: undefined },
      { name: 'refs/heads/main', before: second, after: third },
    ]);
    expect(await mirror.fetch(remote, MIRROR)).toEqual([]);
    expect((await mirror.readCommit(third)).parents).toEqual([second]);
    expect(mirror.remoteNote?.message).toContain(transport === 'auto' ? 'fetch by own client' : 'fetch by git');
    await mirror.close();
    fsck(join(folder.path, 'mirror.git'));
    // The short form has no port: what can be seen here is where it leads.
    const short = remoteWith({}, `${userInfo().username}@host.invalid:${origin}`);
    expect((await failure(repository.listRemoteRefs(short))).message).toMatch(
      /the host host\.invalid does not exist|cannot (?:be|resolve)/,
    );
  });

  test('a missing repository is reported', async () => {
    const error = await failure(repository.listRemoteRefs(remoteWith({}, `${server.url}/nothing.git`)));
    expect(error).toMatchObject({ code: 'NotFound', message: expect.stringContaining('has no such repository') });
  });

  test('a host with another key than the known one, and an unknown host, are refused with the next step', async () => {
    const other = newKey(folder.path, 'other').publicKey;
    const scan = `ssh-keyscan -p ${server.port} 127.0.0.1`;
    for (const [knownHosts, words] of [
      [`[127.0.0.1]:${server.port} ${other}`, 'another host key'],
      [`[192.0.2.1]:${server.port} ${other}`, 'is not in known_hosts'],
      [`@revoked ${server.credentials.knownHosts}`, 'another host key'],
    ] as const) {
      const list = await failure(repository.listRemoteRefs(remoteWith({ knownHosts })));
      expect(list).toMatchObject({ code: 'Refused', message: expect.stringContaining(words) });
      expect(list.message).toContain(scan);
      // The same each time: a changed message would be reported again.
      expect((await failure(repository.listRemoteRefs(remoteWith({ knownHosts })))).message).toBe(list.message);
      expect(list.message).not.toMatch(/sluice-\w+\/known_hosts|NASTY|\n\s*\n\s*\n/);
      const push = await failure(repository.push(remoteWith({ knownHosts }), [create('refs/heads/main')]));
      expect(push).toMatchObject({ code: 'Refused', message: expect.stringContaining(words) });
      expect(isUnknownOutcome(push)).toBe(false);
    }
    const none = await failure(repository.listRemoteRefs(remoteWith({ knownHosts: '# nothing\n' })));
    expect(none).toMatchObject({ code: 'InvalidInput', message: expect.stringContaining('ssh-keyscan') });
    expect(refsOf(origin).size).toBe(0);
  });

  test('another key, one with a passphrase, and none, are distinguished', async () => {
    const wrong = await failure(repository.listRemoteRefs(remoteWith(newKey(folder.path, 'wrong'))));
    expect(wrong).toMatchObject({ code: 'Refused', message: expect.stringContaining('rejected the key') });
    const locked = await failure(repository.listRemoteRefs(remoteWith(newKey(folder.path, 'locked', 'open sesame'))));
    expect(locked).toMatchObject({ code: 'InvalidInput', message: expect.stringContaining('has a passphrase') });
    const damaged = server.credentials.privateKey.replace(/\n.{20}/, `\n${'A'.repeat(20)}`);
    const broken = await failure(repository.push(remoteWith({ privateKey: damaged }), [create('refs/heads/main')]));
    expect(broken).toMatchObject({ code: 'InvalidInput', message: expect.stringContaining('cannot read the private') });
    expect(isUnknownOutcome(broken)).toBe(false);
    const none = await failure(repository.listRemoteRefs({ url: remote.url }));
    expect(none).toMatchObject({ code: 'Refused', message: expect.stringContaining('identity and known_hosts') });
    for (const { message } of [wrong, locked, broken]) expect(message).not.toMatch(/AAAA|BEGIN/);
  });

  test('neither an agent nor the configuration of the user is used', async () => {
    const socket = join(folder.path, 'agent');
    const agent = spawn('ssh-agent', ['-D', '-a', socket], { stdio: 'ignore' });
    try {
      while (!existsSync(socket)) await delay(20);
      const input = server.credentials.privateKey;
      execFileSync('ssh-add', ['-q', '-'], { input, env: { ...process.env, SSH_AUTH_SOCK: socket }, stdio: 'pipe' });
      // In this process, as a user has it: what is tested is that ssh is not given it.
      vi.stubEnv('SSH_AUTH_SOCK', socket);
      const wrong = remoteWith(newKey(folder.path, 'wrong'));
      expect(await failure(repository.listRemoteRefs(wrong))).toMatchObject({ code: 'Refused' });
      // The same arguments, with ssh telling what it reads.
      await withSshConfig({ ...server.credentials, ...newKey(folder.path, 'wrong2') }, async (settings) => {
        const output = execFileSync(
          'sh',
          ['-c', 'ssh "$@" 2>&1; true', 'sh', '-o', 'LogLevel=DEBUG', ...settings, '-p', `${server.port}`, '127.0.0.1'],
          { encoding: 'utf8' },
        );
        expect(output).toContain('Permission denied');
        expect(output).not.toMatch(/Reading configuration data|agent (?:returned|contains)/);
        const files = [...output.matchAll(/identity file (\S+) type/g)].map(([, file = '']) =>
          file.replace(/-cert$/, ''),
        );
        expect(new Set(files)).toEqual(new Set(settings.flatMap((one) => /^IdentityFile=(.*)/.exec(one)?.[1] ?? [])));
      });
    } finally {
      agent.kill();
    }
  });

  test('a cancelled call ends all it started; keys are in no argument, no environment and no open file', async () => {
    server.hang(true);
    const giveUp = new AbortController();
    const work = failure(repository.listRemoteRefs(remote, [], giveUp.signal));
    const mine = () => processesWith('IdentityFile=').filter(({ arguments: all }) => all.join(' ').includes(origin));
    while (mine().length === 0 || server.commands().length === 0) await delay(20);
    const secrets = server.credentials.privateKey
      .split('\n')
      .filter((line) => line.length > 20 && !line.includes('KEY'));
    for (const { arguments: words, environment } of mine())
      for (const text of [...words, ...environment]) for (const secret of secrets) expect(text).not.toContain(secret);
    for (const name of privateFolders()) {
      expect(statSync(join(tmpdir(), name)).mode & 0o777).toBe(0o700);
      for (const file of readdirSync(join(tmpdir(), name)))
        expect(statSync(join(tmpdir(), name, file)).mode & 0o777).toBe(0o600);
    }
    giveUp.abort();
    expect(await work).toMatchObject({ code: 'Unavailable', message: expect.stringContaining('cancelled') });
    expect(mine()).toEqual([]);
  });

  test('a server that hangs causes a timeout, before or after authentication', async () => {
    const hurried = await openRepository(repository.path, { transport, timeouts: { listRemote: 1500, push: 1500 } });
    const silent = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => silent.once('listening', resolve));
    const { port } = silent.address() as { port: number };
    const knownHosts = server.credentials.knownHosts.replace(`${server.port}`, `${port}`);
    const url = `ssh://git@127.0.0.1:${port}/a.git`;
    expect(await failure(hurried.listRemoteRefs(remoteWith({ knownHosts }, url)))).toMatchObject({ code: 'Timeout' });
    silent.close();
    await repository.transaction([]);
    server.hang(true);
    expect(await failure(hurried.listRemoteRefs(remote))).toMatchObject({ code: 'Timeout' });
    expect(await failure(hurried.push(remoteWith({}), [create('refs/heads/main')]))).toMatchObject({ code: 'Timeout' });
    await hurried.close();
  });

  test('a push that is cancelled after it was applied has an outcome that can be read', async () => {
    const held = join(folder.path, 'held');
    writeFileSync(held, '');
    hook('reference-transaction', `test "$1" = committed || exit 0; while test -e ${held}; do sleep 0.1; done`);
    const giveUp = new AbortController();
    const updates = [create('refs/heads/main')];
    const work = failure(repository.push(remote, updates, giveUp.signal));
    while (refsOf(origin).size === 0) await delay(20);
    giveUp.abort();
    expect(isUnknownOutcome(await work)).toBe(true);
    rmSync(held);
    expect(await repository.pushOutcome(remote, updates)).toBe('done');
  });

  test('the output of a hook is not taken for that of ssh', async () => {
    hook('post-receive', 'echo "Host key verification failed." >&2; sleep 0.3; kill -9 $PPID');
    const error = await repository.push(remote, [create('refs/heads/main')]).catch((thrown: unknown) => thrown);
    expect(error === undefined || isUnknownOutcome(error)).toBe(true);
    expect(refsOf(origin).size).toBe(1);
  });

  test('a pack of some megabytes is pushed, and one that the server rejects is reported', async () => {
    const edits = ['a', 'b', 'c'].map((name) => [name, { data: randomBytes(3_000_000) }] as const);
    const big = await repository.writeCommit(commitOf(await repository.editTree(undefined, new Map(edits))));
    execFileSync('git', ['--git-dir', origin, 'config', 'receive.maxInputSize', '1m']);
    const refused = await failure(repository.push(remote, [create('refs/heads/main', big)]));
    expect(refused.message).toMatch(/remote/);
    expect(refsOf(origin).size).toBe(0);
    execFileSync('git', ['--git-dir', origin, 'config', 'receive.maxInputSize', '0']);
    await repository.push(remote, [create('refs/heads/main', big)]);
    expect([...refsOf(origin)]).toEqual([['refs/heads/main', big]]);
    fsck(origin);
  });

  test('an unreachable machine has changed nothing', async () => {
    const error = await failure(
      repository.push(remoteWith({}, 'ssh://git@127.0.0.1:1/a.git'), [create('refs/heads/main')]),
    );
    expect(error).toMatchObject({ code: 'Unavailable', message: expect.stringContaining('cannot be reached') });
    expect(isUnknownOutcome(error)).toBe(false);
  });

  /** Folders with keys, of this process or another one that runs the same tests. */
  function privateFolders(): string[] {
    const key = server.credentials.privateKey;
    return readdirSync(tmpdir()).filter((name) => {
      const file = join(tmpdir(), name, 'key');
      return /^sluice-[^-]+$/.test(name) && existsSync(file) && readFileSync(file, 'utf8') === key;
    });
  }
});

describe(`${title}, on a server that does not accept a protocol version`, skipFor(problem), () => {
  test('the own client pushes, and git reads', async () => {
    const folder = temporaryFolder();
    const server = await startSshServer({ folder: folder.path, acceptsProtocol: false });
    const origin = initBare(join(folder.path, 'origin.git'));
    const repository = await openRepository(initBare(join(folder.path, 'local.git')));
    try {
      const remote = { url: `${server.url}${origin}`, credentials: async () => ({ ssh: server.credentials }) };
      const commit = await repository.writeCommit(commitOf(await repository.editTree(undefined, new Map())));
      await repository.push(remote, [{ type: 'create', ref: 'refs/heads/main', new: commit }]);
      expect(await repository.listRemoteRefs(remote)).toEqual([{ name: 'refs/heads/main', oid: commit }]);
      expect(repository.remoteNote?.message).toContain('push by own client');
      expect(repository.remoteNote?.message).toContain('fetch by git, because the server does not support version 2');
    } finally {
      await repository.close();
      await server.close();
      folder.remove();
    }
  });
});
