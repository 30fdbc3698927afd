import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { dump } from 'js-yaml';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { loadedModules } from '../../../test/support/loaded-modules.ts';
import type { SluiceError } from '../../foundation/sluice-error.ts';
import { type Clock, systemClock } from '../../foundation/time/clock.ts';
import { ManualClock } from '../../foundation/time/manual-clock.ts';
import { writeKubeconfig } from '../../server/authentication/kubeconfig.ts';
import { issueCertificate, type KeyPair } from '../../server/certificates/issue-certificate.ts';
import type { ClusterAccess } from './cluster-access.ts';
import { inClusterAccess } from './in-cluster.ts';
import { type FindAccessOptions, findClusterAccess } from './kubeconfig.ts';

let folder: string;
let pair: KeyPair;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-kubeconfig-'));
  const notAfter = Date.now() + 3_600_000;
  pair ??= await issueCertificate({ usage: 'authority', commonName: 'test', notBefore: 0, notAfter });
});

afterEach(() => rm(folder, { recursive: true }));

async function file(name: string, content: unknown): Promise<string> {
  const path = join(folder, name);
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, typeof content === 'string' ? content : dump(content));
  return path;
}

/** A kubeconfig with one context, `main`. */
function config(user: object = {}, cluster: object = {}, context: object = {}): object {
  return {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'main',
    clusters: [{ name: 'c', cluster: { server: 'https://10.0.0.1:6443', ...cluster } }],
    users: [{ name: 'u', user }],
    contexts: [{ name: 'main', context: { cluster: 'c', user: 'u', ...context } }],
  };
}

const find = (options: FindAccessOptions = {}) => findClusterAccess({ environment: {}, home: folder, ...options });

async function failure(promise: Promise<unknown>): Promise<SluiceError> {
  const error = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toMatchObject({ name: 'SluiceError' });
  return error as SluiceError;
}

const proofOf = (access: ClusterAccess) => access.credentials.proof();

describe('which file', () => {
  test('the named one, else those of KUBECONFIG, else the one in the home folder', async () => {
    await file('.kube/config', config({}, { server: 'https://home' }));
    const one = await file('one', config({}, { server: 'https://one' }));
    const two = await file('two', config({}, { server: 'https://two' }));
    expect((await find()).server).toBe('https://home');
    expect((await find({ environment: { KUBECONFIG: one } })).server).toBe('https://one');
    expect((await find({ environment: { KUBECONFIG: one }, kubeconfig: two })).server).toBe('https://two');
    expect((await find({ environment: { KUBECONFIG: '' } })).server).toBe('https://home');
  });

  test('of several files the first that sets a field wins, and missing files are ignored', async () => {
    const one = await file('one', {
      'current-context': '',
      clusters: [{ name: 'c', cluster: { server: 'https://one' } }],
      users: null,
    });
    const two = await file('sub/two', config({ tokenFile: 'token' }, { server: 'https://two' }, { namespace: 'web' }));
    await file('sub/token', 'from-two\n');
    const three = await file('three', {
      'current-context': 'other',
      contexts: [{ name: 'other', context: { cluster: 'c', user: 'u' } }],
    });
    const KUBECONFIG = ['', join(folder, 'none'), one, two, three, two].join(':');
    const access = await find({ environment: { KUBECONFIG } });
    expect(access).toMatchObject({
      server: 'https://one',
      namespace: 'web',
      user: 'u',
      source: `context "main" of ${two}`,
    });
    expect(await proofOf(access)).toEqual({ headers: { authorization: 'Bearer from-two' } });
    expect((await find({ environment: { KUBECONFIG }, context: 'other' })).source).toBe(`context "other" of ${three}`);
  });

  test('the error without any names the paths and the next step', async () => {
    const { message } = await failure(find());
    expect(message).toContain(join(folder, '.kube', 'config'));
    expect(message).toMatch(/--kubeconfig or KUBECONFIG.*sluice up/);
    const named = await failure(
      find({
        kubeconfig: join(folder, 'x'),
        environment: { KUBERNETES_SERVICE_HOST: 'h', KUBERNETES_SERVICE_PORT: '1' },
      }),
    );
    expect(named.message).toContain(join(folder, 'x'));
  });

  test('the kubeconfig that a server writes can be read', async () => {
    const path = join(folder, 'written');
    await writeKubeconfig({
      path,
      server: 'https://127.0.0.1:6443',
      caData: pair.certificate,
      token: 't0ken',
      user: 'admin',
    });
    const access = await find({ kubeconfig: path });
    expect(access).toMatchObject({ server: 'https://127.0.0.1:6443', tls: { ca: pair.certificate, insecure: false } });
    expect(await proofOf(access)).toEqual({ headers: { authorization: 'Bearer t0ken' } });
  });
});

