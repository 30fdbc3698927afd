import fc from 'fast-check';
import { expect, test } from 'vitest';
import { runs } from '../../../test/support/runs.ts';
import { looksLikeSsh, readSshAddress } from './ssh-address.ts';

test.each([
  ['ssh://git@git.example.com/team/a.git', 'ssh://git@git.example.com/team/a.git', '/team/a.git'],
  ['git@git.example.com:team/a.git', 'ssh://git@git.example.com/team/a.git', '/team/a.git'],
  ['git@git.example.com:/team/a.git', 'ssh://git@git.example.com/team/a.git', '/team/a.git'],
  ['ssh://GIT.example.com:22//team/./a.git/', 'ssh://git@git.example.com/team/a.git', '/team/a.git'],
  ['SSH://me@[::1]:2222/~/a.git', 'ssh://me@[::1]:2222/~/a.git', '~/a.git'],
  ['me@[fe80::1]:~other/a.git', 'ssh://me@[fe80::1]/~other/a.git', '~other/a.git'],
  ['ssh://git@h/My%20Project/100%25', 'ssh://git@h/My%20Project/100%25', '/My Project/100%'],
  // The server is who decodes what stands in the short form.
  ['git@ssh.dev.azure.com:v3/o/My%20P/r', 'ssh://git@ssh.dev.azure.com/v3/o/My%2520P/r', '/v3/o/My%20P/r'],
])('%j is %j', (text, url, path) => {
  expect(looksLikeSsh(text)).toBe(true);
  expect(readSshAddress(text)).toMatchObject({ url, path });
  expect(readSshAddress(url)).toMatchObject({ url, path });
});

test.each([
  'ssh://-oProxyCommand=id/a.git',
  'ssh://-oProxyCommand=id@host/a.git',
  'ssh://git@-oProxyCommand=id/a.git',
  '-oProxyCommand=id@host:a.git',
  'git@-oProxyCommand=id:a.git',
  'ssh://git@host:-1/a.git',
  'ssh://git@host:0/a.git',
  'ssh://git@host:65536/a.git',
  'ssh://git@host:22x/a.git',
  'ssh://git@host:/a.git',
  'ssh://git:secret@host/a.git',
  'ssh://git@host@other/a.git',
  'ssh://git@/a.git',
  'ssh:///a.git',
  'ssh://git@host',
  'ssh://git@host/',
  'ssh://git@host/../a.git',
  'ssh://git@host/%2e%2e/a.git',
  'git@host:../a.git',
  "ssh://git@host/a';id;'.git",
  'ssh://git@host/$(id).git',
  'ssh://git@host/`id`.git',
  'ssh://git@host/a%0Ab.git',
  'ssh://git@host/a%00b.git',
  'ssh://git@host/a\nb.git',
  'ssh://git@host/a%.git',
  'ssh://git@host/a!b.git',
  'ssh://git@host/a.git?x',
  'ssh://git@host/a.git#x',
  'ssh://git@ho%2dst/a.git',
  'ssh://git@%68ost/a.git',
  'ssh://git@ho st/a.git',
  'ssh://git@[::1%25eth0]/a.git',
  'ssh://git@[::1/a.git',
  'git@host://a.git',
  'host:a.git',
  '/srv/a.git',
  'https://git.example.com/a.git',
  `ssh://git@host/${'a'.repeat(3000)}`,
])('%j is refused', (text) => {
  expect(readSshAddress(text)).toHaveProperty('problem');
});

test('an accepted address has one form, which holds nothing with a meaning for a program or a shell', () => {
  const piece = fc.constantFrom(
    'ssh://',
    'git',
    '@',
    'host',
    ':',
    '/',
    '-',
    '~',
    '%',
    '%2e',
    '[',
    ']',
    '::1',
    '2',
    "'",
    '.',
    ' ',
    'é',
  );
  const texts = fc.oneof(
    fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join('')),
    fc.array(piece, { maxLength: 8 }).map((pieces) => `ssh://git@host/${pieces.join('')}`),
    fc.array(piece, { maxLength: 8 }).map((pieces) => `git@host:${pieces.join('')}`),
  );
  fc.assert(
    fc.property(texts, (text) => {
      const address = readSshAddress(text);
      if ('problem' in address) return;
      expect(address.user).toMatch(/^[^-]/);
      expect(address.host).toMatch(/^[a-z0-9:]/);
      expect(address.path).toMatch(/^[/~][^'"\\$`\x00-\x1f!]*$/);
      expect(address.url).toMatch(/^ssh:\/\/[!-~]+$/);
      expect(readSshAddress(address.url)).toEqual(address);
    }),
    { numRuns: runs(2_000) },
  );
});
