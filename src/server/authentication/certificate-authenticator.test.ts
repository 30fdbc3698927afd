import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, request } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, type TLSSocket } from 'node:tls';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../foundation/time/clock.ts';
import { ManualClock } from '../../foundation/time/manual-clock.ts';
import { issueCertificate, type KeyPair } from '../certificates/issue-certificate.ts';
import { openPki } from '../certificates/open-pki.ts';
import { tlsOptions } from '../certificates/tls-options.ts';
import { type AuthenticationRequest, firstOf } from './authenticator.ts';
import { Authorities } from './authorities.ts';
import { CertificateAuthenticator } from './certificate-authenticator.ts';
import { TokenAuthenticator } from './token-authenticator.ts';
import { addToken } from './token-file.ts';
import type { User } from './user.ts';

const DAY = 86_400_000;

async function setUp(clock = new ManualClock(Date.now())) {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-tls-'));
  const pki = await openPki({ folder, names: ['localhost', '127.0.0.1'], clock: systemClock, onNote: () => undefined });
  const tokenFile = join(folder, 'tokens.csv');
  const errors: unknown[] = [];
  const authenticator = firstOf(
    [
      new CertificateAuthenticator(clock),
      new TokenAuthenticator({ path: tokenFile, clock, onProblem: (problem) => errors.push(problem) }),
    ],
    (error) => errors.push(error),
  );
  const server = createServer(tlsOptions(pki), async (incoming, response) => {
    response.end(JSON.stringify((await authenticator.authenticate(incoming)) ?? null));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    await rm(folder, { recursive: true });
  });
  /** The user that the server authenticates on a connection of its own. */
  const whoAmI = async (pair?: KeyPair, headers: Record<string, string> = {}): Promise<User | null> => {
    const options = { host: '127.0.0.1', port, path: '/', headers, agent: false, ca: pki.authority };
    const { promise, resolve, reject } = Promise.withResolvers<User | null>();
    const outgoing = request({ ...options, ...credentialsOf(pair) }, async (response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of response) chunks.push(chunk);
      resolve(JSON.parse(Buffer.concat(chunks).toString()));
    });
    outgoing.on('error', reject).end();
    return promise;
  };
  return { folder, pki, clock, tokenFile, errors, port, whoAmI };
}

function credentialsOf(pair: KeyPair | undefined) {
  return pair === undefined ? {} : { cert: pair.certificate, key: pair.key };
}

function validity(from: number, to: number) {
  return { notBefore: Date.now() + from, notAfter: Date.now() + to };
}

test('a certificate of our authority names the user and the groups', async () => {
  const { pki, errors, whoAmI } = await setUp();
  expect(await whoAmI(await pki.issueClient('anna', ['ops', 'dev'], DAY))).toEqual({
    name: 'anna',
    groups: ['ops', 'dev', 'system:authenticated'],
  });
  expect(await whoAmI(await pki.issueClient('bob', [], DAY))).toEqual({
    name: 'bob',
    groups: ['system:authenticated'],
  });
  expect(errors).toEqual([]);
});

test('no user is authenticated without a certificate, whatever the headers claim', async () => {
  const { pki, whoAmI } = await setUp();
  const forged = {
    'X-Remote-User': 'admin',
    'X-Remote-Group': 'system:masters',
    'X-Forwarded-User': 'admin',
    'X-Client-Cert': encodeURIComponent(pki.authority),
    'X-SSL-Client-S-DN': 'CN=admin,O=system:masters',
    Cookie: 'user=admin',
  };
  expect(await whoAmI(undefined, forged)).toBeNull();
  const anna = await pki.issueClient('anna', [], DAY);
  expect(await whoAmI(anna, forged)).toEqual({ name: 'anna', groups: ['system:authenticated'] });
});

