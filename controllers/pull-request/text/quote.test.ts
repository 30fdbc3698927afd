import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { commitLine, inlineCode } from './quote.ts';

test('a command with a quoted argument of a user stays one command when it is copied', () => {
  const command = "echo set-condition 'evil/a`; echo $((40+2)) `b'";
  const copied = inlineCode(command).slice(1, -1);
  expect(copied).not.toContain('`');
  expect(execFileSync('sh', ['-c', copied], { encoding: 'utf8' })).not.toContain('42');
});

/** What GitHub, Gitea and Forgejo read in commit messages as mentions of users and teams, and as references to issues. */
const MENTION = /(?:^|[^A-Za-z0-9_])@[A-Za-z0-9]/;
const REFERENCE = /[#!]\d|\bgh-\d|:\/\//i;

test.each([
  '@everyone',
  'hi (@acme/team), [@bob] é@carl .@dora/@eve',
  'Fixes #1, closes: owner/repo#22, resolves GH-3 and gh-4 (!5)',
  'Fixes https://github.com/owner/repo/issues/1',
  'fix\u200e#\u200e1 @\u202euser',
  'Fixes\n#1\n\n@user',
])('a line of a commit message mentions no user and closes no issue: %j', (text) => {
  expect(commitLine(text)).not.toMatch(MENTION);
  expect(commitLine(text)).not.toMatch(REFERENCE);
  expect(commitLine(text)).not.toContain('\n');
});

test('a line of a commit message keeps addresses of mail and other signs', () => {
  const text = 'shop-v1!: approved by bob@example.com at 2026-01-01T00:00:00Z (C# code)';
  expect(commitLine(text)).toBe(text);
});