describe('its content', () => {
  const read = async (...parts: Parameters<typeof config>) => find({ kubeconfig: await file('k', config(...parts)) });

  test('certificates as data or in files beside it, the data first', async () => {
    await file('pki/ca.crt', pair.certificate);
    await file('pki/key', pair.key);
    const data = Buffer.from(pair.certificate).toString('base64');
    const access = await read(
      { 'client-certificate-data': data, 'client-certificate': 'missing', 'client-key': 'pki/key' },
      { 'certificate-authority': 'pki/ca.crt', 'tls-server-name': 'api.example', 'proxy-url': 'http://proxy:3128' },
    );
    expect(access.tls).toEqual({
      ca: pair.certificate,
      cert: pair.certificate,
      key: pair.key,
      insecure: false,
      serverName: 'api.example',
    });
    expect(access.proxy).toBe('http://proxy:3128');
    expect((await read({}, { 'insecure-skip-tls-verify': true })).tls).toEqual({ insecure: true });
  });

  test('a name and a password, a token, or nothing', async () => {
    const basic = Buffer.from('anna:pä').toString('base64');
    expect(await proofOf(await read({ username: 'anna', password: 'pä' }))).toEqual({
      headers: { authorization: `Basic ${basic}` },
    });
    expect(await proofOf(await read({ token: 'abc' }))).toEqual({ headers: { authorization: 'Bearer abc' } });
    expect(await proofOf(await read({}))).toEqual({ headers: {} });
    expect((await read({ as: 'ben', 'as-groups': ['dev'] })).impersonate).toEqual({ name: 'ben', groups: ['dev'] });
    const anonymous = await read({}, {}, { user: '' });
    expect(await proofOf(anonymous)).toEqual({ headers: {} });
  });

  test('a token file is read again after a minute, and at once when the token was refused', async () => {
    const clock = new ManualClock();
    const token = await file('token', 'one');
    const path = await file('k', config({ tokenFile: token, token: 'ignored' }));
    const access = await find({ kubeconfig: path, clock });
    const shown = async () => (await proofOf(access)).headers.authorization;
    expect(await shown()).toBe('Bearer one');
    await file('token', 'two');
    expect(await shown()).toBe('Bearer one');
    clock.advance(60_000);
    expect(await shown()).toBe('Bearer two');
    await file('token', 'three');
    access.credentials.forget();
    expect(await shown()).toBe('Bearer three');
    await rm(token);
    access.credentials.forget();
    expect((await failure(shown())).code).toBe('Unauthenticated');
    await file('token', 'four');
    expect(await shown()).toBe('Bearer four');
  });

  test.each<[string, Parameters<typeof config>, RegExp]>([
    ['a context without its cluster', [{}, {}, { cluster: 'x' }], /context "main": there is no cluster "x"/],
    ['a context without its user', [{}, {}, { user: 'x' }], /there is no user "x"/],
    ['plain HTTP to elsewhere', [{}, { server: 'http://example.org' }], /neither HTTPS nor on this machine/],
    ['a password in the address', [{}, { server: 'https://a:hunter2@h' }], /must not contain a password/],
    ['another protocol', [{}, { server: 'ftp://h' }], /must begin with https/],
    ['no address', [{}, { server: 'https://' }], /must be an address/],
    ['a SOCKS proxy', [{}, { 'proxy-url': 'socks5://h' }], /proxy-url must be an address/],
    [
      'authority and no check',
      [{}, { 'certificate-authority': 'x', 'insecure-skip-tls-verify': true }],
      /exclude each other/,
    ],
    [
      'a certificate without a key',
      [{ 'client-certificate-data': 'LS0tLS1CRUdJTiB4' }],
      /client-certificate needs client-key/,
    ],
    [
      'an authority that is not PEM',
      [{}, { 'certificate-authority-data': 'aHVudGVyMg==' }],
      /certificate-authority-data is invalid PEM/,
    ],
    [
      'a broken authority',
      [{}, { 'certificate-authority-data': 'LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg==' }],
      /cannot be used/,
    ],
    ['a broken token', [{ token: 'hunter2\nx' }], /the token is empty or has invalid characters/],
    ['a token of the wrong type', [{ token: { hunter2: 1 } }], /users\[0\]\.user\.token: .*expected string/],
    ['further impersonation', [{ as: 'a', 'as-uid': 'b' }], /as-uid and as-user-extra are not supported/],
    [
      'an auth-provider',
      [{ 'auth-provider': { name: 'oidc', config: { 'client-secret': 'hunter2' } } }],
      /context "main": auth-provider of user "u" is not supported; use a plugin .* under exec/,
    ],
    ['groups without a name', [{ 'as-groups': ['a'] }], /as-groups needs "as"/],
  ])('%s is refused', async (_what, parts, message) => {
    const error = await failure(read(...parts));
    expect(error).toMatchObject({ code: 'InvalidInput', message: expect.stringMatching(message) });
    expect(error.message).toContain(join(folder, 'k'));
    expect(error.message).not.toContain('hunter2');
  });

  test.each<[string, string, RegExp]>([
    ['no YAML', 'users:\n- name: x\n  user: {token: hunter2', /k:\d+: /],
    ['too deep nesting', '['.repeat(10_000), /nesting/],
    ['a list', '- hunter2', /it is not a mapping of fields/],
    [
      'prose',
      '# Title\n\nSome text: with a colon: and one more\n',
      /:3: .*; name the kubeconfig of a cluster, or the file "kubeconfig"/,
    ],
    ['a plain text', 'just words\n', /is not a kubeconfig: it is not a mapping of fields; name the kubeconfig/],
    ['a manifest', 'kind: Deployment\nmetadata: {name: a}\n', /is not a kubeconfig: its kind is not Config; name the/],
    ['several documents', 'a: 1\n---\nb: hunter2\n', /several documents/],
    [
      'no current context',
      'contexts: [{name: x, context: {cluster: c, user: u}}]',
      /no current-context.*there are: "x"/,
    ],
    ['an unknown context', 'current-context: y', /no context "y"; choose one of: none/],
    ['a duplicate name', 'users: [{name: x, user: {}}, {name: x, user: {}}]', /user "x" is duplicated/],
    ['an empty file', '', /no current-context/],
  ])('a file with %s is refused', async (_what, content, message) => {
    const error = await failure(find({ kubeconfig: await file('k', content) }));
    expect(error).toMatchObject({ code: 'InvalidInput', message: expect.stringMatching(message) });
    expect(error.message + String(error.cause)).not.toContain('hunter2');
  });

  test('a file that is too large, or not a file, is refused', async () => {
    const long = await file('long', ' '.repeat(4 * 1024 * 1024 + 1));
    expect((await failure(find({ kubeconfig: long }))).code).toBe('LimitExceeded');
    expect((await failure(find({ kubeconfig: folder }))).message).toContain('is not a file');
  });
});