test('certificates that others signed, that have expired, or that are for servers prove no user', async () => {
  const { folder, pki, whoAmI } = await setUp();
  const other = await openPki({
    folder: join(folder, 'other'),
    names: [],
    clock: systemClock,
    onNote: () => undefined,
  });
  expect(await whoAmI(await other.issueClient('admin', ['system:masters'], DAY))).toBeNull();

  const self = { commonName: 'admin', organisations: ['system:masters'], usage: 'client' } as const;
  expect(await whoAmI(await issueCertificate({ ...self, ...validity(-DAY, DAY) }))).toBeNull();

  expect(await whoAmI(pki.server)).toBeNull();
});

test('certificates outside their time prove no user', async () => {
  const { folder, whoAmI } = await setUp();
  const text = await import('node:fs/promises').then(({ readFile }) => readFile(join(folder, 'ca.pem'), 'utf8'));
  const authority = { certificate: text, key: text.slice(text.indexOf('-----BEGIN PRIVATE')) };
  const anna = { commonName: 'anna', usage: 'client' } as const;
  expect(await whoAmI(await issueCertificate({ ...anna, ...validity(-DAY, DAY) }, authority))).toMatchObject({
    name: 'anna',
  });
  expect(await whoAmI(await issueCertificate({ ...anna, ...validity(-2 * DAY, -DAY) }, authority))).toBeNull();
  expect(await whoAmI(await issueCertificate({ ...anna, ...validity(DAY, 2 * DAY) }, authority))).toBeNull();
});

test('a certificate that a client certificate signed proves no user', async () => {
  const { pki, whoAmI } = await setUp();
  const anna = await pki.issueClient('anna', [], DAY);
  const forged = await issueCertificate({ commonName: 'admin', usage: 'client', ...validity(-DAY, DAY) }, anna);
  expect(await whoAmI(forged)).toBeNull();
  expect(await whoAmI({ certificate: forged.certificate + anna.certificate, key: forged.key })).toBeNull();
});

test('a connection that outlives its certificate no longer proves a user', async () => {
  const { pki, clock, port } = await setUp();
  const authenticator = new CertificateAuthenticator(clock);
  const anna = await pki.issueClient('anna', [], DAY);
  const socket = await handshake(tlsOptions(pki), { ca: pki.authority, ...credentialsOf(anna) });
  expect(port).toBeGreaterThan(0);
  const request: AuthenticationRequest = { socket, headers: {}, headersDistinct: {} };
  expect(authenticator.authenticate(request)).toMatchObject({ name: 'anna' });
  // It was issued by the system's clock, a moment after the other one was set.
  clock.advance(DAY + 60_000);
  expect(authenticator.authenticate(request)).toBeUndefined();
});

test('a resumed session proves what the first one proved, no more', async () => {
  const { folder, pki, clock } = await setUp();
  const other = await openPki({
    folder: join(folder, 'other'),
    names: [],
    clock: systemClock,
    onNote: () => undefined,
  });
  const cases: [KeyPair | undefined, string | undefined][] = [
    [await pki.issueClient('anna', [], DAY), 'anna'],
    [await other.issueClient('admin', ['system:masters'], DAY), undefined],
    [undefined, undefined],
  ];
  const options = tlsOptions(pki);
  const authorities = Authorities.parse(pki.authority);
  for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const)
    for (const [pair, name] of cases) {
      const { server, connectOnce } = await tlsServer({ ...options, maxVersion });
      const first = await connectOnce({ ca: pki.authority, ...credentialsOf(pair) });
      const resumed = await connectOnce({ ca: pki.authority, session: first.session });
      expect(resumed.reused).toBe(true);
      const inCluster = new CertificateAuthenticator(clock, () => authorities);
      for (const { peer } of [first, resumed])
        for (const authenticator of [new CertificateAuthenticator(clock), inCluster])
          expect(authenticator.authenticate({ socket: peer, headers: {}, headersDistinct: {} })?.name).toBe(name);
      const others = new CertificateAuthenticator(clock, () => Authorities.parse(other.authority));
      expect(others.authenticate({ socket: resumed.peer, headers: {}, headersDistinct: {} })).toBeUndefined();
      server.close();
    }
});

