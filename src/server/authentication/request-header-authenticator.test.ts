import { beforeAll, describe, expect, test } from 'vitest';
import type { KeyPair } from '../certificates/issue-certificate.ts';
import { ExtensionServer, issue, trustData } from './testing-cluster.ts';

const AS_ALICE = { 'X-Remote-User': 'alice', 'X-Remote-Group': ['dev', 'ops, and more'] };
const ALICE = { name: 'alice', groups: ['dev', 'ops, and more', 'system:authenticated'] };

let proxyCa: KeyPair;
let clientCa: KeyPair;
let proxy: KeyPair;
let user: KeyPair;
beforeAll(async () => {
  proxyCa = await issue({ commonName: 'front-proxy-ca', usage: 'authority' });
  clientCa = await issue({ commonName: 'cluster-ca', usage: 'authority' });
  proxy = await issue({ commonName: 'front-proxy-client', usage: 'client' }, proxyCa);
  user = await issue({ commonName: 'mallory', organisations: ['guests'], usage: 'client' }, clientCa);
});

const cluster = () => trustData({ proxy: proxyCa.certificate, client: clientCa.certificate });

describe.each(['http1', 'http2'] as const)('over %s', (protocol) => {
  test('the aggregator names the user of a request', async () => {
    await using server = await ExtensionServer.start(cluster());
    const connection = server[protocol](proxy);
    expect(await connection.whoAmI(AS_ALICE)).toEqual(ALICE);
    const complete = {
      ...AS_ALICE,
      'X-Remote-Uid': 'u-1',
      'X-Remote-Extra-Scopes': ['view', 'edit'],
      'X-Remote-Extra-Acme.Example%2fproject': 'x',
      'X-Remote-Extra-__proto__': 'y',
    };
    const extra = Object.fromEntries([
      ['scopes', ['view', 'edit']],
      ['acme.example/project', ['x']],
      ['__proto__', ['y']],
    ]);
    expect(await connection.whoAmI(complete)).toEqual({ ...ALICE, uid: 'u-1', extra });
    // Each request of a connection is that of another user.
    const bob = { name: 'bob', groups: ['system:authenticated'] };
    expect(await connection.whoAmI({ 'x-remote-user': 'bob' })).toEqual(bob);
    const anonymous = { 'x-remote-user': 'system:anonymous', 'x-remote-group': 'system:unauthenticated' };
    const unauthenticated = { name: 'system:anonymous', groups: ['system:unauthenticated'] };
    expect(await connection.whoAmI(anonymous)).toEqual(unauthenticated);
    expect(server.errors).toEqual([]);
  });

  test('the headers of everyone else are ignored', async () => {
    await using server = await ExtensionServer.start(cluster());
    const forged = { ...AS_ALICE, 'X-Remote-Group': 'system:masters' };
    expect(await server[protocol]().whoAmI(forged)).toBeNull();
    const mallory = { name: 'mallory', groups: ['guests', 'system:authenticated'] };
    expect(await server[protocol](user).whoAmI(forged)).toMatchObject(mallory);

    const wrongName = await issue({ commonName: 'other-client', usage: 'client' }, proxyCa);
    expect(await server[protocol](wrongName).whoAmI(forged)).toBeNull();
    const wrongAuthority = await issue({ commonName: 'front-proxy-client', usage: 'client' }, clientCa);
    expect(await server[protocol](wrongAuthority).whoAmI(forged)).toMatchObject({ name: 'front-proxy-client' });
    const wrongUse = await issue({ commonName: 'front-proxy-client', usage: 'server' }, proxyCa);
    expect(await server[protocol](wrongUse).whoAmI(forged)).toBeNull();
    const expired = { notBefore: 0, notAfter: Date.now() - 1000 };
    const old = await issue({ commonName: 'front-proxy-client', usage: 'client', ...expired }, proxyCa);
    expect(await server[protocol](old).whoAmI(forged)).toBeNull();
    const impostor = await issue({ commonName: 'front-proxy-ca', usage: 'authority' });
    const likeIt = await issue({ commonName: 'front-proxy-client', usage: 'client' }, impostor);
    expect(await server[protocol](likeIt).whoAmI(forged)).toBeNull();
    // A certificate that a client certificate has signed.
    const below = await issue({ commonName: 'front-proxy-client', usage: 'client' }, proxy);
    const chained = { certificate: below.certificate + proxy.certificate, key: below.key };
    expect(await server[protocol](chained).whoAmI(forged)).toBeNull();
  });

  test('a user that is not named unambiguously is none', async () => {
    await using server = await ExtensionServer.start(cluster());
    const connection = server[protocol](proxy);
    const ambiguous = [
      {},
      { 'x-remote-user': '' },
      { 'x-remote-user': ['alice', 'bob'] },
      { 'x-remote-user': 'alice', 'x-remote-uid': ['1', '2'] },
      // Not UTF-8.
      { 'x-remote-user': 'alice\u00ff' },
      { 'x-remote-group': 'system:masters' },
    ];
    for (const headers of ambiguous) expect(await connection.whoAmI(headers as never)).toBeNull();
    const utf8 = Buffer.from('änne').toString('latin1');
    expect(await connection.whoAmI({ 'x-remote-user': utf8 })).toMatchObject({ name: 'änne' });
  });

  test('a user is in all groups, however many', async () => {
    await using server = await ExtensionServer.start(cluster());
    const groups = Array.from({ length: 900 }, (_, index) => `g-${index}`);
    const found = await server[protocol](proxy).whoAmI({ 'x-remote-user': 'alice', 'x-remote-group': groups });
    expect(found?.groups).toEqual([...groups, 'system:authenticated']);
  });

  test('authorities rotate while connections are open', async () => {
    await using server = await ExtensionServer.start(cluster());
    const [nextProxyCa, nextClientCa] = [
      await issue({ commonName: 'front-proxy-ca-2', usage: 'authority' }),
      await issue({ commonName: 'cluster-ca-2', usage: 'authority' }),
    ];
    const nextProxy = await issue({ commonName: 'front-proxy-client', usage: 'client' }, nextProxyCa);
    const nextUser = await issue({ commonName: 'nina', usage: 'client' }, nextClientCa);
    const [open, openUser] = [server[protocol](proxy), server[protocol](user)];
    const alice = () => open.whoAmI(AS_ALICE);
    expect(await alice()).toEqual(ALICE);
    expect(await openUser.whoAmI()).toMatchObject({ name: 'mallory' });
    expect(await server[protocol](nextProxy).whoAmI(AS_ALICE)).toBeNull();

    server.follow(
      trustData({
        proxy: proxyCa.certificate + nextProxyCa.certificate,
        client: clientCa.certificate + nextClientCa.certificate,
      }),
    );
    expect(await alice()).toEqual(ALICE);
    const openNext = server[protocol](nextProxy);
    expect(await openNext.whoAmI(AS_ALICE)).toEqual(ALICE);
    expect(await server[protocol](nextUser).whoAmI()).toMatchObject({ name: 'nina' });

    server.follow(trustData({ proxy: nextProxyCa.certificate, client: nextClientCa.certificate }));
    expect(await alice()).toBeNull();
    expect(await openUser.whoAmI()).toBeNull();
    expect(await openNext.whoAmI(AS_ALICE)).toEqual(ALICE);
    expect(await server[protocol](proxy).whoAmI(AS_ALICE)).toBeNull();
    expect(await server[protocol](user).whoAmI()).toBeNull();
  });

  test('an allowed name that is withdrawn counts at once', async () => {
    await using server = await ExtensionServer.start(cluster());
    const open = server[protocol](proxy);
    expect(await open.whoAmI(AS_ALICE)).toEqual(ALICE);
    server.follow({ ...cluster(), 'requestheader-allowed-names': '["another"]' });
    expect(await open.whoAmI(AS_ALICE)).toBeNull();
  });
});

test('without a trust, all headers and certificates are ignored, also those of public authorities', async () => {
  await using server = await ExtensionServer.start({});
  for (const pair of [undefined, proxy, user]) expect(await server.http2(pair).whoAmI(AS_ALICE)).toBeNull();
});