describe('login plugins', () => {
  async function plugin(script: string, clock: Clock = systemClock): Promise<ClusterAccess> {
    const path = await file('bin/login.mjs', `#!${process.execPath}\n${script}`);
    await chmod(path, 0o755);
    const exec = {
      apiVersion: 'client.authentication.k8s.io/v1',
      command: './bin/login.mjs',
      args: ['--flag'],
      env: [{ name: 'GREETING', value: 'hello' }],
      interactiveMode: 'Never',
    };
    return find({ kubeconfig: await file('k', config({ exec })), clock });
  }

  test('a program beside the kubeconfig provides a token, and runs once while the token is valid', async () => {
    const access = await plugin(`
      import { appendFileSync, readFileSync } from 'node:fs';
      appendFileSync(${JSON.stringify(join(folder, 'runs'))}, 'x');
      const { apiVersion, spec } = JSON.parse(process.env.KUBERNETES_EXEC_INFO);
      const runs = readFileSync(${JSON.stringify(join(folder, 'runs'))}).length;
      const token = [process.argv[2], process.env.GREETING, spec.interactive, runs].join('');
      console.log(JSON.stringify({ apiVersion, kind: 'ExecCredential', status: { token } }));
    `);
    const first = proofOf(access);
    expect(await first).toEqual({ headers: { authorization: 'Bearer --flaghellofalse1' } });
    expect(await proofOf(access)).toEqual(await first);
    access.credentials.forget();
    expect(await proofOf(access)).toEqual({ headers: { authorization: 'Bearer --flaghellofalse2' } });
  });

  test('a certificate of a plugin is used', async () => {
    const status = { clientCertificateData: pair.certificate, clientKeyData: pair.key };
    const access = await plugin(`console.log(${JSON.stringify(JSON.stringify({ status }))})`);
    expect(await proofOf(access)).toEqual({
      headers: {},
      certificate: { cert: pair.certificate, key: pair.key },
    });
  });

  test.each([
    ['no JSON', 'hunter2 is my token'],
    ['an object without a status', '{"token": "hunter2"}'],
    ['null', 'null'],
    ['a status without a credential', '{"status": {"expirationTimestamp": "2020-01-01T00:00:00Z"}}'],
  ])('a program that prints %s is refused, and the error does not quote it', async (_what, output) => {
    const access = await plugin(`console.log(${JSON.stringify(output)})`);
    const { code, message } = await failure(proofOf(access));
    expect(code).toBe('Unauthenticated');
    expect(message).toMatch(
      /plugin of user "u" failed: it printed no ExecCredential with a token or a certificate as JSON$/,
    );
    expect(message).not.toContain('hunter2');
  });

  test('a program whose credential has expired is run again', async () => {
    const clock = new ManualClock();
    const status = '{ token: String(process.pid), expirationTimestamp: "2020-01-01T00:00:00Z" }';
    const access = await plugin(`console.log(JSON.stringify({ status: ${status} }))`, clock);
    const first = await proofOf(access);
    expect(await proofOf(access)).toEqual(first);
    clock.advance(10_000);
    expect(await proofOf(access)).not.toEqual(first);
  });

  test('the failure of a program is reported', async () => {
    const access = await plugin(`console.error('you must log in first'); process.exit(3)`);
    expect(await failure(proofOf(access))).toMatchObject({
      code: 'Unauthenticated',
      message: expect.stringMatching(/context "main".*plugin of user "u" failed: you must log in first/),
    });
  });
});

