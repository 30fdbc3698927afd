import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, connect, type Server } from 'node:net';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { commitOf } from '../../src/git/git-repository.conformance.ts';
import type { GitCredentials, GitRepository, Oid, RefUpdate } from '../../src/git/git-repository.ts';
import { HostRules } from '../../src/git/network/host-rules.ts';
import { openRepository } from '../../src/git/open/open-repository.ts';
import { issueCertificate, type KeyPair } from '../../src/server/certificates/issue-certificate.ts';
import { git, initBare, refsOf, temporaryFolder } from '../support/git/git-cli.ts';
import { type GitServer, startGitServer } from '../support/git/git-server.ts';

const DAY = 86_400_000;
const REFSPECS = ['+refs/heads/*:refs/heads/*'];

async function authority(commonName: string): Promise<KeyPair> {
  const now = Date.now();
  return await issueCertificate({ commonName, usage: 'authority', notBefore: now - DAY, notAfter: now + DAY });
}

async function certificate(issuer: KeyPair, name: string, notAfter = Date.now() + DAY): Promise<KeyPair> {
  const notBefore = Date.now() - 2 * DAY;
  return await issueCertificate({ commonName: name, usage: 'server', names: [name], notBefore, notAfter }, issuer);
}

/** With the own client, and with git. */
describe.each(['auto', 'git'] as const)('network between client and server (%s)', (transport) => {
  let folder: ReturnType<typeof temporaryFolder>;
  let server: GitServer;
  let origin: string;
  let repository: GitRepository;
  let first: Oid;
  const open: Server[] = [];

  beforeEach(async () => {
    folder = temporaryFolder();
    origin = initBare(join(folder.path, 'origin.git'));
    server = await startGitServer({ root: folder.path });
    repository = await openRepository(initBare(join(folder.path, 'local.git')), {
      transport,
      network: { hosts: new HostRules(['localhost', '127.0.0.1', '[::1]', 'git.example.test']) },
    });
    const tree = await repository.editTree(undefined, new Map([['a', { data: Buffer.from('a') }]]));
    first = await repository.writeCommit(commitOf(tree));
    await repository.push({ url: `${server.url}/origin.git` }, [create('refs/heads/main')]);
  });

  afterEach(async () => {
    vi.unstubAllEnvs();
    await repository.close();
    for (const one of open.splice(0)) {
      if ('closeAllConnections' in one) (one as ReturnType<typeof createServer>).closeAllConnections();
      one.close();
    }
    await server.close();
    folder.remove();
  });

  const create = (ref: string): RefUpdate => ({ type: 'create', ref, new: first });

  async function listen(one: Server): Promise<number> {
    open.push(one);
    await new Promise<void>((resolve) => one.listen(0, '127.0.0.1', resolve));
    return (one.address() as AddressInfo).port;
  }

  /** Forwards a request to the server, which responds itself. */
  function passOn(incoming: IncomingMessage, answer: ServerResponse): void {
    const { method, headers, url = '' } = incoming;
    const path = URL.canParse(url) ? new URL(url).pathname + new URL(url).search : url;
    const onward = request(`${server.url}${path}`, { method, headers }, (reply) => {
      answer.writeHead(reply.statusCode ?? 0, reply.headers);
      reply.pipe(answer);
    });
    incoming.pipe(onward);
  }

  const tlsServer = ({ certificate: cert, key }: KeyPair) => listen(createTlsServer({ cert, key }, passOn));
  const withAuthority = (text: string) => async (): Promise<GitCredentials> => ({ certificateAuthorities: text });

  test('a server with a certificate of a private authority is used once that is trusted', async () => {
    const [ours, other] = [await authority('ours'), await authority('other')];
    const url = `https://127.0.0.1:${await tlsServer(await certificate(ours, '127.0.0.1'))}/origin.git`;
    const trusting = { url, credentials: withAuthority(`A comment\n${other.certificate}${ours.certificate}`) };
    await repository.push(trusting, [create('refs/heads/x')]);
    expect(await repository.fetch(trusting, { refspecs: REFSPECS })).toHaveLength(2);
    for (const remote of [{ url }, { url, credentials: withAuthority(other.certificate) }]) {
      const error = await repository.push(remote, [create('refs/heads/y')]).catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ message: expect.stringContaining('ca.crt') });
      await expect(repository.listRemoteRefs(remote)).rejects.toMatchObject({
        code: 'Refused',
        message: expect.stringContaining('ca.crt'),
      });
    }
    // Another one is trusted from the next request on.
    await repository.push(trusting, [create('refs/heads/y')]);
    expect(refsOf(origin).size).toBe(3);
  });

  // Git itself is not under test here.
  if (transport === 'auto')
    test('an invalid certificate is reported as such', async () => {
      const ours = await authority('ours');
      const list = async (key: KeyPair, ca = ours.certificate) => {
        const url = `https://127.0.0.1:${await tlsServer(key)}/origin.git`;
        return await repository.listRemoteRefs({ url, credentials: withAuthority(ca) });
      };
      const refused = (text: string) => ({ code: 'Refused', message: expect.stringContaining(text) });
      await expect(list(await certificate(ours, 'git.example.com'))).rejects.toMatchObject(refused('other names'));
      await expect(list(await certificate(ours, '127.0.0.1', Date.now() - DAY))).rejects.toMatchObject(
        refused('expired'),
      );
      const good = await certificate(ours, '127.0.0.1');
      const block = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n';
      for (const broken of ['', 'nothing', block, `${ours.certificate}${block}`, 'x'.repeat(2 << 20)])
        await expect(list(good, broken)).rejects.toMatchObject({ code: 'InvalidInput' });
    });

  test('a proxy is used for TLS too, with the authority of the server, but not for this machine', async () => {
    const ours = await authority('ours');
    const tls = await tlsServer(await certificate(ours, 'git.example.test'));
    const targets: string[] = [];
    const proxy = createServer((_incoming, answer) => answer.writeHead(400).end());
    proxy.on('connect', (incoming, socket, head) => {
      targets.push(incoming.url ?? '');
      const onward = connect(tls, '127.0.0.1', () => {
        socket.write('HTTP/1.1 200 OK\r\n\r\n');
        onward.write(head);
        onward.pipe(socket).pipe(onward);
      });
      onward.on('error', () => socket.destroy());
      socket.on('error', () => onward.destroy());
      socket.on('close', () => onward.destroy());
    });
    // Only the environment of a process configures a proxy.
    vi.stubEnv('HTTPS_PROXY', `http://127.0.0.1:${await listen(proxy)}`);
    vi.stubEnv('NO_PROXY', 'other.example.test');
    const remote = { url: 'https://git.example.test/origin.git', credentials: withAuthority(ours.certificate) };
    expect(await repository.fetch(remote, { refspecs: REFSPECS })).toHaveLength(1);
    await repository.push(remote, [create('refs/heads/x')]);
    expect(new Set(targets)).toEqual(new Set(['git.example.test:443']));
    const before = targets.length;
    const local = await certificate(ours, '127.0.0.1');
    const url = `https://127.0.0.1:${await tlsServer(local)}/origin.git`;
    expect(await repository.listRemoteRefs({ ...remote, url })).toHaveLength(2);
    expect(targets).toHaveLength(before);
    await expect(repository.listRemoteRefs({ url: 'https://other.example.test/origin.git' })).rejects.toMatchObject({
      code: 'Unavailable',
    });
    expect(targets).toHaveLength(before);
  });

  // Git itself is not under test here.
  if (transport === 'auto')
    test('a redirect is not followed, and the message names the new address', async () => {
      const paths: Record<string, string> = {
        '/old/info/refs': '/origin.git/info/refs?service=git-upload-pack',
        '/elsewhere/info/refs': `${server.url}/origin.git/info/refs`,
        '/login/info/refs': '/sign-in',
        '/odd/info/refs': 'javascript:alert(1)/info/refs',
      };
      const base = `http://127.0.0.1:${await listen(
        createServer((incoming, answer) => {
          const { pathname } = new URL(incoming.url ?? '', 'http://x');
          answer.writeHead(301, { location: paths[pathname] ?? '' }).end();
        }),
      )}`;
      const message = async (path: string) => {
        const error = await repository.listRemoteRefs({ url: `${base}${path}` }).catch((thrown: unknown) => thrown);
        expect(error).toMatchObject({ code: 'Refused', details: { status: 301 } });
        return (error as Error).message;
      };
      expect(await message('/old')).toContain(`use its new address, ${base}/origin.git (`);
      expect(await message('/elsewhere')).toContain(`use its new address, ${server.url}/origin.git (`);
      for (const path of ['/login', '/odd']) expect(await message(path)).toContain('use its new address (');
    });

  test('responses may be compressed, and a truncated one is an error', async () => {
    let half = false;
    const port = await listen(
      createServer(async (incoming, answer) => {
        const sent = Buffer.concat(await incoming.toArray());
        const reply = await new Promise<IncomingMessage>((resolve) => {
          const { method, headers, url } = incoming;
          request(`${server.url}${url}`, { method, headers }, resolve).end(sent);
        });
        const body = Buffer.concat(await reply.toArray());
        const takes = incoming.headers['accept-encoding']?.includes('gzip') === true;
        const zipped = takes ? gzipSync(body) : body;
        answer.writeHead(reply.statusCode ?? 0, {
          'content-type': reply.headers['content-type'],
          ...(takes ? { 'content-encoding': 'gzip' } : {}),
        });
        answer.end(half ? zipped.subarray(0, zipped.length - 12) : zipped);
      }),
    );
    const remote = { url: `http://127.0.0.1:${port}/origin.git` };
    await repository.push(remote, [create('refs/heads/x')]);
    expect(await repository.fetch(remote, { refspecs: REFSPECS })).toHaveLength(2);
    half = true;
    await expect(repository.listRemoteRefs(remote)).rejects.toMatchObject({ code: 'Unavailable' });
  });

  test('options of a push are sent, and refused where the server does not support them', async () => {
    const remote = { url: `${server.url}/origin.git`, pushOptions: ['ci.skip', 'topic=a b ü'] };
    const error = await repository.push(remote, [create('refs/heads/x')]).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      code: 'Unsupported',
      message: expect.stringContaining('does not accept push options'),
    });
    git(origin, ['config', 'receive.advertisePushOptions', 'true']);
    await server.close();
    const hook = `#!/bin/sh\nprintf '%s|%s|%s' "$GIT_PUSH_OPTION_COUNT" "$GIT_PUSH_OPTION_0" "$GIT_PUSH_OPTION_1" >${folder.path}/seen\n`;
    server = await startGitServer({ root: folder.path, hooks: { 'pre-receive': hook } });
    const again = { ...remote, url: `${server.url}/origin.git` };
    await repository.push(again, [create('refs/heads/x')]);
    expect(readFileSync(join(folder.path, 'seen'), 'utf8')).toBe('2|ci.skip|topic=a b ü');
    await repository.push({ url: again.url }, [create('refs/heads/y')]);
    expect(readFileSync(join(folder.path, 'seen'), 'utf8')).toBe('0||');
  });
});
