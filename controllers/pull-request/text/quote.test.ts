import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { inlineCode } from './quote.ts';

test('a command with a quoted argument of a user stays one command when it is copied', () => {
  const command = "echo set-condition 'evil/a`; echo $((40+2)) `b'";
  const copied = inlineCode(command).slice(1, -1);
  expect(copied).not.toContain('`');
  expect(execFileSync('sh', ['-c', copied], { encoding: 'utf8' })).not.toContain('42');
});
