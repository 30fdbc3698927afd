import { expect, test } from 'vitest';
import { gitAddressProblem } from './git-location.ts';

test.each([
  '/srv/git/a b.git',
  'file:///srv/git/a%20b.git',
  'FILE:///srv/a.git',
  'sluice:///a-1.git',
  'https://git.example.com/a.git',
  'http://127.0.0.1:3000/a.git',
  'http://gitea:3000/a.git',
  'ssh://git@example.com:2222/a.git',
  'git@example.com:team/a.git',
])('%j can be an address', (address) => {
  expect(gitAddressProblem(address)).toBeUndefined();
});

test.each([
  // Those who compare addresses read the paths of all of them: one that cannot be read would stand in the way of every other.
  'file:///srv%2fa.git',
  'file:///%zz',
  'file:///srv/a%00.git',
  'file://host/a.git',
  'file:///a?b',
  '/srv/a\n.git',
  'sluice:///../a.git',
  'sluice:///A.git',
  'SLUICE:///a.git',
  'ssh://git:secret@example.com/a.git',
  'ssh://-oProxyCommand=id/a.git',
  'git@-oProxyCommand=id:a.git',
  'example.com:a.git',
  'ext::sh -c id',
  'https://me:secret@git.example.com/a.git',
  '--upload-pack=id',
  '',
])('%j cannot be an address', (address) => {
  expect(gitAddressProblem(address)).toMatch(/^must|^a file/);
});
