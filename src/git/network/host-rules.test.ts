import { networkInterfaces } from 'node:os';
import { describe, expect, test } from 'vitest';
import { HostRules } from './host-rules.ts';
import { isLocalAddress } from './local-address.ts';
import { permittedSetting } from './remote-url.ts';

test.each([
  '127.0.0.1',
  '127.255.1.2',
  '0.0.0.0',
  '10.96.0.1',
  '172.16.0.1',
  '172.31.255.255',
  '192.168.1.1',
  '169.254.169.254',
  '168.63.129.16',
  '100.100.100.200',
  '198.18.0.1',
  '224.0.0.1',
  '255.255.255.255',
  '::',
  '::1',
  '::ffff:127.0.0.1',
  '::ffff:a00:1',
  '64:ff9b::10.0.0.1',
  '64:ff9b:1::1',
  '2002:7f00:1::',
  '2001::1',
  'fe80::1%eth0',
  'fc00::1',
  'fd12:3456::1',
  'fec0::1',
  'ff02::1',
  '::127.0.0.1',
  'no address',
])('%s is local', (address) => {
  expect(isLocalAddress(address)).toBe(true);
});

test.each([
  '140.82.121.4',
  '1.1.1.1',
  '172.32.0.1',
  '2606:4700::1111',
  '::ffff:1.1.1.1',
  '64:ff9b::101:101',
  '2002:101:101::1',
])('%s is public', (address) => {
  expect(isLocalAddress(address)).toBe(false);
});

test('every address of this machine is local', () => {
  for (const list of Object.values(networkInterfaces()))
    for (const { address } of list ?? []) expect(isLocalAddress(address)).toBe(true);
});

describe('rules on hosts', () => {
  const at = (host: string, port = 443) => ({ url: `https://${host}:${port}/a.git`, host, port });
  const rules = (entries: string[], addresses: string[]) =>
    new HostRules(entries, { resolve: async () => addresses.map((address) => ({ address, family: 4 })) });

  test('one local address of several is enough to refuse a name, and the message names the option', async () => {
    await expect(rules([], ['1.1.1.1', '10.0.0.1']).addresses(at('git.example.com', 8443))).rejects.toMatchObject({
      code: 'Refused',
      message: expect.stringMatching(
        /"sluice serve" in its Deployment\) with --allow-git-host git\.example\.com:8443, or set SLUICE_ALLOW_GIT_HOST=git\.example\.com:8443 /,
      ),
    });
    expect(await rules([], ['1.1.1.1']).addresses(at('git.example.com'))).toEqual([{ address: '1.1.1.1', family: 4 }]);
  });

  test.each([
    ['http://git.example.com:3000/a.git', 'SLUICE_ALLOW_GIT_HOST=git.example.com:3000'],
    ['ssh://git@git.example.com/a.git', 'SLUICE_ALLOW_GIT_HOST=git.example.com:22'],
    ['https://other.example.com/a.git', undefined],
    ['file:///a.git', undefined],
    ['/a.git', undefined],
  ])('a command without the server needs a setting for a host that the operator permits: %s', (url, setting) => {
    expect(permittedSetting(url, rules(['git.example.com'], []))).toBe(setting);
  });

  test('the message does not contain the address of a name', async () => {
    await expect(rules([], ['10.11.12.13']).addresses(at('db.internal'))).rejects.toMatchObject({
      message: expect.not.stringContaining('10.11.12.13'),
    });
  });

  test('an address that system calls understand as loopback is refused, in whatever form', async () => {
    for (const host of ['2130706433', '0x7f.1', '127.1', '[::1]', 'LOCALHOST', 'localhost.'])
      await expect(new HostRules().addresses(at(host)), host).rejects.toMatchObject({ code: 'Refused' });
  });

  test('a permitted host is connected to by its name, with all ports or with one', async () => {
    const subject = rules(['Gitea:3000', 'git.corp.', '[::1]:80'], ['10.0.0.1']);
    expect(subject.isAllowed('gitea', 3000)).toBe(true);
    expect(subject.isAllowed('gitea.', 3000)).toBe(true);
    expect(subject.isAllowed('gitea', 80)).toBe(false);
    expect(subject.isAllowed('git.corp', 22)).toBe(true);
    expect(subject.isAllowed('[::1]', 80)).toBe(true);
    expect(await subject.addresses(at('gitea', 3000))).toBeUndefined();
    await expect(subject.addresses(at('gitea', 80))).rejects.toMatchObject({ code: 'Refused' });
  });

  test('a host that cannot be resolved is no refusal', async () => {
    await expect(rules([], []).addresses(at('git.example.com'))).rejects.toMatchObject({ code: 'Unavailable' });
  });

  test.each(['http://gitea', 'gitea:0', 'gitea:70000', 'a b', '', '::1', 'user@host', 'gitea/'])(
    '%j is not accepted as a host to permit',
    (entry) => {
      expect(() => new HostRules([entry])).toThrow(/HOST or HOST:PORT/);
    },
  );
});
