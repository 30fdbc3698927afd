import { expect, test } from 'vitest';
import { comparableAddress } from './upstream-of.ts';

test.each([
  ['git@Git.example.com:team/a.git', 'ssh://git@git.example.com:22/team/a/'],
  ['ssh://git.example.com/team/a.git', 'git@git.example.com:/team/a'],
  ['file:///srv/a.git', '/srv/a'],
  ['https://git.example.com/a.git', 'https://git.example.com/a/'],
])('%j and %j are one repository', (one, other) => {
  expect(comparableAddress(one)).toBe(comparableAddress(other));
});

test.each([
  ['git@git.example.com:team/a.git', 'ssh://git@git.example.com:2222/team/a.git'],
  ['git@git.example.com:a.git', 'other@git.example.com:a.git'],
  ['git@git.example.com:~/a.git', 'git@git.example.com:a.git'],
  ['git@git.example.com:a.git', 'https://git.example.com/a.git'],
])('%j and %j are two', (one, other) => {
  expect(comparableAddress(one)).not.toBe(comparableAddress(other));
});
