import { X509Certificate } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { ManualClock } from '../../foundation/time/manual-clock.ts';
import { openPki, serverNames } from './open-pki.ts';

const DAY = 86_400_000;

async function setUp() {
  const parent = await mkdtemp(join(tmpdir(), 'sluice-pki-'));
  onTestFinished(() => rm(parent, { recursive: true }));
  const folder = join(parent, 'pki');
  const clock = new ManualClock();
  const notes: string[] = [];
  const open = (names: readonly string[] = ['localhost', '127.0.0.1', '::1']) =>
    openPki({ folder, names, clock, onNote: (note) => notes.push(note) });
  return { folder, clock, notes, open };
}

test('the first start makes an authority and a certificate for the server, for their owner only', async () => {
  const { folder, clock, notes, open } = await setUp();
  const pki = await open(['localhost', '127.0.0.1', '::1', 'box.example.org']);
  const authority = new X509Certificate(pki.authority);
  const server = new X509Certificate(pki.server.certificate);
  expect(authority.ca).toBe(true);
  expect(server.ca).toBe(false);
  expect(server.verify(authority.publicKey)).toBe(true);
  expect(server.checkIssued(authority)).toBe(true);
  expect(server.keyUsage).toEqual(['1.3.6.1.5.5.7.3.1']);
  for (const name of ['localhost', 'box.example.org']) expect(server.checkHost(name)).toBe(name);
  for (const address of ['127.0.0.1', '::1']) expect(server.checkIP(address)).toBe(address);
  expect(authority.validFromDate.getTime()).toBe(clock.now() - 3_600_000);
  expect(authority.validToDate.getTime() - clock.now()).toBe(3650 * DAY);
  expect(server.validToDate.getTime() - clock.now()).toBe(365 * DAY);
  expect((await stat(folder)).mode & 0o777).toBe(0o700);
  expect((await readdir(folder)).sort()).toEqual(['ca.pem', 'server.pem']);
  for (const name of ['ca.pem', 'server.pem']) expect((await stat(join(folder, name))).mode & 0o777).toBe(0o600);
  expect(notes).toEqual([]);
});

test('later starts keep both, until 30 days before the end of the server certificate', async () => {
  const { clock, open } = await setUp();
  const first = await open();
  clock.advance(334 * DAY);
  const second = await open(['localhost']);
  expect(second.server).toEqual(first.server);
  clock.advance(2 * DAY);
  const third = await open();
  expect(third.authority).toBe(first.authority);
  expect(third.server).not.toEqual(first.server);
  expect(new X509Certificate(third.server.certificate).validToDate.getTime() - clock.now()).toBe(365 * DAY);
});

test('a name that is missing makes a new server certificate', async () => {
  const { open } = await setUp();
  const first = await open();
  const second = await open(['localhost', '127.0.0.1', '::1', '192.0.2.7']);
  expect(second.authority).toBe(first.authority);
  expect(new X509Certificate(second.server.certificate).checkIP('192.0.2.7')).toBe('192.0.2.7');
});

test('a server certificate that cannot be read, or is of another authority, is issued again', async () => {
  const { folder, open } = await setUp();
  const first = await open();
  for (const text of [
    '',
    'nonsense',
    await readFile(join(folder, 'ca.pem'), 'utf8').then((all) => all.slice(0, 300)),
  ]) {
    await writeFile(join(folder, 'server.pem'), text);
    const again = await open();
    expect(again.authority).toBe(first.authority);
    expect(new X509Certificate(again.server.certificate).verify(new X509Certificate(first.authority).publicKey)).toBe(
      true,
    );
  }
  await rm(join(folder, 'ca.pem'));
  const renewed = await open();
  expect(renewed.authority).not.toBe(first.authority);
  expect(new X509Certificate(renewed.server.certificate).verify(new X509Certificate(renewed.authority).publicKey)).toBe(
    true,
  );
});

test('an authority that cannot be read is never replaced', async () => {
  const { folder, open } = await setUp();
  await open();
  const path = join(folder, 'ca.pem');
  const good = await readFile(path, 'utf8');
  const other = await setUp();
  await other.open();
  const foreign = await readFile(join(other.folder, 'ca.pem'), 'utf8');
  const mixed =
    good.slice(0, good.indexOf('-----BEGIN PRIVATE')) + foreign.slice(foreign.indexOf('-----BEGIN PRIVATE'));
  for (const text of ['', 'nonsense', good.slice(0, 400), mixed, await readFile(join(folder, 'server.pem'), 'utf8')]) {
    await writeFile(path, text);
    await expect(open()).rejects.toMatchObject({ code: 'Corrupt', message: expect.stringContaining(path) });
    expect(await readFile(path, 'utf8')).toBe(text);
  }
});

test('an expired authority is replaced, and the operator is informed', async () => {
  const { clock, notes, open } = await setUp();
  const first = await open();
  clock.advance(3651 * DAY);
  const second = await open();
  expect(second.authority).not.toBe(first.authority);
  expect(notes).toEqual([expect.stringContaining('has expired')]);
});

test('a clock that was set back changes nothing about the authority, and the operator is informed', async () => {
  const { folder, clock, open } = await setUp();
  const first = await open();
  const notes: string[] = [];
  const past = new ManualClock(clock.now() - 400 * DAY);
  const again = await openPki({ folder, names: ['localhost'], clock: past, onNote: (note) => notes.push(note) });
  expect(again.authority).toBe(first.authority);
  expect(notes).toEqual([expect.stringContaining('is the clock right')]);
});

test('no certificate outlives the authority', async () => {
  const { clock, open } = await setUp();
  await open();
  clock.advance(3600 * DAY);
  const pki = await open();
  const end = new X509Certificate(pki.authority).validToDate.getTime();
  expect(new X509Certificate(pki.server.certificate).validToDate.getTime()).toBe(end);
  const client = await pki.issueClient('anna', [], 1000 * DAY);
  expect(new X509Certificate(client.certificate).validToDate.getTime()).toBe(end);
});

test('client certificates take names that a certificate can hold, and no others', async () => {
  const { open } = await setUp();
  const pki = await open();
  const client = await pki.issueClient('anna, CN=admin+O=x', ['system:masters\\', 'Gruppe ä'], DAY);
  const { subject } = new X509Certificate(client.certificate).toLegacyObject();
  expect(subject).toMatchObject({ CN: 'anna, CN=admin+O=x', O: ['system:masters\\', 'Gruppe ä'] });
  for (const [user, groups] of [
    ['', []],
    ['x'.repeat(65), []],
    ['a\nb', []],
    ['anna', ['']],
    ['anna', Array.from({ length: 101 }, () => 'g')],
  ] as const)
    await expect(pki.issueClient(user, groups, DAY)).rejects.toMatchObject({ code: 'InvalidInput' });
});

test('server names are those of loopback, the machine and the listener, without wildcard addresses', () => {
  const base = ['localhost', '127.0.0.1', '::1'];
  expect(serverNames('127.0.0.1', 'Box.Example.org')).toEqual([...base, 'box.example.org']);
  expect(serverNames('0.0.0.0', 'not_a_dns_name')).toEqual(base);
  expect(serverNames('[::]', '')).toEqual(base);
  expect(serverNames('[2001:db8::1]', 'box')).toEqual([...base, '2001:db8::1', 'box']);
});
