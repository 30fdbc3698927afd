import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../../../test/support/git/git-cli.ts';
import { canonicalAddress, canonicalAddressNow, comparableAddress } from './repository-address.ts';

test.each([
  ['git@git.example.com:team/a.git', 'ssh://git@GIT.example.com:22/team/a'],
  ['ssh://git@git.example.com/team/a.git', 'ssh://someone@git.example.com//team/a/'],
  ['https://git.example.com/team/a.git', 'https://GIT.example.com:443/team/a'],
  ['https://git.example.com/team/a.git', 'https://git.example.com./team//a.git/'],
  ['https://git.example.com/team/a', 'https://git.example.com/Team/%61.GIT'],
  ['http://gitea:80/a', 'http://gitea/a.git'],
])('%s and %s are one', async (one, other) => {
  expect(await canonicalAddress(other)).toBe(await canonicalAddress(one));
  expect(canonicalAddressNow(other)).toBe(canonicalAddressNow(one));
  expect(comparableAddress(other)).toBe(comparableAddress(one));
});

test.each([
  ['file:///srv/a.git', '/srv/a'],
  ['git@git.example.com:team/a.git', 'ssh://git@git.example.com:22/team/a/'],
])('%s and %s are one where the file system is not looked at', (one, other) => {
  expect(comparableAddress(one)).toBe(comparableAddress(other));
});

test.each([
  ['ssh://git@git.example.com:2222/team/a', 'ssh://git@git.example.com/team/a'],
  ['ssh://anna@git.example.com/~/a', 'ssh://bob@git.example.com/~/a'],
  ['https://git.example.com:8443/a', 'https://git.example.com/a'],
  ['https://git.example.com/a', 'https://git.example.com/b'],
  ['https://git.example.com/a.git', 'https://git.example.com/a/git'],
  ['git@git.example.com:~/a.git', 'git@git.example.com:a.git'],
  ['git@git.example.com:a.git', 'https://git.example.com/a.git'],
])('%s and %s are two', async (one, other) => {
  expect(await canonicalAddress(other)).not.toBe(await canonicalAddress(one));
  expect(comparableAddress(other)).not.toBe(comparableAddress(one));
});

test('a path, a link to it and a URL of it are one', async () => {
  const folder = temporaryFolder();
  try {
    const [path, link] = [join(folder.path, 'a b.git'), join(folder.path, 'link')];
    mkdirSync(path);
    symlinkSync(path, link);
    const forms = [
      path,
      link,
      `${path}/`,
      `${folder.path}/./a b.git`,
      `file://${folder.path}/a%20b.git`,
      `FILE://${link}`,
    ];
    const texts = await Promise.all(forms.map(canonicalAddress));
    expect(new Set([...texts, ...forms.map(canonicalAddressNow)]).size).toBe(1);
  } finally {
    folder.remove();
  }
});