test('a bad certificate does not keep a good token out, and a good certificate comes first', async () => {
  const { folder, pki, clock, tokenFile, whoAmI } = await setUp();
  const token = await addToken(tokenFile, { user: 'carl', groups: ['ops'] }, clock);
  const other = await openPki({
    folder: join(folder, 'other'),
    names: [],
    clock: systemClock,
    onNote: () => undefined,
  });
  const headers = { Authorization: `Bearer ${token}` };
  const carl = { name: 'carl', groups: ['ops', 'system:authenticated'] };
  expect(await whoAmI(undefined, headers)).toEqual(carl);
  expect(await whoAmI(await other.issueClient('admin', [], DAY), headers)).toEqual(carl);
  expect(await whoAmI(await pki.issueClient('anna', [], DAY), headers)).toMatchObject({ name: 'anna' });
  expect(await whoAmI(undefined, { Authorization: `Bearer ${token}x` })).toBeNull();
});

test('the failure of an authenticator is reported, and the next one is tried', async () => {
  const errors: unknown[] = [];
  const down = { authenticate: () => Promise.reject(new Error('issuer does not answer')) };
  const anna = { authenticate: () => ({ name: 'anna', groups: [] }) };
  const chain = firstOf([down, anna], (error) => errors.push(error));
  const request = { headers: {} } as AuthenticationRequest;
  expect(await chain.authenticate(request)).toEqual({ name: 'anna', groups: ['system:authenticated'] });
  expect(errors).toHaveLength(1);
  const other = { authenticate: () => undefined };
  // Credentials that were not checked are not wrong.
  await expect(firstOf([down, other], () => undefined).authenticate(request)).rejects.toMatchObject({
    code: 'Unavailable',
    message: expect.not.stringContaining('issuer does not answer'),
  });
  expect(await firstOf([other], () => undefined).authenticate(request)).toBeUndefined();
});

test('users whom a proxy has not authenticated are no authenticated users', async () => {
  const users: User[] = [
    { name: 'system:anonymous', groups: ['system:unauthenticated'] },
    { name: 'system:anonymous', groups: [] },
    { name: 'visitor', groups: ['system:unauthenticated'] },
  ];
  for (const user of users) {
    const proxy = firstOf([{ authenticate: () => user }], () => undefined);
    expect(await proxy.authenticate({ headers: {} } as AuthenticationRequest)).toEqual(user);
  }
});

interface Handshake {
  /** The server's side. */
  readonly peer: TLSSocket;
  readonly session: Buffer;
  readonly reused: boolean;
}

async function tlsServer(options: ReturnType<typeof tlsOptions> & { maxVersion?: 'TLSv1.2' | 'TLSv1.3' }) {
  const server = createServer(options);
  const sockets: Socket[] = [];
  server.on('secureConnection', (socket) => sockets.push(socket));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const connectOnce = async (client: {
    ca: string;
    cert?: string;
    key?: string;
    session?: Buffer;
  }): Promise<Handshake> => {
    const accepted = new Promise<TLSSocket>((resolve) => server.once('secureConnection', resolve));
    const socket = connect({ host: '127.0.0.1', port, ...client });
    onTestFinished(() => {
      socket.destroy();
    });
    const session = await new Promise<Buffer>((resolve, reject) => {
      socket.on('error', reject);
      socket.on('session', resolve);
      // In TLS 1.2 a resumed session brings no new ticket.
      socket.on('secureConnect', () => {
        if (socket.isSessionReused()) resolve(Buffer.alloc(0));
      });
    });
    return { peer: await accepted, session, reused: socket.isSessionReused() };
  };
  return { server, connectOnce };
}

async function handshake(options: ReturnType<typeof tlsOptions>, client: { ca: string; cert?: string; key?: string }) {
  const { connectOnce } = await tlsServer(options);
  return (await connectOnce(client)).peer;
}