test('a pod connects to its cluster', async () => {
  const environment = { KUBERNETES_SERVICE_HOST: '10.96.0.1', KUBERNETES_SERVICE_PORT: '443' };
  const clock = new ManualClock();
  expect(await inClusterAccess({}, clock, folder)).toBeUndefined();
  expect((await failure(inClusterAccess(environment, clock, folder))).message).toContain(
    'automountServiceAccountToken',
  );
  await file('ca.crt', pair.certificate);
  await file('namespace', 'web\n');
  await file('token', 'abc\n');
  const access = await inClusterAccess(environment, clock, folder);
  expect(access).toMatchObject({ server: 'https://10.96.0.1:443', namespace: 'web', tls: { ca: pair.certificate } });
  const proof = () => access?.credentials.proof();
  expect(await proof()).toEqual({ headers: { authorization: 'Bearer abc' }, ca: pair.certificate });
  await file('token', 'def\n');
  await file('ca.crt', `${pair.certificate}${pair.certificate}`);
  clock.advance(60_000);
  expect(await proof()).toEqual({
    headers: { authorization: 'Bearer def' },
    ca: `${pair.certificate}${pair.certificate}`,
  });
  const six = await inClusterAccess({ ...environment, KUBERNETES_SERVICE_HOST: 'fd00::1' }, clock, folder);
  expect(six?.server).toBe('https://[fd00::1]:443');
});

test('only a login plugin loads the large library', () => {
  const loaded = loadedModules(new URL('./kubeconfig.ts', import.meta.url));
  expect(loaded.some((url) => url.endsWith('/plugin-credentials.ts'))).toBe(true);
  expect(loaded.filter((url) => url.includes('@kubernetes/client-node'))).toEqual([]);
});
