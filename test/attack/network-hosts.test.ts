import { createServer as createHttpServer, type RequestListener } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { GitRemote, GitRepository } from '../../src/git/git-repository.ts';
import { PUBLIC_NETWORK } from '../../src/git/network/git-network.ts';
import { HostRules } from '../../src/git/network/host-rules.ts';
import { openRepository, type RepositoryOptions } from '../../src/git/open/open-repository.ts';
import { issueCertificate, type KeyPair } from '../../src/server/certificates/issue-certificate.ts';
import { initBare, temporaryFolder } from '../support/git/git-cli.ts';
import { startGitServer } from '../support/git/git-server.ts';
import { newKey } from '../support/git/ssh-server.ts';

const DAY = 86_400_000;
const SECRET = 'the-password-is-hunter2';
const REFSPECS = { refspecs: ['+refs/heads/*:refs/heads/*'] };

/** A service that is not for callers of Sluice: what it is sent, and whom it was connected to by. */
interface Victim {
  readonly port: number;
  /** The address of this machine that each connection came to. */
  readonly connections: string[];
}

describe.each(['auto', 'git'] as const)('an address of the attacker (%s)', (transport) => {
  let folder: ReturnType<typeof temporaryFolder>;
  let repository: GitRepository;
  const open: Server[] = [];
  const sockets = new Set<Socket>();
  beforeEach(() => {
    folder = temporaryFolder();
  });
  afterEach(async () => {
    await repository?.close();
    for (const socket of sockets) socket.destroy();
    for (const server of open.splice(0)) server.close();
    folder.remove();
  });

  async function start(network: RepositoryOptions['network'] = PUBLIC_NETWORK): Promise<void> {
    repository = await openRepository(initBare(join(folder.path, 'local.git')), { transport, network });
  }

  async function victim(server: Server, host = '127.0.0.1'): Promise<Victim> {
    const connections: string[] = [];
    server.on('connection', (socket: Socket) => {
      connections.push(socket.localAddress ?? '');
      sockets.add(socket);
    });
    open.push(server);
    await new Promise<void>((resolve) => server.listen(0, host, resolve));
    return { port: (server.address() as AddressInfo).port, connections };
  }

  async function refusals(remote: GitRemote): Promise<string[]> {
    const failures = [repository.listRemoteRefs(remote), repository.fetch(remote, REFSPECS)].map((work) =>
      work.then(
        () => 'it succeeded',
        (error: Error) => error.message,
      ),
    );
    return await Promise.all(failures);
  }

  test('that is local is refused in any scheme and form, and the message names the option', async () => {
    await start();
    const { port, connections } = await victim(createTcpServer());
    const { privateKey } = newKey(folder.path, 'key');
    const ssh = { privateKey, knownHosts: 'x ssh-ed25519 AAAA' };
    const hosts = ['localhost', '127.0.0.1', '127.1', '2130706433', '0x7f000001', '0.0.0.0', '[::1]', '[::]'];
    for (const host of [...hosts, '[::ffff:127.0.0.1]', 'localhost.', hostname()])
      for (const scheme of ['http', 'https', 'ssh']) {
        const isBadForm = scheme === 'ssh' && host.endsWith('.');
        if (isBadForm) continue;
        const remote = { url: `${scheme}://${host}:${port}/a.git`, credentials: async () => ({ ssh }) };
        for (const message of await refusals(remote)) expect(message, remote.url).toMatch(/--allow-git-host \S+:\d+, /);
      }
    expect(connections).toEqual([]);
  });

  test('whose name leads elsewhere after the check is connected to where the check was', async () => {
    const notBefore = Date.now() - DAY;
    const lifetime = { notBefore, notAfter: notBefore + 30 * DAY };
    const authority = await issueCertificate({ commonName: 'ca', usage: 'authority', names: [], ...lifetime });
    const certificate = await issueCertificate(
      { commonName: 'rebind.invalid', usage: 'server', names: ['rebind.invalid'], ...lifetime },
      authority,
    );
    const { port, connections } = await victim(
      tlsServer(certificate, (_, answer) => void answer.writeHead(404, { connection: 'close' }).end()),
      '0.0.0.0',
    );
    let lookups = 0;
    const hosts = new HostRules([], {
      // 127.0.0.1 stands for a public address, 127.0.0.2 for a local one.
      resolve: async () => [{ address: ++lookups % 2 === 1 ? '127.0.0.1' : '127.0.0.2', family: 4 }],
      isLocal: (address) => address !== '127.0.0.1',
    });
    await start({ hosts, authorities: authority.certificate });
    const remote = { url: `https://rebind.invalid:${port}/a.git` };
    const messages: string[] = [];
    for (let round = 0; round < 4; round += 1)
      messages.push(
        await repository.listRemoteRefs(remote).then(
          () => 'it succeeded',
          (error: Error) => error.message,
        ),
      );
    expect(messages.join('\n')).toMatch(/has no such repository/);
    expect(messages.join('\n')).toMatch(/local address/);
    expect(connections.length).toBeGreaterThan(0);
    expect(new Set(connections)).toEqual(new Set(['127.0.0.1']));
  });

  test('does not lead on to a local one by a redirect', async () => {
    const target = await victim(createHttpServer((_, answer) => void answer.end(SECRET)));
    const first = await victim(
      createHttpServer((_, answer) => {
        answer.writeHead(302, { location: `http://127.0.0.1:${target.port}/a.git/info/refs?service=git-upload-pack` });
        answer.end();
      }),
    );
    await start({ hosts: new HostRules([`127.0.0.1:${first.port}`]) });
    for (const message of await refusals({ url: `http://127.0.0.1:${first.port}/a.git` }))
      expect(message).toContain('redirects elsewhere');
    expect(first.connections).not.toEqual([]);
    expect(target.connections).toEqual([]);
  });

  test.each([
    ['an error', 403, 'text/plain'],
    ['an error of the server', 500, 'text/plain; charset=utf-8'],
    ['a page', 200, 'text/html'],
    ['something in the protocol of Git', 200, 'application/x-git-upload-pack-advertisement'],
    ['an old listing', 200, 'text/plain'],
  ])('answers with %s, whose text is in no message', async (_, status, type) => {
    const { port } = await victim(
      createHttpServer((_request, answer) => {
        answer.writeHead(status, { 'content-type': type, connection: 'close' });
        answer.end(`${SECRET}\n${SECRET}\trefs/heads/${SECRET}\n`);
      }),
    );
    await start({ hosts: new HostRules([`127.0.0.1:${port}`]) });
    for (const message of await refusals({ url: `http://127.0.0.1:${port}/a.git` })) {
      expect(message).not.toContain('it succeeded');
      expect(message).not.toContain('hunter');
    }
  });

  test('is reached once the operator permits the host, by name and over http, and no other port of it', async () => {
    initBare(join(folder.path, 'origin.git'));
    const server = await startGitServer({ root: folder.path });
    try {
      const { port } = new URL(server.url);
      await start({ hosts: new HostRules([`localhost:${port}`]) });
      expect(await repository.listRemoteRefs({ url: `http://localhost:${port}/origin.git` })).toEqual([]);
      for (const message of await refusals({ url: `${server.url}/origin.git` }))
        expect(message).toMatch(/allow-git-host/);
    } finally {
      await server.close();
    }
  });
});

function tlsServer({ certificate: cert, key }: KeyPair, handle: RequestListener): Server {
  return createHttpsServer({ cert, key }, handle);
}
