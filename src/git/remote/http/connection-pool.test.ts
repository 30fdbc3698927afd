import { createServer, request } from 'node:http';
import { syncBuiltinESMExports } from 'node:module';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import tls from 'node:tls';
import { expect, onTestFinished, test, vi } from 'vitest';
import { initBare, temporaryFolder } from '../../../../test/support/git/git-cli.ts';
import { startGitServer } from '../../../../test/support/git/git-server.ts';
import { HostRules } from '../../network/host-rules.ts';
import { openRepository } from '../../open/open-repository.ts';
import { ConnectionPool } from './connection-pool.ts';

test('a proxy of the environment is used, but not for this machine', async () => {
  const folder = temporaryFolder();
  initBare(join(folder.path, 'origin.git'));
  const server = await startGitServer({ root: folder.path });
  const targets: string[] = [];
  const proxy = createServer((incoming, answer) => {
    const { host, pathname, search } = new URL(incoming.url ?? '');
    targets.push(host);
    const { method, headers } = incoming;
    const onward = request(`${server.url}${pathname}${search}`, { method, headers }, (reply) => {
      answer.writeHead(reply.statusCode ?? 0, reply.headers);
      reply.pipe(answer);
    });
    incoming.pipe(onward);
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  // A process reads its proxy from its environment only.
  vi.stubEnv('http_proxy', `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`);
  const repository = await openRepository(initBare(join(folder.path, 'local.git')), {
    network: { hosts: new HostRules(['localhost', '127.0.0.1', '[::1]', 'git.example.test']) },
  });
  try {
    expect(await repository.listRemoteRefs({ url: `${server.url}/origin.git` })).toEqual([]);
    expect(targets).toEqual([]);
    expect(await repository.listRemoteRefs({ url: 'http://git.example.test/origin.git' })).toEqual([]);
    expect(new Set(targets)).toEqual(new Set(['git.example.test']));
  } finally {
    vi.unstubAllEnvs();
    await repository.close();
    await server.close();
    proxy.closeAllConnections();
    proxy.close();
    folder.remove();
  }
});

test('connections with the same authorities share one TLS context, and those without TLS have none', async () => {
  const created = vi.spyOn(tls, 'createSecureContext');
  syncBuiltinESMExports();
  onTestFinished(() => {
    created.mockRestore();
    syncBuiltinESMExports();
  });
  const [first = '', second = '', third = ''] = tls.rootCertificates;
  const pools: ConnectionPool[] = [];
  const connect = (url: string, ca: string) => {
    const pool = new ConnectionPool(url, { hosts: new HostRules([]) });
    pools.push(pool);
    pool.for(ca);
  };
  for (let count = 0; count < 20; count += 1) connect(`https://${count}.example.test/a.git`, first);
  connect('https://127.0.0.1:8443/a.git', first);
  expect(created).toHaveBeenCalledTimes(1);
  connect('https://git.example.test/a.git', second);
  connect('https://git.example.test/b.git', first);
  expect(created).toHaveBeenCalledTimes(2);
  connect('http://git.example.test/a.git', third);
  expect(created).toHaveBeenCalledTimes(2);
  expect(() => connect('https://git.example.test/a.git', 'no certificate')).toThrow('provide certificates in PEM');
  await Promise.all(pools.map((pool) => pool.close()));
});

test('the authorities change while it is closed', async () => {
  const pool = new ConnectionPool('https://git.example.test/a.git', { hosts: new HostRules([]) });
  const unhandled: unknown[] = [];
  const note = (error: unknown) => void unhandled.push(error);
  process.on('unhandledRejection', note);
  onTestFinished(() => void process.off('unhandledRejection', note));
  pool.for(tls.rootCertificates[0]);
  const closed = pool.close();
  pool.for(tls.rootCertificates[1]);
  await closed;
  await setImmediate();
  expect(unhandled).toEqual([]);
});
